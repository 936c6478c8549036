"""What a run keeps beside its metrics: each episode, and in the maze where its agents have been."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
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


TINY = {
    "envs.num": 4, "envs.steps": 25, "net.dense": 8, "bonus.features": 8, "ppo.epochs": 1, "ppo.minibatches": 1,
}  # fmt: skip


def test_every_episode_has_a_row(tmp_path: Path) -> None:
    settings = TINY | {"method.switch": "alternate"}
    run = eipo.train("CartPole-v1", method="eipo", steps=800, settings=settings, out=tmp_path / "run")
    with open(tmp_path / "run" / "episodes.csv") as f:
        rows = list(csv.DictReader(f))
    assert list(rows[0]) == ["iteration", "steps", "policy", "score", "length"]
    for metrics in run.metrics:
        mine = [r for r in rows if int(r["iteration"]) == metrics["iteration"]]
        assert len(mine) == metrics["episodes"]
        assert {int(r["steps"]) for r in mine} <= {metrics["steps"]}
        for policy in ("E", "EI", "mixed"):
            scores = [float(r["score"]) for r in mine if r["policy"] == policy]
            assert metrics[f"return_{policy}"] == (pytest.approx(np.mean(scores)) if scores else None)
    assert {r["policy"] for r in rows} == {"E", "EI", "mixed"}
    assert all(float(r["score"]) == int(r["length"]) for r in rows)  # CartPole pays 1 a step
    assert [int(r["iteration"]) for r in rows] == sorted(int(r["iteration"]) for r in rows)


def test_scores_are_what_the_environment_gave_to_the_last_bit(tmp_path: Path) -> None:
    """Not what is learned from: the sign of the reward. Scripted gives 1, 2, ... in episodes of 1, 3 and 5 steps."""
    settings = TINY | {"envs.num": 3, "envs.steps": 15, "envs.clip_reward": True}
    eipo.train("eipo-test/Scripted-v0", method="eo", steps=45, settings=settings, out=tmp_path / "run")
    rows = (tmp_path / "run" / "episodes.csv").read_text().splitlines()[1:]
    assert sorted(rows) == sorted(["1,45,E,1.0,1"] * 15 + ["1,45,E,6.0,3"] * 5 + ["1,45,E,15.0,5"] * 3)
    assert rows[:4] == ["1,45,E,1.0,1"] * 3 + [
        "1,45,E,6.0,3"
    ]  # as they ended: at its third step, environment 1's first
