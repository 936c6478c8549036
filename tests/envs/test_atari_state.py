"""Atari games that go on: played again from their seeds, they are where they were."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eipo
from eipo.checkpoint import STATE, TENSORS, Checkpoints
from eipo.config import Envs
from eipo.envs import atari
from eipo.envs.make import make_batch

pytest.importorskip("ale_py")
STICKY = {"repeat_action_probability": 0.25}


def steps(envs: Any, n: int, rng: np.random.Generator) -> list[Any]:
    return [envs.step(rng.integers(envs.action_space.n, size=envs.num)) for _ in range(n)]


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__ if f != "cell")


@pytest.mark.parametrize("span", [1, 200, 10**6])
@pytest.mark.parametrize("options", [STICKY, {"life_loss": True, "noop_max": 5}])
def test_a_batch_goes_on_exactly_after_games_of_different_length(
    options: dict[str, Any], span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seed for every game; one after about every second; one for all."""
    monkeypatch.setattr(atari, "SPAN", span)
    rng = np.random.default_rng(0)
    one, other = (make_batch("ALE/Breakout-v5", Envs(num=3, options=options)) for _ in range(2))
    try:
        one.reset(7)
        over = sum(int(s.over.sum()) for s in steps(one, 250, rng))
        assert over >= 2  # some are in their second or third game
        history = one.venv.history  # type: ignore[attr-defined]
        assert (history.game.sum() > 0) == (span < 10**6)
        assert len(set(history.length.tolist())) > 1 or span == 10**6
        state = one.state()
        other.reset(99)
        other.load_state(state)
        assert np.array_equal(one.obs, other.obs)
        again = np.random.default_rng(1)
        a, b = steps(one, 180, again), steps(other, 180, np.random.default_rng(1))
        assert sum(int(s.over.sum()) for s in a) >= 1  # and later games are the same, too
        assert all(same(x, y) for x, y in zip(a, b, strict=True))
    finally:
        one.close()
        other.close()


def test_the_first_games_are_those_of_the_seed() -> None:
    """Environment i is seeded seed + i, as everywhere."""
    one, other = (make_batch("ALE/Breakout-v5", Envs(num=2)) for _ in range(2))
    try:
        assert np.array_equal(one.reset(4)[1], other.reset(5)[0])
    finally:
        one.close()
        other.close()


def test_what_has_been_played_is_forgotten_at_the_next_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atari, "SPAN", 100)
    envs = make_batch("ALE/Breakout-v5", Envs(num=2))
    try:
        envs.reset(0)
        steps(envs, 900, np.random.default_rng(0))
        history = envs.venv.history  # type: ignore[attr-defined]
        assert len(history.actions) <= 2 * history.length.max() + 500 < 900
        assert history.state()["actions"].shape == (history.length.max(), 2)
        assert history.state()["actions"].dtype == np.uint8
    finally:
        envs.close()


def test_other_roms_or_emulators_are_noticed() -> None:
    envs = make_batch("ALE/Breakout-v5", Envs(num=2))
    try:
        envs.reset(0)
        steps(envs, 30, np.random.default_rng(0))
        state = envs.venv.get_state()  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="look different: another version of ale-py, or other ROMs"):
            envs.venv.set_state({**state, "frames": 1})  # type: ignore[attr-defined]
    finally:
        envs.close()


def test_a_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    settings = {
        "envs.num": 2, "envs.steps": 64, "net.dense": 8, "bonus.features": 8, "compute.threads": 1, "compute.shards": 1,
        "ppo.minibatches": 1, "ppo.epochs": 1, "checkpoint.minutes": 0, "checkpoint.last": 9,
    }  # fmt: skip
    whole, run = tmp_path / "whole", tmp_path / "run"
    eipo.train("ALE/Breakout-v5", preset="atari-ff", method="eipo", steps=128 * 5, settings=settings, out=whole)
    shutil.copytree(whole, run)
    for path in Checkpoints(run, 1).all()[-2:]:
        shutil.rmtree(path)
    eipo.resume(run)
    a, b = (Checkpoints(r, 1).all()[-1] for r in (whole, run))
    assert (a / TENSORS).read_bytes() == (b / TENSORS).read_bytes()
    assert (a / STATE).read_bytes() == (b / STATE).read_bytes()
    assert (whole / "episodes.csv").read_bytes() == (run / "episodes.csv").read_bytes()
