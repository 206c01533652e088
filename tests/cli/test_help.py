import subprocess
import sys

import click
import pytest

from advisor.cli import advisor, run
from advisor.cli.options import FiniteNumber

HEAVY = ("tensorflow", "keras", "numpy", "scipy", "optuna", "sqlalchemy", "rich", "cloudpickle")
COMMANDS = advisor.list_commands(click.Context(advisor))


@pytest.mark.parametrize("arguments", [[], *[[name] for name in COMMANDS]], ids=str)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom advisor.cli import run\n"
        f"status = run({[*arguments, '--help']})\n"
        f"print(status, [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    command = advisor.get_command(click.Context(advisor), name)
    assert command is not None and command.name == name and command.help
    undocumented = [
        option.name for option in command.params if isinstance(option, click.Option) and not option.help
    ]
    assert undocumented == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_takes_a_number_that_is_not_finite(name: str) -> None:
    command = advisor.get_command(click.Context(advisor), name)
    assert command is not None
    numbers = [one.type for one in command.params if "float" in one.type.name]
    assert all(isinstance(number, FiniteNumber) for number in numbers)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tune"], "Missing option '--batch'"),
        (["tune", "--batch", "many"], "'many' is not a valid integer"),
        (["recommend", "--objective", "fame"], "'fame' is not one of 'time', 'cost', 'balanced'"),
        (["recommend", "--deadline", "soon"], 'Got "soon" as a duration; valid is'),
        (["recommend", "--upfront-cost", "512"], "'' is not a valid float"),
        (["recommend", "--upfront-cost", "8=x"], "valid is a batch size with its amount, as in 512=200"),
        (["recommend", "--upfront-cost", "8=1", "--upfront-cost", "8=2"], "has one upfront cost"),
        (["recommend", "--upfront-cost", "0=5"], "0 is not in the range"),
        (["recommend", "--no-training", "--deadline", "2h", "--dry-run"], "leave out --deadline, --dry-run"),
        (["measure", "--batch-sizes", "64,x"], "is not a list of whole numbers such as 64,256"),
        (["measure", "--batch-sizes", "64,0"], "0 is not a batch size"),
        (["measure", "--min", "8", "--max", "4"], "--min 8 is above --max 4"),
        (["measure", "--min", "8", "--batch-sizes", "4"], "leave out --min and --max"),
        (["measure", "--seconds", "nan"], "'nan' is not a finite number"),
        (["measure", "--seconds", "inf"], "'inf' is not a finite number"),
        (["measure", "--precision", "nan"], "'nan' is not a finite number"),
        (["measure", "--timeout", "-inf"], "-inf is not in the range"),
        (["recommend", "--overhead", "inf"], "inf is not in the range"),
        (["import", "any.csv", "--overhead", "1e300"], "1e+300 is not in the range"),
        (["recommend", "--price", "nan"], "'nan' is not a finite number"),
        (["guess"], "No such command 'guess'"),
    ],
    ids=str,
)
def test_wrong_usage_is_told_with_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert words in " ".join(capsys.readouterr().err.split())
