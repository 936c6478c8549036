"""Live trackers: what they are told, and that none can stop a run. Weights & Biases and Trackio are stood in for."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import eipo
from eipo import cli
from eipo.live import NAMES

TINY = {"net.dense": 4, "envs.num": 2, "envs.steps": 8, "ppo.minibatches": 1, "ppo.epochs": 1}


class Fake(ModuleType):
    """A tracker that keeps what it is told, and raises in the `fails`-th call of one function."""

    def __init__(self, name: str, fails: str = "", at: int = 1) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []
        self._fails, self._at = fails, at

    def _told(self, what: str, content: Any) -> None:
        self.calls.append((what, content))
        if what == self._fails and sum(w == what for w, _ in self.calls) == self._at:
            raise ConnectionError("the network is gone\nand more lines")

    def init(self, **about: Any) -> Fake:
        self._told("init", about)
        return self

    def log(self, metrics: dict[str, Any], step: int) -> None:
        self._told("log", (step, metrics))

    def finish(self) -> None:
        self._told("finish", None)


@pytest.fixture(params=["wandb", "trackio"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def train(out: Path, live: str) -> eipo.Run:
    return eipo.train("CartPole-v1", method="eo", steps=48, out=out, settings=TINY | {"track.live": live})


def test_it_is_told_every_number_of_every_iteration(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(name)
    monkeypatch.setitem(sys.modules, name, fake)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = train(tmp_path / "task" / "eo-0", name)
    assert [what for what, _ in fake.calls] == ["init", "log", "log", "log", "finish"]
    about = fake.calls[0][1]
    assert (about["project"], about["name"]) == ("eipo", "task/eo-0")
    assert about["config"]["ppo"]["epochs"] == 1
    for (_, (step, told)), metrics in zip(fake.calls[1:4], run.metrics, strict=True):
        assert step == metrics["steps"]
        assert told == {k: v for k, v in metrics.items() if isinstance(v, int | float)}
    assert not (run.out / "tensorboard").exists()  # type: ignore[operator]


@pytest.mark.parametrize(("fails", "at"), [("init", 1), ("log", 1), ("log", 2), ("finish", 1)])
def test_when_it_fails_there_is_one_warning_and_the_run_goes_on(
    name: str, fails: str, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(name, fails, at)
    monkeypatch.setitem(sys.modules, name, fake)
    with pytest.warns(UserWarning, match="the run goes on") as caught:
        run = train(tmp_path / "run", name)
    said = [str(w.message) for w in caught if "goes on" in str(w.message)]
    assert said == [f"{NAMES[name]} failed, the run goes on without it: ConnectionError: the network is gone"]
    assert len(run.metrics) == 3
    assert (tmp_path / "run" / "agent.json").exists()
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 3
    assert fake.calls[-1][0] == fails  # it is left alone after that


def test_one_that_is_not_installed_is_named_and_the_run_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    settings = [f"{k}={v}" for k, v in TINY.items()]
    command = ["train", "CartPole-v1", "--method", "eo", "--steps", "48", "--out", str(tmp_path / "run")]
    assert cli.main([*command, "--track", name, "--set", *settings]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert said == [
        f"eipo: warning: {NAMES[name]} failed, the run goes on without it: it is not installed: "
        f"pip install 'eipo[{name}]'"
    ]
    assert (tmp_path / "run" / "agent.json").exists()


def test_tensorboard_by_default_and_nothing_if_that_is_asked_for(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(tmp_path / "events", "tensorboard")
    events = EventAccumulator(str(tmp_path / "events" / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("steps")] == [(16, 16.0), (32, 32.0), (48, 48.0)]
    assert "acted" not in events.Tags()["scalars"]
    assert {"reward", "steps_per_second"} <= set(events.Tags()["scalars"])
    assert len(train(tmp_path / "quiet", "none").metrics) == len(run.metrics) == 3
    assert not (tmp_path / "quiet" / "tensorboard").exists()
    assert eipo.make_config("CartPole-v1", steps=4000).track.live == "tensorboard"


def test_a_tracker_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "CartPole-v1", "--steps", "48", "--track", "wandbb"]) == 2
    assert "wandb" in capsys.readouterr().err
