"""What many scores say: mean, median, interquartile mean, each with an interval by the bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

RESAMPLES, CONFIDENCE = 2000, 0.95


def iqm(scores: np.ndarray) -> np.ndarray:
    """Mean of the middle half, along the last axis; of n scores, the lowest and the highest n // 4 are left out."""
    cut = scores.shape[-1] // 4
    return np.sort(scores, -1)[..., cut : scores.shape[-1] - cut].mean(-1)


MEASURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda x: x.mean(-1),
    "median": lambda x: np.median(x, -1),
    "iqm": iqm,
}


def summary(scores: Sequence[float], seed: int = 0) -> dict[str, Any]:
    """{measure: value, measure_interval: [low, high]}: percentile bootstrap over the scores, repeatable by its seed."""
    x = np.asarray(scores, np.float64)
    drawn = x[np.random.default_rng(seed).integers(len(x), size=(RESAMPLES, len(x)))]  # (RESAMPLES, n)
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    found: dict[str, Any] = {}
    for name, measure in MEASURES.items():
        found[name] = float(measure(x))
        found[f"{name}_interval"] = np.quantile(measure(drawn), tails).tolist()
    return found
