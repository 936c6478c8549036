"""One score for each seed, as the paper takes it: the median of the last 100 training episodes.

Scores come from run directories, or from a table (CSV) with a row a seed: task, method, seed, steps, score, and perhaps
mean (or mean_return) and episodes.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EipoError
from .episodes import last_episodes
from .runs import RunData, find_runs, read_run

LAST = 100  # episodes
COLUMNS = ("task", "method", "seed", "steps", "score")  # of a table; it may also have mean and episodes
NAMELESS = re.compile("env|seed|method_name|compute[.].*")  # settings that do not make another method
ORDER = ("eo", "rnd", "en", "dy", "dc")  # as the paper lists them; what it does not have follows, eipo comes last


@dataclass(frozen=True)
class Score:
    """One seed of a method on a task."""

    task: str  # the environment's id
    method: str  # its name, and what else tells it from others of that name
    seed: int
    steps: int  # that were made
    score: float  # median of the last episodes
    mean: float  # mean of the same
    episodes: int  # how many there were
    origin: str  # the run's directory, or the table and its line


@dataclass(frozen=True)
class Rule:
    """Which episodes make a score."""

    last: int = LAST
    policy: str = "any"  # any: whoever acted; task: those of the task policy alone, where it ever acted
    upto: int | None = None  # environment steps; later episodes are not looked at


PAPERS = Rule()


def read_scores(paths: Iterable[str | Path], rule: Rule = PAPERS) -> tuple[list[Score], list[str]]:
    """The scores of all runs among `paths` and below, and of tables named there; and what should be known of them."""
    given = list(map(Path, paths))
    tables = [p for p in given if p.is_file() and p.suffix == ".csv"]
    directories = [p for p in given if p not in tables]
    runs = [read_run(path) for path in find_runs(directories)] if directories or not tables else []
    scores, notes = score_runs(runs, rule)
    for table in tables:
        rows, left_out = read_table(table)
        scores += rows
        notes += left_out
    _refuse_twins(scores)
    return scores, notes


def score_runs(runs: Sequence[RunData], rule: Rule = PAPERS) -> tuple[list[Score], list[str]]:
    """A score for each run in which an episode has ended, and notes on what was left out or is not complete."""
    scores, notes = [], []
    labels = _labels(runs)
    for run, label in zip(runs, labels, strict=True):
        score = score_of(run, rule)
        if score is None:
            notes.append(f"left out, for no episode has ended: {run.path}")
            continue
        scores.append(replace(score, method=label))
        if not run.finished:
            notes.append(f"not finished, scored at {score.steps} of {run.config['steps']} steps: {run.path}")
        if score.episodes < rule.last:
            notes.append(f"only {score.episodes} episodes of the {rule.last} that make a score: {run.path}")
    return scores, notes


def score_of(run: RunData, rule: Rule = PAPERS) -> Score | None:
    """The median of a run's last episodes; None where none has ended."""
    found = last_episodes(run.path, rule.last, "E" if rule.policy == "task" else None, rule.upto)
    if rule.policy == "task" and not len(found):  # a method whose task policy does not act, or that has none
        found = last_episodes(run.path, rule.last, None, rule.upto)
    if not len(found):
        return None
    made = int(run.numbers["steps"][-1]) if len(run) else int(found.steps[-1])
    steps = made if rule.upto is None else min(made, rule.upto)
    median, mean = float(np.median(found.score)), float(found.score.mean())
    return Score(run.env, run.method, run.seed, steps, median, mean, len(found), str(run.path))


def _labels(runs: Sequence[RunData]) -> list[str]:
    """The name of each run's method, with the settings in which it differs from others of that name on its task.

    A method has the same name on all tasks: a setting that tells two of its runs apart on one task is named on all.
    """
    flat = [_flat(run.config) for run in runs]
    values: dict[tuple[str, str, str], set[str]] = {}
    for run, config in zip(runs, flat, strict=True):
        for key, value in config.items():
            values.setdefault((run.method, run.env, key), set()).add(repr(value))
    telling: dict[str, list[str]] = {}
    for (method, _, key), found in values.items():
        if len(found) > 1 and key not in telling.setdefault(method, []):
            telling[method].append(key)
    return [
        " ".join([run.method, *(f"{key.split('.')[-1]}={config.get(key)}" for key in telling.get(run.method, []))])
        for run, config in zip(runs, flat, strict=True)
    ]


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"ppo": {"lr": 1}} -> {"ppo.lr": 1}, without what does not tell methods apart."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        elif not NAMELESS.fullmatch(prefix + key):
            found[prefix + key] = value
    return found


def read_table(file: Path) -> tuple[list[Score], list[str]]:
    """Scores from a CSV with at least the columns of COLUMNS, and notes on rows without a score."""
    try:
        with file.open(encoding="utf-8", newline="") as f:
            reader = csv.DictReader(f)
            missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
            if missing:
                raise EipoError(f"{file} has no column {', '.join(missing)}; a table of scores has {','.join(COLUMNS)}")
            rows = [(row, f"{file}, line {reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise EipoError(f"{file} cannot be read: {e}") from e
    scores = [_row(row, where) for row, where in rows if row["score"] != ""]
    if not scores:
        raise EipoError(f"{file} holds no score")
    return scores, [f"left out, for no episode has ended: {where}" for row, where in rows if row["score"] == ""]


def _row(row: dict[str, str], where: str) -> Score:
    try:
        score = float(row["score"])
        mean = row.get("mean") or row.get("mean_return") or row["score"]
        episodes = row.get("episodes") or "0"
        found = Score(
            row["task"], row["method"], int(row["seed"]), int(float(row["steps"])), score, float(mean), int(episodes),
            where,
        )  # fmt: skip
    except (TypeError, ValueError) as e:
        raise EipoError(f"{where}: {e}") from e
    if not math.isfinite(score) or not found.task or not found.method:
        raise EipoError(f"{where}: a score must be finite, and have a task and a method")
    return found


def write_table(scores: Sequence[Score], file: Path) -> None:
    """What read_table reads."""
    with file.open("w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow([*COLUMNS, "mean", "episodes"])
        for s in sorted(scores, key=lambda s: (s.task, method_order(s.method), s.seed)):
            writer.writerow([s.task, s.method, s.seed, s.steps, s.score, s.mean, s.episodes])


def _refuse_twins(scores: Sequence[Score]) -> None:
    """A seed that is there twice would be counted twice."""
    seen: dict[tuple[str, str, int], str] = {}
    for s in scores:
        other = seen.setdefault((s.task, s.method, s.seed), s.origin)
        if other != s.origin:
            raise EipoError(f"seed {s.seed} of {s.method} on {s.task} is there twice: {other} and {s.origin}; name one")


def method_order(method: str) -> tuple[int, str]:
    """Sorts methods as the paper lists them."""
    name = method.split(" ")[0]
    middle = len(ORDER)
    return (ORDER.index(name) if name in ORDER else middle + name.startswith("eipo"), method)
