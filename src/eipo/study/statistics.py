"""What the scores of a study say: point estimates, and intervals by a bootstrap stratified over tasks. Pure NumPy.

Scores of a method are {task: scores of its seeds}. Tasks may differ in their number of seeds, and each weighs the same.
A statistic is a function of weighted scores: weights of one give its value, the counts of a resample another draw of
it. docs/statistics.md has the formulas, what they mean, and their tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EipoError
from .runs import Floats

Scores = Mapping[str, ArrayLike]  # {task: (seeds,)}


@dataclass(frozen=True)
class Estimate:
    """A value and its interval. The interval is NaN where no task has a second seed: there is nothing to draw from."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class Profile:
    """A performance profile: the share of runs above each threshold, with its interval."""

    tau: Floats  # (K,)
    value: Floats  # (K,)
    low: Floats  # (K,)
    high: Floats  # (K,)


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made: percentiles of `resamples` draws, the seeds of each task redrawn by themselves."""

    resamples: int = 2000
    confidence: float = 0.95
    seed: int = 0


DEFAULT = Bootstrap()


@dataclass(frozen=True)
class Weighted:
    """One method's scores with B sets of weights; each set adds up to the number of seeds, in every task."""

    scores: list[Floats]  # by task: (n,)
    weights: list[Floats]  # by task: (B, n)

    def means(self) -> Floats:
        """Mean over the seeds of each task: (B, T)."""
        return np.stack([w @ x / len(x) for x, w in zip(self.scores, self.weights, strict=True)], axis=1)


Statistic = Callable[..., Floats]  # of one or more Weighted -> (B, ...)


def bootstrapped(statistic: Statistic, *samples: Scores, how: Bootstrap = DEFAULT) -> tuple[Floats, Floats, Floats]:
    """Value, low and high end of a statistic of one or more methods on the same tasks."""
    checked = [_checked(s) for s in samples]
    tasks = sorted(checked[0])  # so that the draws do not depend on the order in which tasks are given
    for other in checked[1:]:
        if sorted(other) != tasks:
            raise EipoError(f"methods must have scores on the same tasks; {sorted(other)} are not {tasks}")
    scores = [[s[t] for t in tasks] for s in checked]
    value = statistic(*(Weighted(s, [np.ones((1, len(x))) for x in s]) for s in scores))[0]
    if all(len(x) < 2 for s in scores for x in s):
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    rng = np.random.default_rng(how.seed)
    weights: dict[int, list[Floats]] = {}
    # Whichever method is named first, each has the same draws: P(X > Y) and P(Y > X) are mirror images.
    for i in sorted(range(len(scores)), key=lambda i: [x.tolist() for x in scores[i]]):
        weights[i] = [_counts(len(x), how.resamples, rng) for x in scores[i]]
    drawn = statistic(*(Weighted(s, weights[i]) for i, s in enumerate(scores)))
    tail = (1 - how.confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return value, low, high


def _counts(n: int, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each of n seeds is drawn when n are drawn with replacement: (resamples, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)


def _checked(scores: Scores) -> dict[str, Floats]:
    found = {task: np.asarray(x, np.float64) for task, x in scores.items()}
    if not found:
        raise EipoError("there are no scores: name at least one task")
    for task, x in found.items():
        if x.ndim != 1 or not len(x):
            raise EipoError(f"scores of {task} must be a list of at least one number, one for each seed")
        if not np.isfinite(x).all():
            raise EipoError(f"scores of {task} hold {x[~np.isfinite(x)][0]}")
    return found


def _estimate(statistic: Statistic, *samples: Scores, how: Bootstrap) -> Estimate:
    return Estimate(*map(float, bootstrapped(statistic, *samples, how=how)))


# One method.


def mean(scores: Scores, how: Bootstrap = DEFAULT) -> Estimate:
    """The mean over tasks of the mean over seeds."""
    return _estimate(lambda s: s.means().mean(1), scores, how=how)


def median(scores: Scores, how: Bootstrap = DEFAULT) -> Estimate:
    """The median over tasks of the mean over seeds."""
    return _estimate(lambda s: np.median(s.means(), 1), scores, how=how)


def iqm(scores: Scores, how: Bootstrap = DEFAULT) -> Estimate:
    """The interquartile mean: the mean of the middle half of all scores, of all tasks together."""
    return _estimate(_iqm, scores, how=how)


def _iqm(s: Weighted) -> Floats:
    scores = np.concatenate(s.scores)  # (N,)
    order = np.argsort(scores, kind="stable")
    total, tasks = len(scores), len(s.scores)
    # A task's weights add up to N / T, so that all tasks weigh the same: with equal seeds, each score weighs 1.
    weights = np.concatenate([w * (total / tasks / w.shape[1]) for w in s.weights], axis=1)[:, order]  # (B, N)
    cut = total // 4  # as many whole scores as fit into a quarter, at either end
    upto = np.cumsum(weights, axis=1)
    inside = np.clip(np.minimum(upto, total - cut) - np.maximum(upto - weights, cut), 0, None)
    return inside @ scores[order] / (total - 2 * cut)


def optimality_gap(scores: Scores, target: float = 1.0, how: Bootstrap = DEFAULT) -> Estimate:
    """By how much scores fall short of `target`, on average; what lies above it does not make up for it."""

    def gap(s: Weighted) -> Floats:
        return Weighted([np.maximum(target - x, 0.0) for x in s.scores], s.weights).means().mean(1)

    return _estimate(gap, scores, how=how)


def performance_profile(scores: Scores, tau: ArrayLike, how: Bootstrap = DEFAULT) -> Profile:
    """The share of runs whose score is above each threshold, averaged over tasks."""
    taus = np.asarray(tau, np.float64)

    def shares(s: Weighted) -> Floats:
        above = [w @ (x[:, None] > taus) / len(x) for x, w in zip(s.scores, s.weights, strict=True)]  # T of (B, K)
        return np.mean(above, axis=0)

    return Profile(taus, *bootstrapped(shares, scores, how=how))


# Two methods.


def probability_of_improvement(x: ArrayLike, y: ArrayLike, strict: bool = True) -> float:
    """On one task: the probability that a seed of X scores higher than one of Y, ties counted half.

    With strict=False, that it scores at least as high: ties count whole.
    """
    return float(_wins(np.asarray(x, np.float64), np.asarray(y, np.float64), strict).mean())


def _wins(x: Floats, y: Floats, strict: bool) -> Floats:
    """S(x_i, y_j): (seeds of X, seeds of Y)."""
    tie = 0.5 if strict else 1.0
    return (x[:, None] > y) + tie * (x[:, None] == y)


def improvement(x: Scores, y: Scores, strict: bool = True, how: Bootstrap = DEFAULT) -> Estimate:
    """P(X > Y), or with strict=False P(X >= Y): the probability of improvement, averaged over tasks."""

    def average(a: Weighted, b: Weighted) -> Floats:
        every = [
            ((wa @ _wins(xa, xb, strict)) * wb).sum(1) / (len(xa) * len(xb))
            for xa, wa, xb, wb in zip(a.scores, a.weights, b.scores, b.weights, strict=True)
        ]  # T of (B,)
        return np.mean(every, axis=0)

    return _estimate(average, x, y, how=how)


def share_at_least(x: Scores, y: Scores, how: Bootstrap = DEFAULT) -> Estimate:
    """R(X, Y): the share of tasks where the mean score of X is at least that of Y."""
    return _estimate(lambda a, b: at_least(a.means(), b.means()).mean(1), x, y, how=how)


def at_least(x: Floats, y: Floats) -> Floats:
    """1 where x >= y, else 0. Equal scores may have means that differ in their last bits: those count as equal."""
    return (x >= y - 1e-12 * np.maximum(np.abs(x), np.abs(y))).astype(np.float64)
