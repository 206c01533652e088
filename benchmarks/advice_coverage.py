"""The whole of `recommend` on the noisy quadratic model, many times, beside the model's exact answers.

For seeds that differ by 12 % in steps to target: how often the interval of the critical batch size covers the
truth, how far the estimate is off, and how much longer the recommended batch size takes than the best one.

    python benchmarks/advice_coverage.py [RUNS]
"""

import math
import statistics
import sys
import tempfile

import numpy as np

from advisor.analysis.quadratic import QuadraticModel, best_learning_rate
from advisor.execution.load import LoadWatch
from advisor.records.requests import BatchSizes, RecommendRequest
from advisor.reporting.note import search_note
from advisor.reporting.progress import QuietProgress
from advisor.storage.store import open_store
from advisor.training.quadratic_session import QuadraticSessions, QuadraticSettings
from advisor.tuning.board import open_board
from advisor.workflows.recommend import recommend
from advisor.workflows.tools import Tools

TARGET = 0.1
SIZES = [2**power for power in range(13)]
SETTINGS = QuadraticSettings(log_noise=0.12)


def main() -> None:
    """Print coverage, error and regret."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    model = QuadraticModel.power_law()
    steps = {size: best_learning_rate(model, size, TARGET)[1] or math.inf for size in SIZES}
    examples = [size * steps[size] for size in SIZES]
    wanted = 1.2 * min(examples)
    truth = math.exp(float(np.interp(math.log(wanted), np.log(examples), np.log(SIZES))))
    times = {size: steps[size] * (SETTINGS.fixed_s + SETTINGS.per_example_s * size) for size in SIZES}
    covered, ratios, widths, regrets = [], [], [], []
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/advisor.db"
            sessions, told = QuadraticSessions(SETTINGS), QuietProgress()
            tools = Tools(sessions, open_store(url), open_board(url), told, LoadWatch())
            request = RecommendRequest(
                batch_sizes=BatchSizes(1, SIZES[-1]), max_examples_per_trial=10**9, seed=1000 * seed
            )
            advice = recommend(tools, request, search_note)
        interval = advice.fit.critical_batch_size
        assert interval is not None and advice.recommendation is not None
        covered.append(interval.low <= truth <= interval.high)
        ratios.append(interval.estimate / truth)
        widths.append(interval.high / max(interval.low, 1e-9))
        regrets.append(times[advice.recommendation.batch_size] / min(times.values()) - 1)
    print(f"critical batch size, exactly: {truth:.1f}; runs: {runs}")
    print(f"95 % intervals that cover it: {np.mean(covered):.0%}")
    print(
        f"estimate over truth: median {statistics.median(ratios):.2f}, "
        f"5 to 95 %: {np.quantile(ratios, 0.05):.2f} to {np.quantile(ratios, 0.95):.2f}"
    )
    print(f"high over low end of the interval: median {statistics.median(widths):.1f}")
    print(
        f"recommended batch size slower than the best: mean {np.mean(regrets):.1%}, worst {max(regrets):.1%}"
    )


if __name__ == "__main__":
    main()
