"""The episodes of a run, from episodes.csv (tracking.py writes it, docs/metrics.md says what it holds)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import EipoError
from .runs import EPISODE_COLUMNS, EPISODES, Floats

HEADER = ",".join(EPISODE_COLUMNS).encode()
BLOCK = 1 << 16  # bytes read at first; four times as many whenever they hold too few episodes


@dataclass(frozen=True)
class Episodes:
    """Episodes that ended, oldest first; all arrays have one entry an episode."""

    iteration: NDArray[np.int64]
    steps: NDArray[np.int64]  # of the whole run, at the end of that iteration
    policy: NDArray[np.str_]  # E, EI or mixed
    score: Floats
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, which: slice | NDArray[np.bool_]) -> Episodes:
        return Episodes(
            self.iteration[which], self.steps[which], self.policy[which], self.score[which], self.length[which]
        )


def read_episodes(run: Path) -> Episodes:
    """All episodes of a run directory, also of one that is being written."""
    return last_episodes(run, None)


def last_episodes(run: Path, count: int | None, policy: str | None = None, upto: int | None = None) -> Episodes:
    """The last `count` episodes of `policy` (None: whoever acted) that ended within the run's first `upto` steps.

    Fewer where there are fewer. Reads the file from its end, and no more of it than it needs: hundreds of long runs
    are compared in seconds.
    """
    file, size = run / EPISODES, BLOCK
    try:
        with file.open("rb") as f:
            if f.readline().rstrip(b"\r\n") != HEADER:
                raise EipoError(f"{file} does not begin with {HEADER.decode()}")
            begin, end = f.tell(), f.seek(0, os.SEEK_END)
            while True:
                start = begin if count is None else max(begin, end - size)
                f.seek(start)
                lines = f.read(end - start).split(b"\n")
                # What follows the last newline is being written; what the block begins with may be half a line.
                found = _parsed(lines[0 if start == begin else 1 : -1], file)
                keep = np.ones(len(found), bool) if policy is None else found.policy == policy
                if upto is not None:
                    keep &= found.steps <= upto
                if start == begin or np.count_nonzero(keep) >= (count or 0):
                    return found[keep][-count if count else 0 :]
                size *= 4
    except FileNotFoundError as e:
        why = "it was trained before runs kept their episodes, so train it again"
        raise EipoError(f"{run} has no {EPISODES}: {why}") from e
    except OSError as e:
        raise EipoError(f"{file} cannot be read: {e.strerror}") from e


def _parsed(lines: list[bytes], file: Path) -> Episodes:
    rows = [line.split(b",") for line in lines]
    try:
        if any(len(row) != len(EPISODE_COLUMNS) for row in rows):
            raise ValueError("a line has not five values")
        iteration, steps, policy, score, length = zip(*rows, strict=True) if rows else ((),) * 5
        return Episodes(
            np.array(iteration, np.int64), np.array(steps, np.int64), np.array([p.decode() for p in policy], np.str_),
            np.array(score, np.float64), np.array(length, np.int64),
        )  # fmt: skip
    except ValueError as e:
        raise EipoError(f"{file} is damaged: {e}") from e
