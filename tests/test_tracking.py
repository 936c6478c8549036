"""What a run of the maze keeps of where its agents have been."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import safe_open

import eipo
from eipo.envs.maze.board import BOARD, START


def test_a_maze_run_counts_every_visit_by_policy_and_time(tmp_path: Path) -> None:
    settings = {"envs.num": 4, "envs.steps": 25, "net.dense": 8, "net.width": 8, "bonus.features": 8}
    run = eipo.train("eipo/Maze-v0", method="eipo", steps=1000, settings=settings, out=tmp_path / "run")
    with safe_open(tmp_path / "run" / "visits.safetensors", "np") as f:
        visits, board = f.get_tensor("visits"), f.get_tensor("board")
        policies = json.loads(f.metadata()["policies"])
    assert policies == ["E", "EI"]
    assert visits.shape == (10, 2, BOARD.size)
    assert visits.sum() == 1000  # 10 iterations of 4 x 25 steps, one in each slice of time
    assert (visits.sum(axis=(1, 2)) == 100).all()
    acted = [m["acted"] for m in run.metrics]
    assert [int(visits[i, policies.index(p)].sum()) for i, p in enumerate(acted)] == [100] * 10
    assert (board.ravel() == BOARD).all()
    assert visits[0, 1, START] > 0  # the first stage is MIN: pi_EI acts
    assert visits[:, :, BOARD == 1].sum() == 0  # nobody stands in a wall
