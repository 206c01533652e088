"""Time per step as a line in the batch size: a fixed part, and a part for each example."""

from collections.abc import Sequence

import numpy as np
from scipy import optimize

from advisor.analysis.statistics import Floats
from advisor.records.measurement import BatchThroughput, TimeModel

_NEGLIGIBLE_SHARE = 1e-6


def fit_time_model(rows: Sequence[BatchThroughput]) -> TimeModel | None:
    """Fit time per step = fixed + per example × batch size to at least three measured sizes.

    Both parts are at least 0; the error is that of the logarithm, so that every size counts alike, with a
    robust loss, since single sizes may run on another program of the device.
    """
    measured = [(row.batch_size, row.time_per_step_s.estimate) for row in rows if row.time_per_step_s]
    if len(measured) < 3:
        return None
    sizes, times = np.array(measured, dtype=np.float64).T
    relative = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]
    scale = 1 / relative.max(axis=0)
    design = relative * scale

    def log_residuals(parts: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(design @ parts, 1e-12)), dtype=np.float64)

    start = np.maximum(optimize.nnls(design, np.ones_like(sizes))[0], 1e-6)
    fit = optimize.least_squares(log_residuals, start, bounds=(0, np.inf), loss="soft_l1", f_scale=0.1)
    fixed_s, per_example_s = np.where(fit.x > _NEGLIGIBLE_SHARE, fit.x, 0.0) * scale
    rms = float(np.sqrt(np.mean(log_residuals(fit.x) ** 2)))
    return TimeModel(float(fixed_s), float(per_example_s), rms)
