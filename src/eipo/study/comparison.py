"""`eipo compare`: the scores of runs, set beside each other and beside the paper's, with what they are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import EipoError, unknown
from . import paper
from .comparison_tables import (
    ByTask,
    Study,
    against_table,
    aggregate_table,
    improvement_table,
    loss_table,
    normalized_scores,
    paper_tables,
    papers_own_tables,
    scale_of,
    score_table,
    share_table,
    task_table,
)
from .normalize import SCALES, reference_scores
from .scores import PAPERS, Rule, Score, read_scores, write_table
from .statistics import DEFAULT, Bootstrap
from .tables import Table


@dataclass(frozen=True)
class Comparison:
    """What `eipo compare` prints and writes."""

    tables: dict[str, Table]  # by the name of its file
    notes: list[str]  # what the reader must know to read them right
    scores: list[Score] = field(default_factory=list, repr=False)
    study: Study | None = None
    normalized: dict[str, ByTask] = field(default_factory=dict, repr=False)
    focus: str = ""
    how: Bootstrap = DEFAULT


def compare(
    paths: Iterable[str | Path],
    *,
    with_paper: bool = False,
    rule: Rule = PAPERS,
    scale: str = "reference",
    reference: str = "eo",
    random: Path | None = None,
    focus: str | None = None,
    how: Bootstrap = DEFAULT,
) -> Comparison:
    """Compare the runs among `paths` and below, and the tables of scores (CSV) named there.

    `scale` says what counts as 1 in normalized scores, `random` is a table of more random scores, `focus` the method
    whose wins and losses are looked at task by task (eipo, if it is there). Without paths, and with the paper: its own
    tables alone.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    given = list(paths)
    if with_paper and not given:
        scores, shares = papers_own_tables()
        return Comparison({"paper_scores": scores, "paper_shares": shares}, [])
    found, notes = read_scores(given, rule)
    if not found:
        raise EipoError(f"there is nothing to compare: in none of the {len(notes)} runs has an episode ended")
    study = Study.of(found)
    focus = _focus(study, focus)
    tables = {"scores": score_table(study)}
    notes += _other_budgets(found)
    if with_paper:
        tables |= _paper(study, notes, found)
    normalized: dict[str, ByTask] = {}
    if scale == "reference" and reference not in study.methods:
        notes.append(f"no normalized scores, for {reference} is not there; name a --reference, or another --scale")
    else:
        normalized, left_out = normalized_scores(study, *scale_of(study, scale, reference, reference_scores(random)))
        notes += left_out
    if normalized:
        name = f"{scale} {reference}" if scale == "reference" else scale
        tables["aggregates"] = aggregate_table(normalized, name, how)
    if len(study.methods) > 1:
        tables |= _pairs(study, focus, how)
    single = {f"{s.method} on {s.task}" for s in found if len(study.scores[s.method][s.task]) == 1}
    if single:
        notes.append(f"one seed only, so intervals do not know how seeds differ: {_some(sorted(single))}")
    return Comparison(tables, notes, found, study, normalized, focus, how)


def _pairs(study: Study, focus: str, how: Bootstrap) -> dict[str, Table]:
    tables = {
        "improvement": improvement_table(study, True, how),
        "at_least": improvement_table(study, False, how),
        "shares": share_table(study, how),
        "against": against_table(study, focus, how),
        "by_task": task_table(study, focus),
    }
    losses = loss_table(study, focus, how)
    return tables if losses is None else tables | {"losses": losses}


def _focus(study: Study, wish: str | None) -> str:
    if wish is None:
        return study.methods[-1]  # eipo, where it is there
    if wish not in study.methods:
        raise unknown("method", wish, study.methods)
    return wish


def _other_budgets(scores: list[Score]) -> list[str]:
    """Scores after other numbers of steps are not the same thing."""
    notes = []
    for task in sorted({s.task for s in scores}):
        steps = {s.steps for s in scores if s.task == task}
        if max(steps) > 1.02 * min(steps):
            notes.append(f"{task}: runs have from {min(steps)} to {max(steps)} steps; compare alike with --steps")
    return notes


def _paper(study: Study, notes: list[str], scores: list[Score]) -> dict[str, Table]:
    games = {t: g for t in study.tasks if (g := paper.game_of(t)) is not None}
    if not games:
        raise EipoError(
            f"none of the paper's 61 Atari games is among {_some(study.tasks)}, so nothing stands beside it"
        )
    for task, game in games.items():
        most, theirs = max(s.steps for s in scores if s.task == task), paper.steps_of(game)
        if most < 0.98 * theirs:
            notes.append(f"{task}: trained for up to {most} steps, the paper for {theirs}")
    beside, shares = paper_tables(study)
    return {"paper": beside, "paper_shares": shares}


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def write_comparison(comparison: Comparison, out: Path) -> list[Path]:
    """Each table as CSV and Markdown, all as Markdown and LaTeX, the seeds' scores, the figure. Returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    texts: Mapping[str, str] = {
        **{f"{name}.csv": table.csv() for name, table in comparison.tables.items()},
        **{f"{name}.md": table.markdown() for name, table in comparison.tables.items()},
        "compare.md": "\n".join([*(t.markdown() for t in comparison.tables.values()), *_as_list(comparison.notes)]),
        "compare.tex": "\n".join(t.latex() for t in comparison.tables.values()),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    files = [out / name for name in texts]
    if comparison.scores:
        write_table(comparison.scores, out / "seeds.csv")
        files.append(out / "seeds.csv")
    if comparison.study is not None and len(comparison.study.methods) > 1:
        from .comparison_figure import draw  # matplotlib takes a second to load

        files += draw(comparison, out)
    return files


def _as_list(notes: list[str]) -> list[str]:
    return [*(f"- {note}" for note in notes), ""] if notes else []
