"""A run that was stopped and goes on is, bit for bit, the run that was never stopped."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import eipo
from eipo import resuming
from eipo.checkpoint import STATE, TENSORS, Checkpoints, read
from eipo.cli import main
from eipo.config import Envs
from eipo.envs.make import make_batch
from eipo.errors import EipoError
from eipo.files import held

TINY = {
    "envs.num": 4, "envs.steps": 15, "net.dense": 8, "net.width": 8, "bonus.features": 8, "ppo.epochs": 1,
    "ppo.minibatches": 2, "compute.threads": 1, "compute.shards": 1, "checkpoint.minutes": 0, "checkpoint.last": 100,
    "envs.options.max_episode_steps": 40,
}  # fmt: skip
ITERATION = 60
LENGTH = 10  # iterations; the tests of EIPO see that both stages and changes between them are among these
TIMES = ("steps_per_second", "acting_share")


def train(
    out: Path, method: str = "eipo", iterations: int = LENGTH, env: str = "eipo/Maze-v0", **more: Any
) -> eipo.Run:
    settings = TINY | {k.replace("__", "."): v for k, v in more.items()}
    return eipo.train(env, method=method, steps=iterations * ITERATION, seed=1, settings=settings, out=out)


def stopped(run: Path, at: int, to: Path) -> Path:
    """A copy of a run as it is when it is killed just after the checkpoint of an iteration, or some time later."""
    shutil.copytree(run, to)
    for path in Checkpoints(to, 1).all():
        if int(path.name) > at:
            shutil.rmtree(path)
    for name in ("agent.json", "agent.safetensors", "visits.safetensors"):
        (to / name).unlink(missing_ok=True)
    return to


def assert_same(one: Path, other: Path) -> None:
    """The last checkpoints hold the same bytes, and what was written on the way is the same but for the times."""
    a, b = (Checkpoints(run, 1).all()[-1] for run in (one, other))
    assert (a / TENSORS).read_bytes() == (b / TENSORS).read_bytes()
    states = [json.loads((path / STATE).read_text()) for path in (a, b)]
    assert states[0].pop("config").keys() == states[1].pop("config").keys()
    assert states[0] == states[1]
    metrics = [[json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in (one, other)]
    for line in metrics[0] + metrics[1]:
        for name in TIMES:
            del line[name]
    assert metrics[0] == metrics[1]
    for name in ("episodes.csv", "visits.safetensors", "agent.safetensors", "agent.json"):
        if (one / name).exists():
            assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EIPO on the maze, never stopped, with a checkpoint after each iteration."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(out)
    return out


def stages(run: Path) -> list[str]:
    return [json.loads(line)["stage"] for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("at", range(LENGTH + 1))
def test_eipo_goes_on_bit_for_bit_from_every_iteration(at: int, whole: Path, tmp_path: Path) -> None:
    run = stopped(whole, at, tmp_path / "run")
    eipo.resume(run)
    assert_same(whole, run)


def test_those_iterations_are_of_both_stages_and_around_changes(whole: Path) -> None:
    seen = stages(whole)
    assert {"min", "max"} == set(seen)
    changes = [i for i in range(1, len(seen)) if seen[i] != seen[i - 1]]
    assert len(changes) >= 2
    assert any(seen[i] == seen[i - 1] for i in range(1, len(seen)))
    assert any(e.split(",")[2] == "mixed" for e in (whole / "episodes.csv").read_text().splitlines())


OTHERS: dict[str, dict[str, Any]] = {
    "hepo": {},
    "eo": {},
    "en": {"ppo__anneal": True},
    "dy": {},
    "dc": {"net__memory": "none", "envs__repeats": False, "envs__stack": 3},
    "noisy": {},
    "rnd": {"bonus__name": "icm"},
    "eipo": {"method__switch": "own", "method__alpha_rule": "observed", "compute__precision": "bf16"},
}


@pytest.mark.parametrize("method", OTHERS)
def test_other_methods_memories_and_settings(method: str, tmp_path: Path) -> None:
    train(tmp_path / "whole", method, 6, **OTHERS[method])
    run = stopped(tmp_path / "whole", 3, tmp_path / "run")
    eipo.resume(run)
    assert_same(tmp_path / "whole", run)


def test_images_and_single_mazes_and_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conv network, whose weights lie in memory as its kernels want them; mazes one by one behind wrappers."""
    import gymnasium as gym

    kwargs = {"observation": "pixels", "objects": "corridor"}
    gym.register("eipo-test/OneMaze-v0", "eipo.envs.maze.env:MazeEnv", max_episode_steps=7, kwargs=kwargs)
    more = {"envs__options": {}, "compute__shards": 2, "compute__threads": 2, "envs__steps": 15}
    try:
        train(tmp_path / "whole", "eipo", 4, "eipo-test/OneMaze-v0", **more)
        run = stopped(tmp_path / "whole", 2, tmp_path / "run")
        eipo.resume(run)
    finally:
        del gym.registry["eipo-test/OneMaze-v0"]
    assert_same(tmp_path / "whole", run)
    assert len((run / "episodes.csv").read_text().splitlines()) > 4 * 6


def test_in_a_process_of_its_own(whole: Path, tmp_path: Path) -> None:
    run = stopped(whole, 4, tmp_path / "run")
    command = [sys.executable, "-m", "eipo", "train", "--resume", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.count("goes on after 4")) == (0, 1)
    assert_same(whole, run)


def test_what_a_run_did_after_its_checkpoint_is_cut_off(whole: Path, tmp_path: Path) -> None:
    run = stopped(whole, 3, tmp_path / "run")
    with open(run / "metrics.jsonl", "a") as metrics, open(run / "episodes.csv", "a") as episodes:
        metrics.write('{"iteration": 11, "st')  # a line that was being written
        episodes.write("11,6")
    eipo.resume(run)
    assert_same(whole, run)


def test_a_run_made_longer_is_the_longer_run(whole: Path, tmp_path: Path) -> None:
    train(tmp_path / "run", iterations=5)
    resumed = eipo.resume(tmp_path / "run", steps=LENGTH * ITERATION)
    assert_same(whole, tmp_path / "run")
    assert resumed.config.steps == LENGTH * ITERATION
    recorded = json.loads((tmp_path / "run" / "config.json").read_text())
    assert recorded["config"]["steps"] == LENGTH * ITERATION
    assert recorded["resumed"][0]["changes"] == {"steps": [5 * ITERATION, LENGTH * ITERATION]}
    assert [m["iteration"] for m in resumed.metrics] == list(range(1, LENGTH + 1))
    state = read(Checkpoints(tmp_path / "run", 1).all()[-1])
    assert state["config"]["steps"] == LENGTH * ITERATION


def test_a_longer_run_that_was_stopped_remembers_its_length(whole: Path, tmp_path: Path) -> None:
    """config.json is what holds, not the older checkpoint."""
    run = stopped(whole, 6, tmp_path / "run")
    recorded = json.loads((run / "config.json").read_text())
    recorded["config"]["steps"] = 8 * ITERATION
    (run / "config.json").write_text(json.dumps(recorded))
    assert len(eipo.resume(run).metrics) == 8


def test_a_finished_run_is_left_as_it_is(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    eipo.resume(run)
    assert_same(whole, run)
    assert [p.name for p in Checkpoints(run, 1).all()] == [p.name for p in Checkpoints(whole, 1).all()]


def test_tensorboard_forgets_what_was_cut_off(whole: Path, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = stopped(whole, 4, tmp_path / "run")
    eipo.resume(run)
    events = accumulator.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    assert [e.step for e in events.Scalars("alpha")] == [ITERATION * i for i in range(1, LENGTH + 1)]


# Environments that cannot give their state.


def parameters(run: eipo.Run) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in run.agent.net.parameters()])


def test_elsewhere_episodes_start_anew_from_seeds_that_are_recorded(tmp_path: Path) -> None:
    more = {"envs__options": {}, "net__memory": "lstm", "net__width": 8}
    train(tmp_path / "whole", "eipo", 6, "CartPole-v1", **more)
    runs = [eipo.resume(stopped(tmp_path / "whole", at, tmp_path / f"{at}{i}")) for at, i in ((3, 0), (3, 1), (4, 0))]
    assert torch.equal(parameters(runs[0]), parameters(runs[1]))
    assert not torch.equal(parameters(runs[0]), parameters(runs[2]))
    recorded = [json.loads((tmp_path / f"{name}" / "config.json").read_text()) for name in ("30", "40")]
    assert [r["resumed"][0]["episodes"] for r in recorded] == ["start anew"] * 2
    seeds = [r["resumed"][0]["seed"] for r in recorded]
    assert seeds[0] != seeds[1]
    assert runs[0].metrics[:3] == eipo.resume(tmp_path / "whole").metrics[:3]
    env = make_batch("CartPole-v1", Envs(num=4))
    training = eipo.training.Training(runs[0].config)  # type: ignore[attr-defined]
    found = Checkpoints(stopped(tmp_path / "whole", 3, tmp_path / "again"), 1).newest()
    assert not resuming.load(training, found)
    assert np.array_equal(training.envs.obs, env.reset(seeds[0]))
    assert training.carry.reset.all()
    assert training.carry.policy == [""] * 4
    assert all((s == 0).all() for s in training.carry.state)


# What is refused.


def refused(run: Path, match: str, **changes: Any) -> None:
    before = {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()}
    with pytest.raises(EipoError, match=match) as e:
        eipo.resume(run, **changes)
    assert "\n" not in str(e.value)
    assert before == {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()}


def test_other_settings_are_refused_and_shown(whole: Path, tmp_path: Path) -> None:
    run = stopped(whole, 4, tmp_path / "run")
    for key, value, shown in [
        ("ppo.gamma", 0.5, "ppo.gamma was 0.99, is 0.5"),
        ("net.width", 16, "net.width was 8, is 16"),
        ("envs.num", 2, "envs.num was 4, is 2"),
        ("method.beta", 0.5, "method.beta was 0.005, is 0.5"),
        ("envs.options.max_episode_steps", 50, "envs.options was .*40.*, is .*50"),
    ]:
        refused(run, shown, settings={key: value})
    refused(run, "is at iteration 4 already; steps=180 are 3", steps=180)
    eipo.resume(run, settings={"checkpoint.minutes": 5.0, "checkpoint.last": 1})
    assert len(Checkpoints(run, 1).all()) == 1


def test_settings_that_do_not_change_the_result_may_change(tmp_path: Path) -> None:
    settings = [
        "compute.threads=7",
        "compute.shards=3",
        "compute.device=cpu",
        "checkpoint.minutes=1",
        "evaluation.every=2",
    ]
    before = eipo.make_config("eipo/Maze-v0", steps=10**6)
    after = eipo.make_config("eipo/Maze-v0", steps=2 * 10**6, settings=settings)
    changes = resuming.differences(dataclasses.asdict(before), dataclasses.asdict(after))
    assert changes.keys() == {"steps", *(s.partition("=")[0] for s in settings)}
    resuming.refuse(tmp_path, changes, after, 10)


def test_environments_that_have_changed_are_refused(whole: Path, tmp_path: Path) -> None:
    run = stopped(whole, 4, tmp_path / "run")
    path = Checkpoints(run, 1).all()[-1]
    state = read(path)
    state["spaces"]["action_space"]["n"] = 6
    shutil.rmtree(path)
    Checkpoints(run, 10).save(4, state)
    refused(run, r"action_space was .*6.*, is .*5")


@pytest.mark.parametrize(("method", "settings"), [("dy", {}), ("eo", {"ppo.anneal": True})])
def test_a_schedule_over_the_run_fixes_its_length(method: str, settings: dict[str, Any], tmp_path: Path) -> None:
    config = eipo.make_config("eipo/Maze-v0", method=method, steps=ITERATION * 2, settings=TINY | settings)
    eipo.train_config(config, tmp_path / "run")
    refused(tmp_path / "run", "ties every iteration to the length of the whole run", steps=ITERATION * 4)


def test_what_is_no_run(tmp_path: Path) -> None:
    refused(tmp_path, "is no run: config.json is missing")
    (tmp_path / "config.json").write_text("{")
    refused(tmp_path, "config.json cannot be read")
    (tmp_path / "config.json").write_text(json.dumps({"format": 2, "config": {}}))
    refused(tmp_path, "format 2, this eipo reads up to 1: upgrade eipo")
    (tmp_path / "config.json").write_text(json.dumps({"format": 1, "config": {"env": "x", "steps": 1, "new": 1}}))
    refused(tmp_path, "new is no setting of this version")
    config = {"env": "eipo/Maze-v0", "steps": 100000, "ppo": {"lr": 0.1}}  # the rest by default, as of an older version
    (tmp_path / "config.json").write_text(json.dumps({"format": 1, "config": config}))
    refused(tmp_path, "holds no checkpoint: there is nothing to go on from")


def test_metrics_that_are_gone_are_missed(whole: Path, tmp_path: Path) -> None:
    run = stopped(whole, 4, tmp_path / "run")
    (run / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(EipoError, match="has 1 lines, but the checkpoint is of iteration 4"):
        eipo.resume(run)


def test_two_processes_on_one_run(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stopped(whole, 4, tmp_path / "run")
    with held(run):
        refused(run, "another process is writing to this run")
        assert main(["train", "--resume", str(run)]) == 2
    assert "another process is writing to this run" in capsys.readouterr().err
    eipo.resume(run)
    assert_same(whole, run)


def test_the_command_line_refuses_what_a_run_was_told(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v1", "--resume", str(whole), "--seed", "3"]) == 2
    assert "leave out ENV, --seed" in capsys.readouterr().err
