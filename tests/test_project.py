"""The rules of the code base: rooms, types, style."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [["lint-imports"], ["mypy"], ["ruff", "check", "."], ["ruff", "format", "--check", "."]],
    ids=["rooms", "types", "style", "format"],
)
def test_the_code_keeps_the_rules(command: list[str]) -> None:
    done = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("tensorflow", "keras", "numpy", "scipy", "optuna", "sqlalchemy", "rich", "click")
    program = (
        "import sys, advisor, advisor.wiring\n"
        "advisor.Workload, advisor.Target, advisor.Float, advisor.measure\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_resolve() -> None:
    import advisor

    assert {name for name in advisor.__all__ if getattr(advisor, name) is not None} == set(advisor.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Workloads'"):
        advisor.Workloads  # noqa: B018
