"""Bad input: one line that says what is wrong, exit code 2, no traceback, nothing on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from eipo.cli import main

SMALL = ["--set", "envs.num=4", "envs.steps=8", "compute.threads=1"]


class Poor(gym.Env[np.ndarray, Any]):
    """Gives what `bad` says at the third step, in the second environment that was made."""

    made = 0
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def __init__(self, bad: str = "", observation_space: Any = None, action_space: Any = None) -> None:
        self.bad, self.number, self.count = bad, Poor.made, 0
        Poor.made += 1
        if observation_space is not None:
            self.observation_space = observation_space
        if action_space is not None:
            self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        obs = self.observation_space.sample()
        if self.bad == "reset" and self.number == 1:
            obs[0] = np.nan
        return obs, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.count += 1
        now = self.number == 1 and self.count == 3
        obs = self.observation_space.sample()
        if now and self.bad in ("observation", "last"):
            obs[0] = np.inf
        reward = {"reward": np.nan, "infinite": -np.inf}.get(self.bad, 0.0) if now else 0.0
        return obs, reward, now and self.bad == "last", False, {}


S = gym.spaces
KINDS: dict[str, dict[str, Any]] = {
    **{f"Bad-{bad}-v0": {"bad": bad} for bad in ("reset", "observation", "last", "reward", "infinite")},
    "Tuple-v0": {"observation_space": S.Tuple([S.Discrete(2), S.Discrete(2, start=1)])},
    "Dict-v0": {"observation_space": S.Dict(a=S.Discrete(2), b=S.Text(3))},
    "Text-v0": {"observation_space": S.Text(3)},
    "TextAction-v0": {"action_space": S.Text(3)},
    "IntegerBox-v0": {"action_space": S.Box(0, 9, (2,), int)},
    "ShiftedObservation-v0": {"observation_space": S.Discrete(2, start=1)},
}


@pytest.fixture(autouse=True, scope="module")
def environments() -> Iterator[None]:
    for name, kwargs in KINDS.items():
        gym.register(f"eipo-tests/{name}", entry_point=Poor, kwargs=kwargs)
    yield
    for name in KINDS:
        del gym.registry[f"eipo-tests/{name}"]


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Poor.made = 0


def refused(argv: list[str], capsys: pytest.CaptureFixture[str], lines: int = 1) -> str:
    """Run it; the last line on stderr, having checked that it ends as bad input must."""
    before = sorted(Path().rglob("*"))
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert sorted(Path().rglob("*")) == before
    assert "Traceback" not in out + err
    assert out == ""
    assert len(err.splitlines()) == lines, err
    last = err.splitlines()[-1]
    assert last.startswith("eipo: error: ")
    return last


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["CartPole-v1"], "--steps"),
        (["--steps", "1e5"], "ENV"),
        (["CartPole-v1", "--steps"], "--steps"),
        (["CartPole-v1", "--stepz", "9"], "did you mean '--steps'?"),
        (["CartPole-v1", "--steps", "many"], "'many' is not a whole number"),
        (["CartPole-v1", "--steps", "1.5"], "'1.5' is not a whole number"),
        (["CartPole-v1", "--steps", "inf"], "'inf' is not a whole number"),
        (["CartPole-v1", "--steps", "1e5", "more"], "more"),
        (["CartPole-v1", "--steps", "100"], "below one iteration of 16 environments x 128 steps = 2048"),
        (["CartPole-v1", "--steps", "-5"], "steps=-5 is below one iteration"),
        (["CartPole-v1", "--steps", "1e5", "--seed", "x"], "'x' is not a whole number"),
        (["CartPole-v1", "--steps", "1e5", "--seed", "-1"], "seed=-1"),
        (["CartPole-v1", "--steps", "1e5", "--method", "eippo"], "unknown method 'eippo'; did you mean 'eipo'?"),
        (["CartPole-v1", "--steps", "1e5", "--preset", "maze-gird"], "did you mean 'maze-grid'?"),
        (["CartPole-v1", "--steps", "1e5", "--preset", "maze-grid"], "observation=grid (preset or --set)"),
        (["CartPole-v1", "--steps", "1e5", "--set", "ppo.lrr=1"], "did you mean 'ppo.lr'?"),
        (["CartPole-v1", "--steps", "1e5", "--set", "ppo.lr"], "--set takes key=value"),
        (["CartPole-v1", "--steps", "1e5", "--set", "ppo.lr=x"], "ppo.lr='x': expected a number"),
        (["CartPole-v1", "--steps", "1e5", "--set", "ppo.epochs=0"], "ppo.epochs=0: must be at least 1"),
        (["CartPole-v1", "--steps", "1e5", "--set", "net.memory=gru"], "choose one of none, lstm"),
        (["CartPole-v1", "--steps", "1e5", "--set", "bonus.name=rdn"], "unknown bonus 'rdn'; did you mean 'rnd'?"),
        (["CartPole-v1", "--steps", "1e5", "--set", "envs.options.nix=1"], "nix"),
        (["CartPole-v9", "--steps", "1e5"], "did you mean 'CartPole-v1'?"),
        (["eipo/Maez-v0", "--steps", "1e5"], "did you mean 'eipo/Maze-v0'?"),
        (["", "--steps", "1e5"], "unknown environment ''"),
        (["nobody/Knows-v0", "--steps", "1e5"], "Namespace nobody not found"),
        (["no_such_module:Knows-v0", "--steps", "1e5"], "No module named 'no_such_module'"),
        (["json:Knows-v0", "--steps", "1e5"], "unknown environment 'json:Knows-v0'"),
        (["eipo-tests/Tuple-v0", "--steps", "1e5"], "observation space: its part '1'"),
        (["eipo-tests/Dict-v0", "--steps", "1e5"], "observation space: its part 'b' is a Text"),
        (["eipo-tests/Dict-v0", "--steps", "1e5", "--set", "envs.keys=a,c"], "has no 'c', but a, b"),
        (["CartPole-v1", "--steps", "1e5", "--set", "envs.keys=a"], "the observation is a Box, it has no keys"),
        (["eipo-tests/Text-v0", "--steps", "1e5"], "observation space"),
        (["eipo-tests/ShiftedObservation-v0", "--steps", "1e5"], "observation space"),
        (["eipo-tests/TextAction-v0", "--steps", "1e5"], "action space"),
        (["eipo-tests/IntegerBox-v0", "--steps", "1e5"], "action space"),
        (["eipo/Maze-v0", "--steps", "1e5", "--set", "compute.device=cuda"], "torch sees no CUDA device"),
        (["eipo-tests/Bad-reset-v0", "--steps", "1e5"], "environment 1 at reset"),
    ],
)
def test_train_refuses(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in refused(["train", *args], capsys)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("reward", "reward nan from environment 1 at its step 3"),
        ("infinite", "reward -inf from environment 1 at its step 3"),
        ("observation", "NaN or infinity in the observation of environment 1 at its step 3"),
        ("last", "NaN or infinity in the observation of environment 1 at its step 3"),
    ],
)
def test_nan_names_the_environment_and_the_step(kind: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    # One line more: training had begun, and said so. The directory that it had made is gone again.
    line = refused(["train", f"eipo-tests/Bad-{kind}-v0", "--steps", "64", "--out", "new/run", *SMALL], capsys, lines=2)
    assert f"eipo-tests/Bad-{kind}-v0: {expected}" in line


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["trian"], "unknown command 'trian'; did you mean 'train'?"),
        (["--nope"], "--nope"),
        (["list", "foo"], "Expected one of ('all', 'settings')"),
        (["report"], "name at least one run"),
        (["report", "nothing/here", "-o", "out"], "nothing/here"),
        (["demo", "--steps", "5"], "below one iteration"),
        (["demo", "--set", "ppo.lrr=1"], "did you mean 'ppo.lr'?"),
        (["demo", "--out", "/dev/null/x"], "/dev/null"),
    ],
)
def test_other_commands_refuse(argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in refused(argv, capsys)


def test_a_directory_that_holds_another_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("mine")
    for command in (["train", "CartPole-v1", "--steps", "1e5"], ["demo"]):
        assert "run is not empty" in refused([*command, "--out", "run"], capsys)
    assert (tmp_path / "run" / "config.json").read_text() == "mine"


def test_a_place_that_cannot_be_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    train = ["train", "CartPole-v1", "--steps", "1e5", "--out"]
    assert "file is a file" in refused([*train, "file"], capsys)
    assert "file is a file, not a directory" in refused([*train, "file/below"], capsys)
    assert "error: /proc/x" in refused([*train, "/proc/x"], capsys) or sys.platform != "linux"
    (tmp_path / "dangling").symlink_to("nowhere/at/all")
    refused([*train, "dangling"], capsys)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write where the permissions say no
    assert "no permission to write in" in refused([*train, "new"], capsys)


def test_a_missing_package_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Box2D", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)  # other tests use it
    line = refused(["train", "LunarLander-v3", "--steps", "1e5"], capsys)
    assert "LunarLander-v3 needs a package that is missing" in line
    assert "pip install" in line


@pytest.mark.parametrize(
    "args",
    [["train", "CartPole-v1", "--steps", "ten"], ["train", "CartPole-v9", "--steps", "1e5"], ["report", "nowhere"]],
)
def test_as_a_process(args: list[str], tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "eipo", *args], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("eipo: error: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
