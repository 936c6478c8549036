"""The statistics: by hand, by rliable, and by what must hold for any scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import rliable.library as rly
import rliable.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eipo.errors import EipoError
from eipo.study import statistics
from eipo.study.statistics import (
    Bootstrap,
    Estimate,
    Scores,
    improvement,
    iqm,
    mean,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    share_at_least,
)  # fmt: skip

FEW = Bootstrap(resamples=50)
X = {"a": [1.0, 2.0, 3.0], "b": [0.0, 10.0]}
Y = {"a": [2.0, 2.0], "b": [0.0, 5.0, 20.0]}


def test_probability_by_hand() -> None:
    # 1 loses twice, 2 ties twice, 3 wins twice: (0 + 2 * 1/2 + 2) / 6. At least as high: (0 + 2 + 2) / 6.
    assert probability_of_improvement(X["a"], Y["a"]) == pytest.approx(3 / 6)
    assert probability_of_improvement(X["a"], Y["a"], strict=False) == pytest.approx(4 / 6)
    # 0 ties once, loses twice; 10 beats 0 and 5, loses to 20.
    assert probability_of_improvement(X["b"], Y["b"]) == pytest.approx(2.5 / 6)
    assert improvement(X, Y, how=FEW).value == pytest.approx((3 / 6 + 2.5 / 6) / 2)
    assert improvement(X, Y, strict=False, how=FEW).value == pytest.approx((4 / 6 + 3 / 6) / 2)


def test_aggregates_by_hand() -> None:
    assert mean(X, how=FEW).value == pytest.approx((2 + 5) / 2)
    three = X | {"c": [9.0]}
    assert median(three, how=FEW).value == pytest.approx(5)
    # Short of 4 by 3, 2, 1 in a, by 4, 0 in b: what lies above does not count.
    assert optimality_gap(X, target=4.0, how=FEW).value == pytest.approx((2 + 2) / 2)
    eight = {"a": [1.0, 2.0, 3.0, 4.0], "b": [50.0, 6.0, -70.0, 8.0]}
    assert iqm(eight, how=FEW).value == pytest.approx((2 + 3 + 4 + 6) / 4)  # without -70, 1 and 8, 50


def test_each_task_weighs_the_same_in_the_iqm() -> None:
    """Task b has half as many scores as a, so each weighs twice as much. Of six scores, one is cut at either end."""
    # Weights 3/4 (a: 1 2 3 4), 3/2 (b: 0, 10). Sorted 0 1 2 3 4 10; cut 1 at each end leaves 1/2 of 0, 1/2 of 10.
    expected = (0.5 * 0 + 0.75 * (1 + 2 + 3 + 4) + 0.5 * 10) / 4
    assert iqm({"a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 10.0]}, how=FEW).value == pytest.approx(expected)


def test_the_profile_by_hand() -> None:
    profile = performance_profile(X, [-1.0, 0.0, 1.5, 3.0, 10.0], how=FEW)
    assert profile.value == pytest.approx([1, (1 + 0.5) / 2, (2 / 3 + 0.5) / 2, (0 + 0.5) / 2, 0])
    assert (profile.low <= profile.value).all()
    assert (profile.value <= profile.high).all()


def test_the_share_of_tasks_by_hand() -> None:
    assert share_at_least(X, Y, how=FEW).value == 0.5  # means 2 and 5 against 2 and 25/3
    assert share_at_least(Y, X, how=FEW).value == 1.0


def test_equal_scores_tie_whatever_their_number() -> None:
    """The mean of seven times 20.9 differs from that of three times in its last bit."""
    assert sum([20.9] * 7) / 7 != 20.9 or sum([0.1] * 3) / 3 != 0.1
    for a, b in ((7, 3), (3, 7), (6, 5)):
        x, y = {"pong": [20.9] * a, "up": [0.1] * a}, {"pong": [20.9] * b, "up": [0.1] * b}
        assert share_at_least(x, y, how=FEW).value == 1.0


# rliable's matrices are (seeds, tasks).

RLIABLE: dict[str, tuple[Callable[..., Estimate], Callable[[np.ndarray], float]]] = {
    "mean": (mean, rliable.metrics.aggregate_mean),
    "median": (median, rliable.metrics.aggregate_median),
    "iqm": (iqm, rliable.metrics.aggregate_iqm),
    "gap": (optimality_gap, rliable.metrics.aggregate_optimality_gap),
}


def table(matrix: np.ndarray) -> dict[str, np.ndarray]:
    return {f"task {t}": matrix[:, t] for t in range(matrix.shape[1])}


@pytest.mark.parametrize("name", RLIABLE)
@pytest.mark.parametrize("shape", [(5, 12), (3, 7), (10, 61), (1, 5), (4, 1)])
def test_the_values_are_rliables(name: str, shape: tuple[int, int]) -> None:
    ours, theirs = RLIABLE[name]
    rng = np.random.default_rng(shape)
    for scores in (rng.normal(0.7, 1.0, shape), rng.integers(0, 3, shape).astype(float), rng.exponential(1.0, shape)):
        assert ours(table(scores), how=FEW).value == pytest.approx(float(theirs(scores)), abs=1e-12)


@pytest.mark.parametrize(("n", "m", "tasks"), [(5, 5, 12), (3, 8, 4), (5, 2, 61)])
def test_the_probability_is_rliables(n: int, m: int, tasks: int) -> None:
    rng = np.random.default_rng([n, m, tasks])
    for draw in (rng.normal, lambda *_, size: rng.integers(0, 4, size).astype(float)):
        x, y = draw(0.0, 1.0, size=(n, tasks)), draw(0.0, 1.0, size=(m, tasks))
        theirs = float(rliable.metrics.probability_of_improvement(x, y))
        assert improvement(table(x), table(y), how=FEW).value == pytest.approx(theirs, abs=1e-12)


@pytest.mark.filterwarnings("ignore:random_state is deprecated")
def test_the_intervals_are_rliables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are drawn, so they agree up to the draws. Tasks differ in level: drawn together they would differ more."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(np.arange(6) / 2, 1.0, (5, 6)), rng.normal(np.arange(6) / 3, 1.0, (6, 6))
    _, ends = rly.get_interval_estimates(
        {"x": x}, lambda s: np.array([f(s) for _, f in RLIABLE.values()]), reps=2000,
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    for i, (ours, _) in enumerate(RLIABLE.values()):
        close(ours(table(x)), ends["x"][:, i], 0.06)
    monkeypatch.setattr(np.random, "choice", np.random.RandomState(0).choice)  # pairs are drawn from the global one
    _, ends = rly.get_interval_estimates(
        {"x,y": [x, y]}, lambda *s: np.array([rliable.metrics.probability_of_improvement(*s)]), reps=300,
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    close(improvement(table(x), table(y)), ends["x,y"][:, 0], 0.12)


def test_the_profile_is_rliables() -> None:
    scores, tau = np.random.default_rng(4).normal(1.0, 1.0, (5, 8)), np.linspace(-1, 3, 9)
    values, ends = rly.create_performance_profile({"x": scores}, tau, reps=2000)
    ours = performance_profile(table(scores), tau)
    assert ours.value == pytest.approx(values["x"], abs=1e-12)
    assert ours.low == pytest.approx(ends["x"][0], abs=0.04)
    assert ours.high == pytest.approx(ends["x"][1], abs=0.04)


def close(ours: Estimate, theirs: np.ndarray, share: float) -> None:
    """Ends that differ by no more than a share of the interval's width."""
    assert [ours.low, ours.high] == pytest.approx(list(theirs), abs=share * (theirs[1] - theirs[0]))


# What must hold.

SEEDS = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=5)  # whole numbers: many ties
SCORES = st.dictionaries(st.sampled_from("abcd"), SEEDS, min_size=1)
# Two methods on the same tasks. Made once: no strategy is built while one draws.
TWO = st.dictionaries(st.sampled_from("abcd"), st.tuples(SEEDS, SEEDS), min_size=1).map(
    lambda both: ({t: x for t, (x, _) in both.items()}, {t: y for t, (_, y) in both.items()})
)


@settings(deadline=None, max_examples=60)
@given(TWO)
def test_a_pair_of_methods(pair: tuple[Scores, Scores]) -> None:
    x, y = pair
    strict, weak = improvement(x, y, how=FEW).value, improvement(x, y, strict=False, how=FEW).value
    back, weak_back = improvement(y, x, how=FEW).value, improvement(y, x, strict=False, how=FEW).value
    assert strict + back == pytest.approx(1)
    assert weak - strict == pytest.approx(weak_back - back)  # half the probability of a tie
    assert weak + 1e-12 >= strict
    assert improvement(x, x, how=FEW).value == pytest.approx(0.5)
    assert share_at_least(x, y, how=FEW).value + share_at_least(y, x, how=FEW).value >= 1
    assert share_at_least(x, x, how=FEW).value == 1.0


@settings(deadline=None, max_examples=60)
@given(SCORES, st.floats(0.1, 10), st.floats(-5, 5))
def test_aggregates_move_with_the_scores(scores: Scores, scale: float, shift: float) -> None:
    moved = {t: scale * np.asarray(x) + shift for t, x in scores.items()}
    for statistic in (mean, median, iqm):
        a, b = statistic(scores, how=FEW), statistic(moved, how=FEW)
        for before, after in zip((a.value, a.low, a.high), (b.value, b.low, b.high), strict=True):
            assert after == pytest.approx(scale * before + shift, abs=1e-9, nan_ok=True)
        every = np.concatenate([np.asarray(x) for x in scores.values()])
        assert every.min() - 1e-9 <= a.value <= every.max() + 1e-9


@settings(deadline=None, max_examples=40)
@given(SCORES)
def test_the_order_does_not_matter(scores: Scores) -> None:
    """Of tasks not even for the draws; of seeds not for the value."""
    tasks, seeds = {t: scores[t] for t in reversed(scores)}, {t: list(np.asarray(scores[t])[::-1]) for t in scores}
    for statistic in (mean, median, iqm, optimality_gap):
        found = statistic(scores, how=FEW)
        assert str(statistic(tasks, how=FEW)) == str(found)  # NaN too
        assert statistic(seeds, how=FEW).value == pytest.approx(found.value)


@settings(deadline=None, max_examples=30)
@given(SCORES)
def test_the_profile_falls_from_one_to_zero(scores: Scores) -> None:
    profile = performance_profile(scores, np.arange(-4.0, 5.0), how=FEW)
    assert profile.value[0] == pytest.approx(1)
    assert profile.value[-1] == 0
    assert (np.diff(profile.value) <= 1e-12).all()


@settings(deadline=None, max_examples=40)
@given(TWO)
def test_intervals_of_a_pair_are_mirror_images(pair: tuple[Scores, Scores]) -> None:
    x, y = pair
    assume(x != y)  # else who has which draw is a matter of who is named first
    there, back = improvement(x, y, how=FEW), improvement(y, x, how=FEW)
    assert [back.value, back.low, back.high] == pytest.approx(
        [1 - there.value, 1 - there.high, 1 - there.low], nan_ok=True
    )
    weak = improvement(x, y, strict=False, how=FEW)
    assert math.isnan(there.low) or (weak.low >= there.low - 1e-12 and weak.high >= there.high - 1e-12)


def test_the_same_seed_gives_the_same_interval() -> None:
    scores = table(np.random.default_rng(0).normal(size=(5, 4)))
    assert iqm(scores) == iqm(scores)
    assert iqm(scores, how=Bootstrap(seed=1)) != iqm(scores)
    assert iqm(scores, how=Bootstrap(seed=1)).value == iqm(scores).value


def test_seeds_are_redrawn_within_their_task() -> None:
    """Tasks that differ and seeds that do not: no uncertainty, which drawing from all scores would invent."""
    scores = {"a": [1.0] * 5, "b": [100.0] * 5}
    for statistic in (mean, median, iqm):
        estimate = statistic(scores)
        assert estimate.low == pytest.approx(estimate.value)
        assert estimate.high == pytest.approx(estimate.value)


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Of 10 seeds on 10 tasks; a percentile interval is a little too narrow."""
    rng, hits, trials = np.random.default_rng(0), 0, 200
    for _ in range(trials):
        estimate = mean(table(rng.normal(0.0, 1.0, (10, 10))), how=Bootstrap(resamples=300))
        hits += estimate.low <= 0.0 <= estimate.high
    assert 0.88 <= hits / trials <= 0.98


def test_one_seed_has_no_interval() -> None:
    estimate = mean({"a": [1.0], "b": [2.0]})
    assert estimate.value == 1.5
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)
    assert mean({"a": [1.0], "b": [2.0, 3.0]}).low == 1.5  # what b's seeds leave open


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ({}, "there are no scores"),
        ({"a": []}, "scores of a must be a list of at least one number"),
        ({"a": [[1.0]]}, "scores of a must be a list"),
        ({"a": [1.0, math.nan]}, "scores of a hold nan"),
        ({"a": [-math.inf]}, "scores of a hold -inf"),
    ],
)
def test_scores_that_are_none(scores: Scores, says: str) -> None:
    with pytest.raises(EipoError, match=says):
        mean(scores)


def test_methods_on_other_tasks_are_not_comparable() -> None:
    with pytest.raises(EipoError, match="must have scores on the same tasks"):
        improvement({"a": [1.0]}, {"b": [1.0]})
    assert Bootstrap(2000, 0.95, 0) == statistics.DEFAULT
