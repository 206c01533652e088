"""One database that many tests use one after another, as making Optuna's tables takes long."""

from dataclasses import dataclass

import optuna
from optuna.storages import RDBStorage

from advisor.tuning.board import OptunaBoard


@dataclass(frozen=True)
class SharedDatabase:
    """A board, and Optuna's own view of its database."""

    url: str
    board: OptunaBoard
    storage: RDBStorage

    def study(self, name: str) -> optuna.Study:
        """Return a study as it stands in the database."""
        return optuna.load_study(study_name=name, storage=self.storage)

    def clear(self) -> None:
        """Delete every study."""
        for study in self.storage.get_all_studies():
            self.storage.delete_study(study._study_id)
