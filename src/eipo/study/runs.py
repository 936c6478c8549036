"""Read run directories (tracking.py says what they hold), also those that are still being written.

This module does not import torch: a report must not wait for it. So the names of the files stand here again.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ..errors import EipoError

CONFIG, METRICS, VISITS = "config.json", "metrics.jsonl", "visits.safetensors"
EPISODES, EPISODE_COLUMNS = "episodes.csv", ("iteration", "steps", "policy", "score", "length")
AGENT = ("agent.safetensors", "agent.json")  # written last, in this order
FORMAT = 1
NEEDED = ("env", "method_name", "seed", "steps")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Visits:
    """How often each cell of a board was entered."""

    counts: NDArray[np.int64]  # (slices of time, policies, cells)
    board: NDArray[np.generic]  # (rows, columns), the codes of envs/maze/board.py
    policies: list[str]


@dataclass(frozen=True)
class RunData:
    """One run, as far as it has come."""

    path: Path
    config: dict[str, Any]  # as `eipo.Config`, nested
    about: dict[str, Any]  # the rest of config.json: versions, machine, git, command, started
    numbers: dict[str, Floats] = field(repr=False)  # by metric: one value an iteration, NaN for null
    texts: dict[str, list[str]] = field(repr=False)  # metrics that are words (acted, stage), "" for null
    visits: Visits | None = field(repr=False)
    finished: bool

    def __len__(self) -> int:
        """Iterations."""
        return len(self.numbers.get("steps", ()))

    @property
    def method(self) -> str:
        return str(self.config["method_name"])

    @property
    def env(self) -> str:
        return str(self.config["env"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    def column(self, name: str) -> Floats:
        """A metric of every iteration; NaN throughout where the method has none of that name."""
        return self.numbers.get(name, np.full(len(self), np.nan))


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """The run directories among `paths` and below them, each once, in the order of `paths` and there by name."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            raise EipoError(f"{path} is not a directory" if path.exists() else f"{path} does not exist")
        below = list(_below(path))
        if not below:
            raise EipoError(f"{path} holds no run (a directory with {CONFIG} and {METRICS})")
        for run in below:
            found.setdefault(run.resolve(), run)
    if not found:
        raise EipoError("no run directory was named")
    return list(found.values())


def _below(path: Path) -> Iterable[Path]:
    for here, directories, files in os.walk(path, onerror=_refuse):
        directories.sort(key=_natural)
        if CONFIG in files and METRICS in files:
            directories.clear()  # runs do not lie inside runs
            yield Path(here)


def _refuse(error: OSError) -> None:
    raise EipoError(f"{error.filename} cannot be read: {error.strerror}") from error


def _natural(name: str) -> list[tuple[int, str]]:
    """eipo-2 before eipo-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def read_runs(paths: Iterable[str | Path]) -> list[RunData]:
    """All runs among `paths` and below them."""
    return [read_run(path) for path in find_runs(paths)]


def read_run(path: Path) -> RunData:
    """One run directory."""
    about = _read_config(path / CONFIG)
    numbers, texts = _read_metrics(path / METRICS)
    finished = all((path / name).is_file() for name in AGENT)
    visits = None
    if (path / VISITS).is_file():
        try:
            visits = _read_visits(path / VISITS)
        except EipoError:
            if finished:  # else it is being written right now
                raise
    return RunData(path, about.pop("config"), about, numbers, texts, visits, finished)


def curve(run: RunData, name: str) -> tuple[Floats, Floats]:
    """A metric over the steps, lightly smoothed: over 2 % of the run, and over 5 iterations at least."""
    steps = run.column("steps")
    iteration = steps[0] if len(steps) else 0.0
    window = max(0.02 * run.config["steps"], 4 * iteration)
    return smooth(*smooth(steps, run.column(name), window), window)  # twice: once lets through what alternates


def smooth(x: Floats, y: Floats, window: float) -> tuple[Floats, Floats]:
    """Mean of y within `window` around each x, which is sorted; points without a value are left out."""
    known = np.isfinite(y)
    x, y = x[known], y[known]
    total = np.concatenate([[0.0], np.cumsum(y)])
    low, high = np.searchsorted(x, x - window / 2, "left"), np.searchsorted(x, x + window / 2, "right")
    return x, (total[high] - total[low]) / (high - low)


def _read_config(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise EipoError(f"{file} cannot be read: {e}") from e
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict) or any(key not in config for key in NEEDED):
        raise EipoError(f"{file} is not the configuration of an eipo run")
    if content.get("format", FORMAT) > FORMAT:
        raise EipoError(f"{file} has format {content['format']}, this eipo reads up to {FORMAT}: upgrade eipo")
    return dict(content)


def _read_metrics(file: Path) -> tuple[dict[str, Floats], dict[str, list[str]]]:
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as e:
        raise EipoError(f"{file} cannot be read: {e.strerror}") from e
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                rows.append(dict(json.loads(line)))
        except (ValueError, TypeError) as e:
            if number == len(lines):  # no newline yet: the run is writing it
                break
            raise EipoError(f"{file}, line {number} is not a line of metrics: {e}") from e
    if any("steps" not in row for row in rows):
        raise EipoError(f"{file} is not the metrics of an eipo run: a line has no steps")
    return _columns(rows)


def _columns(rows: list[dict[str, Any]]) -> tuple[dict[str, Floats], dict[str, list[str]]]:
    numbers: dict[str, Floats] = {}
    texts: dict[str, list[str]] = {}
    names: dict[str, Any] = {}  # in the order in which they come; stages differ in what they measure
    for row in rows:
        names.update(row)
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = set(map(type, values))
        if str in kinds:
            texts[name] = ["" if v is None else str(v) for v in values]
        elif kinds <= {int, float, bool, type(None)}:
            numbers[name] = np.array(values, dtype=np.float64)  # None becomes NaN
    return numbers, texts


def _read_visits(file: Path) -> Visits:
    try:
        with safe_open(str(file), framework="numpy") as f:
            counts, board = f.get_tensor("visits"), f.get_tensor("board")
            policies = json.loads(f.metadata()["policies"])
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as e:
        raise EipoError(f"{file} cannot be read: {str(e).splitlines()[0]}") from e
    if board.ndim == 1 and math.isqrt(board.size) ** 2 == board.size:
        board = board.reshape(math.isqrt(board.size), -1)
    if board.ndim != 2 or counts.shape[1:] != (len(policies), board.size):
        raise EipoError(f"{file} holds visits {counts.shape} of {policies} that do not fit its board {board.shape}")
    return Visits(counts, board, policies)
