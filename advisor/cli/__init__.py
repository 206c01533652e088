"""The command line: parse, run, print."""

import os
import shlex
import sys
from importlib import import_module

import click

from advisor.errors import AdvisorError

_COMMANDS = {
    "measure": "Time per step and throughput at each batch size.",
    "recommend": "The batch size to use, from measured time per step and tuned steps to target.",
    "tune": "Tune the optimizer and the regularization at one batch size.",
    "report": "Everything known so far, with its resource cost.",
    "plan": "What other numbers of devices and prices would give, extrapolated.",
    "import": "The curve of steps to target that another program measured.",
    "studies": "The recorded studies and what reproduces each.",
    "dashboard": "Serve the Optuna dashboard over the recorded studies.",
}

_MODULES = {"import": "import_curve"}
"""The modules of commands whose names Python keeps for itself."""

_INTERRUPTED = 130
_ELSEWHERE = "What was recorded is kept; run this again with its output elsewhere."


class _Commands(click.Group):
    """Loads the module of a command when it is used, so that --help starts at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"advisor.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="batch-advisor", prog_name="advisor")
def advisor() -> None:
    """Find the batch size to train with, and tune the optimizer for it, on your model and hardware.

    A WORKLOAD is file.py[:name], package.module:name, or a study file.toml. Without one it is advisor.toml
    in this folder, and without that scikit-learn's handwritten digits.
    """


def main() -> None:
    """Run the command line; exit 0 done, 1 a fault to mend, 2 usage, 3 no answer, 130 interrupted."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    try:
        advisor.main(arguments, prog_name="advisor", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AdvisorError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_status
    except OSError as error:
        if _takes_output():
            raise
        reason = error.strerror or str(error)
        click.echo(f"Error: Standard output cannot be written: {reason}. {_ELSEWHERE}", err=True)
        return 1
    except (KeyboardInterrupt, click.Abort):
        again = shlex.join(["advisor", *arguments])
        click.echo(f"\nInterrupted; what was recorded is kept. To go on: {again}", err=True)
        return _INTERRUPTED
    return 0


def _takes_output() -> bool:
    """Return whether standard output takes one more line; if not, what is left for it is dropped."""
    try:
        print(flush=True)
    except OSError:
        # Else the interpreter would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
