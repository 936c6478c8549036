"""Long runs made short: means over bins, and numbers as text that a page can hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..runs import Floats, RunData

VALUES = 1_300_000  # numbers in a page, about 5 bytes each: what keeps it below 10 MB
FEWEST, MOST = 40, 400  # points of a curve


def points(runs: int, metrics: int, room: int = VALUES) -> int:
    """Points that each curve may have, so that all of them fit into a page."""
    return int(np.clip(room // max(1, runs * metrics), FEWEST, MOST))


def bins(run: RunData, most: int) -> NDArray[np.int64]:
    """For each iteration, the number of its bin: its own, or where more are planned, one of `most` equal parts of the
    run's steps. Seeds have the same bins, also when some have not come as far."""
    steps = run.column("steps")
    planned = run.config["steps"] / steps[0]
    if max(planned, len(steps)) <= most:
        return np.arange(len(steps))
    width = max(run.config["steps"], steps[-1]) / most
    wanted = np.ceil(steps / width - 1e-9).astype(np.int64) - 1
    return np.unique(wanted, return_inverse=True)[1].astype(np.int64)  # where a bin has nobody it is left out


def binned(values: Floats, to: NDArray[np.int64]) -> Floats:
    """Mean of each bin over those that have a value; NaN where none has."""
    have = np.isfinite(values)
    count = np.bincount(to[have], minlength=to[-1] + 1)
    total = np.bincount(to[have], weights=values[have], minlength=to[-1] + 1)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)


def text(values: Floats | NDArray[np.int64], digits: int = 4) -> str:
    """Numbers between spaces, nothing for NaN; "=1.5 200" for 200 times the same. numbers.js reads it."""
    if len(values) and (values == values[0]).all():
        return f"={values[0]:.{digits}g} {len(values)}"
    form = f"%.{digits}g"
    return " ".join(["" if v != v else (form % v).replace("e+0", "e").replace("e-0", "e-") for v in values.tolist()])
