"""The script that measures what a random policy earns."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from eipo import make_config
from eipo.study import reference_scores

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "random_scores.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("random_scores", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_short_episodes_do_not_count_more(script: ModuleType) -> None:
    """Environments 0, 3, 6, 9 have episodes of one step (score 1), three of 3 steps (6), three of 5 (15)."""
    found = script.random_scores(make_config("eipo-test/Scripted-v0", steps=10**6), episodes=20, seed=0)
    assert sorted(found) == [1.0] * 8 + [6.0] * 6 + [15.0] * 6


def test_chance(script: ModuleType) -> None:
    """Three actions, one of which is right: 1/3, and 400 episodes say it to 0.05."""
    config = make_config("eipo-test/Context-v0", steps=10**6)
    found = script.random_scores(config, episodes=400, seed=0)
    assert len(found) == 400
    assert np.mean(found) == pytest.approx(1 / 3, abs=0.07)
    assert script.random_scores(config, episodes=400, seed=0) == found
    assert script.random_scores(config, episodes=400, seed=1) != found


def test_the_table(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "r.csv"
    argv = ["x", "eipo-test/Context-v0", "CartPole-v1", "--episodes", "10", "-o", str(out)]
    monkeypatch.setattr("sys.argv", argv)
    assert script.main() == 0
    known = reference_scores(out)
    assert 0 <= known["eipo-test/Context-v0"].random <= 1
    assert 10 < known["CartPole-v1"].random < 50
    assert known["CartPole-v1"].human is None
    monkeypatch.setattr("sys.argv", ["x", "nobody/Knows-v0"])
    assert script.main() == 2


def test_the_tasks_of_a_study(script: ModuleType) -> None:
    """By the names that its table of scores has, with the options that its runs have."""
    found = dict(script.configs([], "cpu-suite"))
    assert len(found) == 13
    assert found["DeepSea"].envs.options["size"] == 16
    known = reference_scores(FILE.parent.parent / "results" / "random_scores.csv")
    assert set(found) <= set(known)  # the file has them all
