"""Where agents have been, for a page: boards once, and the visits of each run in three parts of its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...envs.maze.board import GOAL, WALL
from ..groups import Group
from ..maps import PARTS, STARTS, in_use
from ..runs import RunData, Visits
from . import thin


class Places:
    """The boards of some runs, and of each group the seeds whose visits have room on the page."""

    def __init__(self, groups: Sequence[Group], room: int = thin.VALUES // 2) -> None:
        self.boards: list[dict[str, Any]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        with_visits = [[run for run in group.runs if run.visits is not None] for group in groups]
        self.most = max((len(runs) for runs in with_visits), default=0)
        self.seeds = next((n for n in range(self.most, 1, -1) if _values(with_visits, n) <= room), min(1, self.most))
        self.values = _values(with_visits, self.seeds)
        self._kept = {id(run) for runs in with_visits for run in runs[: self.seeds]}

    def visits(self, run: RunData) -> dict[str, Any] | None:
        """By part and policy, how often each cell of the board that is not wall was entered."""
        if run.visits is None or id(run) not in self._kept:
            return None
        free = (run.visits.board != WALL).ravel()
        parts = [run.visits.counts[begin:end, :, free].sum(0) for _, begin, end in PARTS]  # (policies, cells) each
        return {
            "board": self._board(run.env, run.visits),
            "policies": run.visits.policies,
            "parts": [[thin.text(counts, 12) for counts in part] for part in parts],
        }

    def _board(self, env: str, visits: Visits) -> int:
        key = (env, visits.board.shape, visits.board.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.boards)
            self.boards.append(_board(env, visits))
        return self._numbers[key]


def _values(groups: Sequence[Sequence[RunData]], seeds: int) -> int:
    """Numbers that the visits of so many seeds of each group take."""
    some = [run.visits for runs in groups for run in runs[:seeds] if run.visits is not None]
    return sum(len(PARTS) * len(v.policies) * int((v.board != WALL).sum()) for v in some)


def _board(env: str, visits: Visits) -> dict[str, Any]:
    """The part of a board that is in use: cells in the order of the counts, and the walls beside them."""
    board, used = visits.board, in_use(visits.board)
    top, left = (int(np.flatnonzero(used.any(axis))[0]) for axis in (1, 0))
    bottom, right = (int(np.flatnonzero(used.any(axis))[-1]) for axis in (1, 0))
    start = STARTS.get(env)
    cells = [
        {"row": int(r) - top, "column": int(c) - left} | ({"kind": "goal"} if board[r, c] == GOAL else {})
        for r, c in np.argwhere(board != WALL)
    ]
    return {
        "rows": bottom - top + 1,
        "columns": right - left + 1,
        "cells": cells,
        "walls": [[int(r) - top, int(c) - left] for r, c in np.argwhere(used & (board == WALL))],
        "start": {"row": start[0] - top, "column": start[1] - left} if start else None,
    }
