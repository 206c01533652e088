"""A process that opens one database, with both rooms that write to it, and runs trials.

``python -m tests.storage.worker URL TRIALS``; prints the numbers of its trials.
"""

import sys

from advisor.records.search_space import Float
from advisor.records.trials import TrialState
from advisor.storage.store import open_store
from advisor.tuning.board import open_board
from tests.contracts import samples

POINTS = 3


def main(url: str, trials: int) -> None:
    store, board = open_store(url), open_board(url)
    study = store.open_study(samples.study()).name
    board.open(samples.study(), {"learning_rate": Float(1e-4, 1.0, log=True)}, seed=0)
    for turn in range(trials):
        number = board.ask(study)[0] if turn % 2 else board.ask_at(study, {"learning_rate": 0.125})
        store.start_trial(study, number, samples.plan(0.125))
        for step in range(1, POINTS + 1):
            store.record_point(study, number, samples.point(step))
            board.report(study, number, step, 0.5)
        store.finish_trial(study, number, TrialState.COMPLETE, "ran all its steps")
        board.tell(study, number, TrialState.COMPLETE, number / 100, "ran all its steps")
        print(number, flush=True)
    store.close()
    board.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
