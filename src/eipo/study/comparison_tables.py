"""The tables of a comparison: scores, normalized aggregates, probabilities of improvement, shares, the paper's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from . import paper, statistics
from .normalize import Known, known_of, normalized
from .runs import Floats
from .scores import Score, method_order
from .statistics import Bootstrap, Estimate, at_least, probability_of_improvement
from .tables import Cell, Spread, Table

ByTask = dict[str, Floats]  # {task: (seeds,)}


@dataclass(frozen=True)
class Study:
    """The scores of a study, by method and task."""

    methods: list[str]  # as the paper lists them
    tasks: list[str]
    scores: dict[str, ByTask]
    means: dict[str, dict[str, float]]  # mean over seeds of the mean of the last episodes; the paper's p_PPO

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Study:
        methods, tasks = sorted({s.method for s in scores}, key=method_order), sorted({s.task for s in scores})
        found: dict[str, ByTask] = {m: {} for m in methods}
        means: dict[str, dict[str, float]] = {m: {} for m in methods}
        for m in methods:
            for t in tasks:
                mine = sorted((s for s in scores if s.method == m and s.task == t), key=lambda s: s.seed)
                if mine:
                    found[m][t] = np.array([s.score for s in mine])
                    means[m][t] = float(np.mean([s.mean for s in mine]))
        return cls(methods, tasks, found, means)

    def both(self, a: str, b: str) -> tuple[ByTask, ByTask]:
        """The scores of two methods on the tasks that both have."""
        common = [t for t in self.tasks if t in self.scores[a] and t in self.scores[b]]
        return {t: self.scores[a][t] for t in common}, {t: self.scores[b][t] for t in common}


def spread(x: Floats) -> Spread:
    return Spread(float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else float("nan"), len(x))


def score_table(study: Study) -> Table:
    """Every method on every task."""
    rows: list[list[Cell]] = []
    bold = set()
    for r, t in enumerate(study.tasks):
        cells = [spread(study.scores[m][t]) if t in study.scores[m] else None for m in study.methods]
        best = max(c.mean for c in cells if c is not None)
        bold |= {(r, i) for i, c in enumerate(cells, 1) if c is not None and at_least(np.array(c.mean), np.array(best))}
        rows.append([t, *cells])
    counts = sorted({len(x) for by_task in study.scores.values() for x in by_task.values()})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    title = f"Scores: mean ± standard deviation over {seeds} seed{'s' * (counts[-1] > 1)}"
    return Table(title, ["task", *study.methods], rows, frozenset(bold))


def scale_of(
    study: Study, scale: str, reference: str, known: Mapping[str, Known]
) -> tuple[dict[str, float], dict[str, float]]:
    """Which raw score is 0 and which is 1 on each task, where it is known."""
    zero, one = {}, {}
    for t in study.tasks:
        about = known_of(t, known)
        if about is None:
            continue
        zero[t] = about.random
        tops = {
            "reference": study.means.get(reference, {}).get(t),
            "human": about.human,
            "best": max(float(study.scores[m][t].mean()) for m in study.methods if t in study.scores[m]),
            "random": about.random + abs(about.random),
        }
        top = tops[scale]
        if top is not None:
            one[t] = top
    return zero, one


def normalized_scores(
    study: Study, zero: Mapping[str, float], one: Mapping[str, float]
) -> tuple[dict[str, ByTask], list[str]]:
    """Each method's normalized scores on the tasks that every method has, and notes on the tasks that are left out."""
    on_scale = {m: normalized(study.scores[m], zero, one) for m in study.methods}
    common = [t for t in study.tasks if all(t in on_scale[m] for m in study.methods)]
    reasons: dict[str, list[str]] = {}
    for t in study.tasks:
        if t not in common:
            why = (
                "no random score is known; give it by --random FILE" if t not in zero
                else "what counts as 1 is not known" if t not in one
                else "what counts as 1 is not above the random score" if one[t] <= zero[t]
                else "not every method has a score"
            )  # fmt: skip
            reasons.setdefault(why, []).append(t)
    notes = [f"not in the normalized scores, for {why}: {', '.join(tasks)}" for why, tasks in reasons.items()]
    return {m: {t: on_scale[m][t] for t in common} for m in study.methods} if common else {}, notes


def aggregate_table(scores: Mapping[str, ByTask], scale: str, how: Bootstrap) -> Table:
    """The four aggregates of normalized scores."""
    kinds: dict[str, Callable[..., Estimate]] = {
        "IQM": statistics.iqm, "mean": statistics.mean, "median": statistics.median,
        "optimality gap": statistics.optimality_gap,
    }  # fmt: skip
    rows: list[list[Cell]] = [[m, *(f(x, how=how) for f in kinds.values())] for m, x in scores.items()]
    tasks = len(next(iter(scores.values())))
    title = f"Normalized scores ({scale}), {tasks} task{'s' * (tasks > 1)}, {how.confidence:.0%} intervals"
    return Table(title, ["method", *kinds], rows)


def improvements(study: Study, strict: bool, how: Bootstrap) -> dict[str, dict[str, Estimate | None]]:
    """P(A > B), or P(A >= B), of every pair on the tasks that both have; None where there is none."""
    pairs = {a: {b: study.both(a, b) for b in study.methods if b != a} for a in study.methods}
    return {
        a: {b: statistics.improvement(x, y, strict, how) if x else None for b, (x, y) in others.items()}
        for a, others in pairs.items()
    }


def improvement_table(study: Study, strict: bool, how: Bootstrap) -> Table:
    """The matrix of them. What is certainly above a half is bold."""
    found, sign = improvements(study, strict, how), ">" if strict else ">="
    rows: list[list[Cell]] = [[a, *(found[a].get(b) for b in study.methods)] for a in study.methods]
    bold = {
        (r, i) for r, row in enumerate(rows) for i, c in enumerate(row) if isinstance(c, Estimate) and c.low > 0.5
    }  # fmt: skip
    title = f"P(row {sign} column): probability of improvement, mean over tasks, {how.confidence:.0%} intervals"
    return Table(title, [f"{sign}", *study.methods], rows, frozenset(bold))


def share_table(study: Study, how: Bootstrap) -> Table:
    """R(A, B) of every pair."""
    rows: list[list[Cell]] = []
    for a in study.methods:
        pairs = [study.both(a, b) for b in study.methods]
        shares = [statistics.share_at_least(*pair, how=how) if pair[0] else None for pair in pairs]
        rows.append([a, *(None if a == b else s for b, s in zip(study.methods, shares, strict=True))])
    title = (
        f"R(row, column): share of tasks where the row's mean is at least the column's, {how.confidence:.0%} intervals"
    )
    return Table(title, ["R", *study.methods], rows)


def against_table(study: Study, focus: str, how: Bootstrap) -> Table:
    """`focus` against each other method: what a README shows."""
    strict, weak = improvements(study, True, how)[focus], improvements(study, False, how)[focus]
    rows: list[list[Cell]] = []
    for b, p in strict.items():
        x, y = study.both(focus, b)
        rows.append([b, len(x), p, weak[b], statistics.share_at_least(x, y, how) if x else None])
    bold = {(r, 2) for r, row in enumerate(rows) if isinstance(c := row[2], Estimate) and c.low > 0.5}
    columns = ["B", "tasks", f"P({focus} > B)", f"P({focus} >= B)", f"R({focus}, B)"]
    return Table(f"{focus} against each other method, {how.confidence:.0%} intervals", columns, rows, frozenset(bold))


def task_table(study: Study, focus: str) -> Table:
    """P(focus > B) on each task apart: where it wins, and where it loses."""
    others = [m for m in study.methods if m != focus]
    rows: list[list[Cell]] = []
    for t, mine in study.scores[focus].items():
        theirs = [study.scores[m].get(t) for m in others]
        rows.append([t, *(None if y is None else probability_of_improvement(mine, y) for y in theirs)])
    bold = {(r, i) for r, row in enumerate(rows) for i, p in enumerate(row) if isinstance(p, float) and p > 0.5}
    return Table(f"P({focus} > column) on each task", ["task", *others], rows, frozenset(bold))


def loss_table(study: Study, focus: str, how: Bootstrap) -> Table | None:
    """The tasks on which a seed of the best other method more often than not beats one of `focus`; None without any."""
    rows: list[list[Cell]] = []
    for t, mine in study.scores[focus].items():
        others = {m: study.scores[m][t] for m in study.methods if m != focus and t in study.scores[m]}
        if others:
            best = max(others, key=lambda m: float(others[m].mean()))
            p = statistics.improvement({t: mine}, {t: others[best]}, how=how)
            if p.value < 0.5:
                rows.append([t, spread(mine), best, spread(others[best]), p])
    if not rows:
        return None
    columns = ["task", focus, "best other", "its score", f"P({focus} > it)"]
    return Table(f"Where {focus} loses to the best other method", columns, rows)


def paper_tables(study: Study) -> list[Table]:
    """A study's Atari games beside the paper's columns, and R of its methods and the paper's."""
    games = {t: g for t in study.tasks if (g := paper.game_of(t)) is not None}
    theirs = paper.atari_scores()
    rows: list[list[Cell]] = []
    for t, g in games.items():
        own = [spread(study.scores[m][t]) if t in study.scores[m] else None for m in study.methods]
        rows.append([g, *own, *(theirs[p][g] for p in theirs)])
    beside = Table("Beside the paper's mean scores", ["game", *study.methods, *(f"paper {p}" for p in theirs)], rows)
    shares: list[list[Cell]] = []
    for m in study.methods:
        mine = {t: x.mean() for t, x in study.scores[m].items() if t in games}
        if mine:
            ahead = [np.mean([x >= theirs[p][games[t]] for t, x in mine.items()]) for p in theirs]
            shares.append([m, *map(float, ahead), len(mine)])
    title = "R(row, paper's column): share of games where the row's mean is at least the paper's"
    return [beside, Table(title, ["R", *(f"paper {p}" for p in theirs), "games"], shares)]


def papers_own_tables() -> list[Table]:
    """The paper's scores, and the R(A, B) of its pairwise figure as far as they follow from them."""
    theirs = paper.atari_scores()
    names = list(theirs)
    rows: list[list[Cell]] = [[g, *(theirs[p][g] for p in names)] for g in theirs["EO"]]
    bold = {
        (r, i) for r, row in enumerate(rows) for i, c in enumerate(row[1:], 1)
        if c == max(x for x in row[1:] if isinstance(x, float))
    }  # fmt: skip
    shares: list[list[Cell]] = []
    for a in names:
        bounds = {b: paper.share_bounds(a, b) for b in names if b != a}
        shares.append([a, *(Estimate(bounds[b][1], *bounds[b]) if b in bounds else None for b in names)])
    title = "The paper's R(row, column); brackets: without and with the games whose printed means are equal"
    return [
        Table("The paper's mean scores", ["game", *names], rows, frozenset(bold)), Table(title, ["R", *names], shares)
    ]  # fmt: skip
