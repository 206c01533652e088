"""The hyperparameters of one trial, by attribute and by key."""

from collections.abc import Iterator, Mapping

from advisor.records.search_space import HyperparameterValue


class Hyperparameters(Mapping[str, HyperparameterValue]):
    """The values of one trial; remembers in ``names_read`` which of them were looked at.

    A value that was read is a constant of whatever was built from it, so a change in it needs a rebuild.
    """

    def __init__(self, values: Mapping[str, HyperparameterValue]) -> None:
        self._values = dict(values)
        self.names_read: set[str] = set()

    def __getitem__(self, name: str) -> HyperparameterValue:
        if name not in self._values:
            raise KeyError(self._unknown(name))
        self.names_read.add(name)
        return self._values[name]

    def __getattr__(self, name: str) -> HyperparameterValue:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            raise AttributeError(self._unknown(name))
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Hyperparameters({self._values!r})"

    def _unknown(self, name: str) -> str:
        known = ", ".join(sorted(self._values))
        return f"no hyperparameter {name!r}; there are {known}. Add it to the workload's search_space."
