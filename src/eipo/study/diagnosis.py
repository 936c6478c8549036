"""What is wrong with a run, as far as its metrics tell: a sentence for each known sickness of a second reward.

Every sentence rests on numbers of the run, and says them; docs/bonuses.md has the thresholds below in words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .figures import steps_in_words
from .runs import Floats, RunData

LATE = 0.2  # share of the iterations that are "the end"
FEWEST = 10  # iterations of which something can be said
DEAD = 0.01  # of the bonus' greatest spread
DROWNED = 0.9  # of what the mixed policy climbs
KEPT = 0.2  # of what had been gained of the return; less is lost
SURE = 4.0  # standard errors above the start that a gain must have been
SEEN = 0.1  # share of the iterations in which there was task reward, so that there is something to drown
ALIKE = 1e-3  # nats


@dataclass(frozen=True)
class Course:
    """How the return went: running means over a twentieth of the run, 3 iterations at least."""

    best: float
    when: float  # steps
    last: float
    rose: bool  # it was higher than at the start, by more than noise
    kept: bool  # and a fifth of that at least is still there

    @classmethod
    def of(cls, run: RunData) -> Course | None:
        steps, y = run.column("steps"), run.column("return")
        known = np.isfinite(y)
        steps, y = steps[known], y[known]
        if len(y) < FEWEST:
            return None
        window = max(3, len(y) // 20)
        mean = np.convolve(y, np.ones(window) / window, "valid")
        start, best, last = mean[0], mean.max(), y[-max(window, round(LATE * len(y) / 2)) :].mean()
        error = 1.48 * np.median(np.abs(np.diff(y))) / np.sqrt(2 * window)  # a few high ones do not make it noise
        when = steps[int(mean.argmax()) + window // 2]
        rose = best - start > max(SURE * error, 1e-9)
        return cls(float(best), float(when), float(last), bool(rose), bool(last >= start + KEPT * (best - start)))


def diagnose(run: RunData) -> list[str]:
    """A sentence for each sickness that the run has."""
    if len(run) < FEWEST:
        return []
    return [sentence for sickness in SICKNESSES if (sentence := sickness(run)) is not None]


def never_seen(run: RunData) -> str | None:
    """The task reward is the same in every step."""
    reward = _known(run.column("reward"))
    if not len(reward) or np.ptp(reward) > 1e-9 * np.abs(reward).max():
        return None
    if reward[0] == 0:
        return "The task reward has never been seen: it was 0 in every step."
    return f"The task reward has never changed: its mean was {reward[0]:.3g} a step in every iteration."


def lost_again(run: RunData) -> str | None:
    """Returns had risen, and are back where they began."""
    course = Course.of(run)
    if course is None or not course.rose or course.kept:
        return None
    return (
        f"The task reward was seen and lost again: the return was {course.best:.3g} around "
        f"{steps_in_words(course.when)} steps, and is {course.last:.3g}."
    )


def died(run: RunData) -> str | None:
    """The bonus no longer tells one step from another."""
    spread = _known(run.column("r_I_std"))
    if run.config.get("bonus", {}).get("name", "none") == "none" or not len(spread):
        return None
    if spread.max() <= 1e-6 * np.abs(_known(run.column("r_I"))).max(initial=0.0):  # rounding
        return "The bonus is dead: it has been the same in every step."
    now = _late(spread).mean() / spread.max()
    if now >= DEAD:
        return None
    return f"The bonus has died: its spread over the steps is {now:.1%} of what it was at its height."


def drowns(run: RunData) -> str | None:
    """There is task reward, hardly any of it in what the mixed policy climbs, and the return has not risen.

    Of a task that is solved little is left to climb, so the share alone says nothing.
    """
    seen, course = run.column("reward") != 0, Course.of(run)
    share = _known(run.column("bonus_share_EI")[seen])
    if not len(share) or np.mean(seen) < SEEN or course is None or (course.rose and course.kept):
        return None
    middle = float(np.median(share))
    if middle <= DROWNED:
        return None
    return (
        f"The bonus drowns the task: where there was task reward, {middle:.0%} of what the mixed policy climbed was "
        "bonus, and the return has not risen. Try a smaller method.lam."
    )


def collapsed(run: RunData) -> str | None:
    """The two policies do the same."""
    for name, words in (("kl_E_EI", "task and mixed policy"), ("kl_I_EI", "bonus and mixed policy")):
        kl = _known(_late(run.column(name)))
        if len(kl) and (middle := float(np.median(kl))) < ALIKE:
            return f"The two policies have collapsed onto each other: KL({words}) is {middle:.1e} nats."
    return None


SICKNESSES: tuple[Callable[[RunData], str | None], ...] = (never_seen, lost_again, died, drowns, collapsed)


def _known(x: Floats) -> Floats:
    return x[np.isfinite(x)]


def _late(x: Floats) -> Floats:
    return x[-max(1, round(LATE * len(x))) :]
