"""Scores of different tasks on one scale: 0 is what a random policy earns, 1 is what a reference earns."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EipoError
from .paper import game_of, read_data
from .runs import Floats

SCALES = {
    "reference": "1 is the mean score of the reference method; with eo, the paper's PPO-normalized score",
    "best": "1 is the mean score of the method that did best on the task",
    "human": "1 is the score of a human tester, known for 54 of the paper's 61 Atari games",
    "random": "multiples of the random score's size: 1 is earning that much more than it",
}


@dataclass(frozen=True)
class Known:
    """What is known of a task beside the scores of a study."""

    random: float
    human: float | None


def reference_scores(file: Path | None = None) -> dict[str, Known]:
    """By Gymnasium id or Atari game: the package's table, and over it a user's CSV with columns task,random[,human]."""
    known = _known(read_data("reference_scores.csv"), "reference_scores.csv")
    if file is not None:
        try:
            with file.open(encoding="utf-8", newline="") as f:
                rows = list(csv.DictReader(f))
        except (OSError, UnicodeDecodeError, csv.Error) as e:
            raise EipoError(f"{file} cannot be read: {e}") from e
        if not rows or not {"task", "random"} <= set(rows[0]):
            raise EipoError(f"{file} is not a table of random scores: it needs the columns task,random")
        known |= _known(rows, str(file))
    return known


def _known(rows: Iterable[Mapping[str, str]], where: str) -> dict[str, Known]:
    found = {}
    for line, row in enumerate(rows, 2):
        try:
            human = row.get("human")
            found[row["task"]] = Known(float(row["random"]), float(human) if human else None)
        except (TypeError, ValueError) as e:
            raise EipoError(f"{where}, line {line}: {e}") from e
    return found


def known_of(task: str, known: Mapping[str, Known]) -> Known | None:
    """By id; by game, where the id names one of the paper's."""
    return known.get(task) or known.get(game_of(task) or "")


def normalized(
    scores: Mapping[str, ArrayLike], zero: Mapping[str, float], one: Mapping[str, float]
) -> dict[str, Floats]:
    """(x - zero) / (one - zero) on the tasks where both are known and one lies above zero."""
    return {
        task: (np.asarray(x, np.float64) - zero[task]) / (one[task] - zero[task])
        for task, x in scores.items()
        if task in zero and task in one and one[task] > zero[task]
    }
