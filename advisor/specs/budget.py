"""Budgets as people write them: ``steps=500``, ``examples=100_000``."""

from advisor.errors import SpecError
from advisor.records.budget_comparison import Budget, BudgetKind
from advisor.specs.choices import check_numbers


def parse_budget(given: str | Budget) -> Budget:
    """Return the budget that ``given`` says.

    Raises :class:`~advisor.errors.SpecError` for anything but ``steps=N`` and ``examples=N`` with a whole
    number N from 1.
    """
    budget = given if isinstance(given, Budget) else _parsed(given)
    check_numbers({budget.kind.value: budget.amount})
    return budget


def _parsed(text: str) -> Budget:
    kind, _, amount = (part.strip() for part in text.partition("="))
    try:
        return Budget(BudgetKind(kind), int(amount))
    except ValueError:
        raise SpecError(
            f"Got {text!r} as a budget; valid is steps=N or examples=N, such as steps=500, which every "
            "batch size is then given."
        ) from None
