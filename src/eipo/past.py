"""Files of a run that goes on from a checkpoint: cut back to what they were then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import EipoError


def _lines(path: Path) -> list[bytes]:
    """Whole lines; what has no end was being written when the run stopped."""
    if not path.is_file():
        raise EipoError(f"{path} is missing: the run cannot go on without what it has written so far")
    return path.read_bytes().split(b"\n")[:-1]


def _keep(path: Path, lines: list[bytes]) -> None:
    with open(path, "ab") as file:
        file.truncate(sum(len(line) + 1 for line in lines))


def cut_metrics(path: Path, iterations: int) -> list[dict[str, Any]]:
    """Keep a line for each of so many iterations, and read them."""
    lines = _lines(path)
    if len(lines) < iterations:
        raise EipoError(f"{path} has {len(lines)} lines, but the checkpoint is of iteration {iterations}")
    try:
        metrics = [json.loads(line) for line in lines[:iterations]]
    except ValueError as e:
        raise EipoError(f"{path} is damaged: {e}") from e
    _keep(path, lines[:iterations])
    return metrics


def last_metrics(path: Path) -> dict[str, Any]:
    """The last iteration's; empty where there is none."""
    try:
        return dict(json.loads(_lines(path)[-1]))
    except (IndexError, ValueError, TypeError, OSError, EipoError):
        return {}


def cut_episodes(path: Path, iterations: int) -> None:
    """Keep the rows of so many iterations; the first column says which."""
    header, *rows = _lines(path) or [b""]
    try:
        kept = [row for row in rows if int(row.partition(b",")[0]) <= iterations]
    except ValueError as e:
        raise EipoError(f"{path} is damaged: {e}") from e
    _keep(path, [header, *kept])


def spread(state: Mapping[str, Any], shape: tuple[int, ...], iterations: int) -> np.ndarray:
    """The visits of a checkpoint. In a run made longer since, a slice goes where its first iteration now lies."""
    visits = np.zeros(shape, np.int64)
    when, *which = np.unravel_index(state["cells"], shape)
    np.add.at(visits, (when * state["iterations"] // iterations, *which), state["visits"])
    return visits
