import pytest

from advisor.errors import SpecError
from advisor.records.budget_comparison import Budget, BudgetKind
from advisor.specs.budget import parse_budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("steps=500", Budget(BudgetKind.STEPS, 500)),
        (" examples = 100_000 ", Budget(BudgetKind.EXAMPLES, 100_000)),
        ("steps=1", Budget(BudgetKind.STEPS, 1)),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget == parse_budget(budget)


@pytest.mark.parametrize("text", ["", "500", "epochs=3", "steps", "steps=", "steps=1.5", "steps=ten"])
def test_anything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(SpecError, match=r"valid is steps=N or examples=N"):
        parse_budget(text)


@pytest.mark.parametrize("budget", ["steps=0", "examples=-5", Budget(BudgetKind.STEPS, 0)])
def test_less_than_one_is_refused(budget: str | Budget) -> None:
    with pytest.raises(SpecError, match="valid is a whole number of at least 1"):
        parse_budget(budget)


def test_steps_are_whole_batches() -> None:
    budget = Budget(BudgetKind.EXAMPLES, 1000)
    assert [budget.steps(size) for size in (1, 300, 1000, 1001)] == [1000, 3, 1, 0]
    assert budget.words == "1,000 examples" and Budget(BudgetKind.STEPS, 1).words == "1 step"
