"""One run on two processes (gloo) computes what one process does. One torchrun here trains all that is compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import eipo
from eipo import parallel
from eipo.core.moments import RunningMoments
from eipo.errors import EipoError
from eipo.parallel import blocks_here, columns, everyone, means, mine, pooled, rows_here, whole

SMALL = {
    "envs.num": 8, "net.dense": 16, "bonus.features": 16, "compute.threads": 1, "compute.precision": "fp32",
}  # fmt: skip
RUNS: dict[str, dict[str, Any]] = {
    "maze": {
        "env": "eipo/Maze-v0", "method": "eipo", "steps": 8 * 30 * 6,
        "settings": {
            **SMALL, "envs.steps": 30, "net.width": 16, "method.switch": "alternate", "method.beta": 1.0,
            "envs.options.max_episode_steps": 25, "compute.shards": 2, "compute.threads": 2,
        },
    },
    "samples": {  # two processes of 32 environments, one of 64
        "env": "CartPole-v1", "method": "eipo", "steps": 64 * 16 * 5,
        "settings": {
            **SMALL, "envs.num": 64, "envs.steps": 16, "method.switch": "alternate", "ppo.anneal": True,
            "net.normalize": True,
        },
    },
    "side by side": {
        "env": "CartPole-v1", "method": "hepo", "steps": 8 * 40 * 4, "settings": {**SMALL, "envs.steps": 40},
    },
    "few": {  # minibatches of one environment: one process has nothing of it
        "env": "eipo/Maze-v0", "method": "dc", "steps": 4 * 20 * 4,
        "settings": {
            **SMALL, "envs.num": 4, "envs.steps": 20, "net.width": 16, "ppo.minibatches": 4, "bonus.share": 0.05,
            "compute.shards": 1,
        },
    },
}  # fmt: skip
SCRIPT = """
import json, sys, torch
import eipo
from eipo.cli import main
for name, run in json.load(open(sys.argv[1])).items():
    eipo.train(**run, out=sys.argv[2] + "/" + name)
sys.exit(main(sys.argv[3:]))
"""
WRONG = """
import os, sys
from eipo import parallel
from eipo.cli import main
from eipo.errors import EipoError
for settings in (["envs.num=7"], ["bonus.name=icm"], ["ppo.lrr=1"]):
    try:
        code = main([*sys.argv[1:], "--set", *settings])
    except SystemExit as e:
        code = e.code
    print(f"process {parallel.rank()} of {parallel.size()} ends with {code}", flush=True)
parallel.everyone([1])
if parallel.rank() == 1:
    os._exit(0)
try:
    parallel.everyone([1])
except EipoError as e:
    print(e, flush=True)
os._exit(0)  # without the group's own goodbye to the one that has ended
"""
CLOCK = ("steps_per_second", "acting_share")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of RUNS, each trained by two processes."""
    out = tmp_path_factory.mktemp("two")
    (out / "script.py").write_text(SCRIPT)
    (out / "runs.json").write_text(json.dumps(RUNS))
    settings = [f"{k}={v}" for k, v in {**SMALL, "envs.steps": 8}.items()]
    train = ["train", "CartPole-v1", "--steps", "128", "--out", str(out / "by command"), "--set", *settings]
    call = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
        str(out / "script.py"), str(out / "runs.json"), str(out), *train,
    ]  # fmt: skip
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stderr
    (out / "said.txt").write_text(done.stdout)
    return out


@pytest.mark.parametrize("name", RUNS)
def test_two_processes_compute_what_one_does(name: str, two: Path, tmp_path: Path) -> None:
    alone = eipo.train(**RUNS[name], out=tmp_path / "one")
    lines = [json.loads(line) for line in (two / name / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == len(alone.metrics)
    for one, other in zip(alone.metrics, lines, strict=True):
        assert list(one) == list(other)
        for key in one:
            if key not in CLOCK:
                expected = pytest.approx(one[key], rel=2e-3, abs=2e-5) if isinstance(one[key], float) else one[key]
                assert other[key] == expected, (one["iteration"], key)
    weights = load_file(two / name / "agent.safetensors")
    for key, value in load_file(tmp_path / "one" / "agent.safetensors").items():
        torch.testing.assert_close(weights[key], value, rtol=1e-3, atol=1e-4)
    rows = [(d / "episodes.csv").read_text().splitlines() for d in (two / name, tmp_path / "one")]
    assert sorted(rows[0]) == sorted(rows[1])  # of one iteration, those of process 0 come first
    if (tmp_path / "one" / "visits.safetensors").exists():
        counts = [load_file(d / "visits.safetensors")["visits"] for d in (two / name, tmp_path / "one")]
        assert torch.equal(*counts)


def test_both_stages_and_every_kind_of_minibatch_were_compared(two: Path) -> None:
    """Else the comparison above would say less than it seems to."""
    lines = [json.loads(line) for line in (two / "maze" / "metrics.jsonl").read_text().splitlines()]
    assert {line["stage"] for line in lines} == {"min", "max"}
    assert len({line["alpha"] for line in lines}) > 1
    assert all(line["bonus"] > 0 for line in lines)
    assert len((two / "samples" / "episodes.csv").read_text().splitlines()) > 20
    lines = [json.loads(line) for line in (two / "side by side" / "metrics.jsonl").read_text().splitlines()]
    assert {line["acted"] for line in lines} == {"EI and I"}


def test_the_command_line_keeps_and_shows_a_run_once(two: Path) -> None:
    run = two / "by command"
    assert (two / "said.txt").read_text().count(f"{run}: 128 steps in") == 1
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
    assert eipo.load(run).act(torch.zeros(4).numpy())[0] in (0, 1)


def test_what_is_wrong_is_said_once_and_nobody_waits_for_who_has_ended(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(WRONG)
    call = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
        str(tmp_path / "script.py"), "train", "CartPole-v1", "--steps", "4000", "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("eipo: ")]
    assert len(said) == 3
    assert said[0] == "eipo: error: envs.num=7 cannot be split evenly over 2 processes"
    assert said[1] == "eipo: error: bonus.name=icm runs in one process only; on many: rnd, none"
    assert "unknown setting 'ppo.lrr'" in said[2]
    for rank in (0, 1):
        assert done.stdout.count(f"process {rank} of 2 ends with 2") == 3
    assert done.stdout.count("process 0 has lost another process of the run: ") == 1
    assert not (tmp_path / "run").exists()


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process were the second of two; what needs the first cannot be called."""
    monkeypatch.setattr(parallel, "size", lambda: 2)
    monkeypatch.setattr(parallel, "rank", lambda: 1)


def test_alone_all_is_given_back() -> None:
    x, moments = torch.arange(6).reshape(2, 3), RunningMoments()
    assert columns(x) is x
    assert whole(x) is x
    assert rows_here(x, 3) is x
    assert pooled(moments) is moments
    assert everyone([1, 2]) == [1, 2]
    assert mine(3) == slice(0, 3)
    assert blocks_here([("E", slice(0, 1)), ("EI", slice(1, 3))], 3) == [("E", slice(0, 1)), ("EI", slice(1, 3))]
    logs = [{"a": torch.tensor(1.0)}, {"a": torch.tensor(2.0), "b": torch.tensor(5.0)}]
    assert {k: v.item() for k, v in means(logs).items()} == {"a": 1.5, "b": 5.0}


@pytest.mark.usefixtures("second_of_two")
def test_the_second_half_is_the_second_processs() -> None:
    T, n = 3, 4  # of 8 environments
    rows = torch.arange(T * 2 * n)  # row t * 8 + i
    here = rows_here(rows, n)
    assert here.tolist() == list(range(T * n))
    table = rows.reshape(T, 2 * n)
    assert torch.equal(columns(table).flatten()[here], table[:, 4:].flatten())
    assert rows_here(torch.tensor([7, 0, 12, 11]), n).tolist() == [3, 4]  # (0, 3) and (1, 0) of its own
    assert blocks_here([("E", slice(0, 3)), ("EI", slice(3, 8))], 8) == [("EI", slice(0, 4))]
    assert blocks_here([("E", slice(0, 5)), ("EI", slice(5, 8))], 8) == [("E", slice(0, 1)), ("EI", slice(1, 4))]


@pytest.mark.usefixtures("second_of_two")
def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(EipoError, match=r"envs\.num=7 cannot be split evenly over 2 processes"):
        parallel.refuse(eipo.make_config("CartPole-v1", steps=4000, settings={"envs.num": 7}))
    parallel.refuse(eipo.make_config("CartPole-v1", steps=4000, settings={"envs.num": 8}))


def test_moments_of_parts_merge_into_those_of_all() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 3, dtype=torch.float64) * 3 + 1
    every, merged, empty = RunningMoments((3,)), RunningMoments((3,)), RunningMoments((3,))
    every.update(x)
    for part in (x[:20], x[20:21], x[21:]):
        one = RunningMoments((3,))
        one.update(part)
        merged.merge(one)
        merged.merge(empty)
    for name in ("count", "mean", "m2"):
        torch.testing.assert_close(getattr(merged, name), getattr(every, name), rtol=1e-12, atol=1e-12)
