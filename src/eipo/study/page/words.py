"""The page's words: what metrics are called, and what it says of the runs as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures import METHODS, steps_in_words
from ..groups import Group
from ..runs import RunData
from .places import Places

TITLES = {  # name: (what it is, unit)
    "return": ("Task return of an episode, by the policy that acted", "raw reward an episode"),
    "return_E": ("Task return of the task policy", "raw reward an episode"),
    "return_EI": ("Task return of the mixed policy", "raw reward an episode"),
    "return_I": ("Task return of the reference policy", "raw reward an episode"),
    "return_mixed": ("Task return of episodes in which both policies acted", "raw reward an episode"),
    "length": ("Length of an episode", "steps"),
    "alpha": ("Alpha, the weight of the constraint", ""),
    "gap": ("Gap: what the mixed policy earns more than the task policy", "scaled reward a step"),
    "bonus_share_E": ("The bonus' share of what the task policy climbs", "0 to 1"),
    "bonus_share_EI": ("The bonus' share of what the mixed policy climbs", "0 to 1"),
    "lam": ("Weight of the bonus", ""),
    "bonus": ("Bonus as it is given", "raw bonus a step"),
    "r_I": ("Bonus, divided by its running scale", "scaled bonus a step"),
    "reward": ("Task reward", "raw reward a step"),
    "entropy_E": ("Entropy of the task policy", "nats"),
    "entropy_EI": ("Entropy of the mixed policy", "nats"),
    "kl_E_EI": ("KL between task policy and mixed policy", "nats"),
    "steps_per_second": ("Speed, acting and learning", "steps a second"),
}
MAIN = tuple(TITLES)
ABOUT = (
    "Runs that differ in nothing but their seed are drawn as one line. Returns are those of training episodes.",
    "Training time is the sum over iterations of their steps divided by their steps a second; evaluation and pauses "
    "are not in it.",
    "A curve has as many points as the page has room for: where a run has more iterations, a point is the mean of "
    "those in it, and the figure says of how many.",
    "Seeds are averaged where at least half of them have come. Bootstrap intervals resample seeds: of two or three "
    "they are the lowest and the highest, of one there are none.",
    "With Shift, a click on a method or a world shows it alone. The address keeps what is chosen: it can be saved as a "
    "bookmark.",
)


def metric(name: str) -> dict[str, str]:
    title, unit = TITLES.get(name, (name, ""))
    return {"name": name, "title": title, "unit": unit, "group": "main" if name in TITLES else "everything else"}


def title_of(runs: Sequence[RunData]) -> str:
    """The methods, and the worlds that they were trained in."""
    found = dict.fromkeys(run.method for run in runs)
    methods = sorted(found, key=lambda m: METHODS.index(m) if m in METHODS else len(METHODS))
    envs = list(dict.fromkeys(run.env for run in runs))
    several = methods[0] if len(methods) == 1 else f"{', '.join(methods[:-1])} and {methods[-1]}"
    return f"{several} on {envs[0] if len(envs) == 1 else f'{len(envs)} worlds'}"


def tiles_of(runs: Sequence[RunData], groups: Sequence[tuple[int, Group]]) -> list[tuple[str, str]]:
    """The size of the study: (number, what of)."""
    seeds = sorted({len({run.seed for run in group.runs}) for _, group in groups})
    unfinished = sum(not run.finished for run in runs)
    envs, methods = len({run.env for run in runs}), len({run.method for run in runs})
    tiles = [
        (f"{len(runs):,}", "run" if len(runs) == 1 else "runs"),
        (f"{methods}", "method" if methods == 1 else "methods"),
        (f"{envs}", "world" if envs == 1 else "worlds"),
        (
            f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}",
            "seed each" if seeds == [1] else "seeds each",
        ),
        (steps_in_words(sum(float(run.column("steps")[-1]) for run in runs)), "steps in all"),
    ]
    return [*tiles, (f"{unfinished:,}", "not finished")] if unfinished else tiles


def facts_of(runs: Sequence[RunData], metrics: Sequence[str], kept: Sequence[str], places: Places) -> list[str]:
    """How the page was made, and what it leaves out."""
    started = [run for run in runs if len(run)]
    versions = _each(str(run.about.get("versions", {}).get("eipo", "?")) for run in started)
    commits = _each(
        git["commit"][:7] + ("+" if git.get("dirty") else "") for r in started if (git := r.about.get("git"))
    )
    days = sorted(str(run.about["started"])[:10] for run in started if run.about.get("started"))
    facts = [f"Runs of eipo {versions}{f', commit {commits} (+: with changes)' if commits else ''}."]
    if days:
        facts[0] = f"{facts[0][:-1]}, started {days[0]}{f' to {days[-1]}' if days[-1] != days[0] else ''}."
    facts += ABOUT
    if len(kept) < len(metrics):
        facts.append(f"{len(metrics) - len(kept)} metrics are left out: there are too many runs for all of them.")
    if places.seeds < places.most:
        facts.append(f"Maps: the first {places.seeds} seeds of each group, for want of room.")
    if len(started) < len(runs):
        many = len(runs) - len(started)
        which = "run without a finished iteration is" if many == 1 else "runs without a finished iteration are"
        facts.append(f"{many} {which} left out.")
    return facts


def _each(things: Any) -> str:
    return ", ".join(sorted(set(things)))
