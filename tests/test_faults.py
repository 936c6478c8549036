"""Faults while a run goes on: it ends, or does not, as a user would want; with one line; and it can go on."""

from __future__ import annotations

import errno
import os
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import eipo
from eipo import checkpoint, keeping, live
from eipo.bonuses.rnd import RND
from eipo.checkpoint import Checkpoints, read
from eipo.cli import main
from eipo.errors import EipoError

SMALL = [
    "envs.num=2", "envs.steps=8", "net.dense=8", "bonus.features=8", "ppo.epochs=1", "ppo.minibatches=1",
    "compute.threads=1", "compute.shards=1", "checkpoint.minutes=0",
]  # fmt: skip


class Faulty(gym.Env[np.ndarray, int]):
    """Episodes of 10 steps. The second of the environments has a fault in its 20th step, or in the reset before."""

    made = 0
    mended = False
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, fault: str = "") -> None:
        self.fault, self.second, self.count = fault, Faulty.made % 2 == 1, 0
        Faulty.made += 1

    def now(self) -> bool:
        return self.second and self.count == 20 and not Faulty.mended

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if self.now() and self.fault == "reset":
            raise RuntimeError("the arm\nis stuck")
        return self.np_random.random(3, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        self.count += 1
        obs, reward = self.np_random.random(3, np.float32), 1.0
        if self.now():
            if self.fault == "step":
                raise ZeroDivisionError("by zero")
            if self.fault == "observation":
                obs[1] = np.nan
            reward = {"notanumber": np.nan, "infinite": np.inf, "enormous": 3e38}.get(self.fault, reward)
            if self.fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "hangs":
                time.sleep(1000)
        return obs, reward, False, self.count % 10 == 0, {}


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    gym.register("eipo-test/Faulty-v0", Faulty)
    Faulty.made, Faulty.mended = 0, False
    yield
    del gym.registry["eipo-test/Faulty-v0"]


def train(*settings: str, method: str = "eo") -> int:
    return main(
        [
            "train",
            "eipo-test/Faulty-v0",
            "--method",
            method,
            "--steps",
            "160",
            "--out",
            "run",
            "--set",
            *SMALL,
            *settings,
        ]
    )


def assert_goes_on_after(capsys: pytest.CaptureFixture[str], *says: str, iteration: int = 2) -> None:
    """It said one line of error, has a whole checkpoint of what was learned before, and then comes to its end."""
    err = capsys.readouterr().err
    errors = [line for line in err.splitlines() if line.startswith("eipo: error:")]
    assert len(errors) == 1, err
    assert "Traceback" not in err
    for text in (*says, f"(checkpoint of iteration {iteration} kept: eipo train --resume run)"):
        assert text in errors[0]
    assert read(Checkpoints(Path("run"), 1).all()[-1])["training"]["iteration"] == iteration
    Faulty.made, Faulty.mended = 0, True
    assert len(eipo.resume("run").metrics) == 10


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("step", "an environment raised ZeroDivisionError at its step 20: by zero ("),
        ("reset", "an environment raised RuntimeError at its step 20: the arm is stuck ("),
        ("observation", "NaN or infinity in the observation of environment 1 at its step 20"),
        ("notanumber", "reward nan from environment 1 at its step 20"),
        ("infinite", "reward inf from environment 1 at its step 20"),
        ("enormous", "learning has diverged"),
    ],
)
def test_environments(fault: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(f"envs.options.fault={fault}") == 2
    assert_goes_on_after(capsys, says)


def test_where_in_the_users_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("envs.options.fault=step") == 2
    assert f"{Path(__file__).name}:" in capsys.readouterr().err


def test_python_keeps_the_cause() -> None:
    settings = dict(pair.split("=") for pair in SMALL) | {"envs.options.fault": "step"}
    with pytest.raises(EipoError) as e:
        eipo.train("eipo-test/Faulty-v0", method="eo", steps=160, settings=[f"{k}={v}" for k, v in settings.items()])
    assert isinstance(e.value.__cause__, ZeroDivisionError)


def children() -> set[int]:
    me = os.getpid()
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == me and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look for orphans in")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("killed", " died with exit code -9"),
        ("hangs", " did not answer within 1 s (envs.timeout)"),
        ("step", "ZeroDivisionError"),
    ],
)
def test_workers(fault: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = children()
    assert train(f"envs.options.fault={fault}", "envs.vector=async", "envs.timeout=1.0") == 2
    deadline = time.monotonic() + 10
    while children() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children() <= before
    assert_goes_on_after(capsys, says)


def test_a_bonus_that_gives_nan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reward, calls = RND.reward, []

    def third(self: RND, rollout: Any) -> torch.Tensor:
        calls.append(1)
        return reward(self, rollout) * (float("nan") if len(calls) == 3 else 1.0)

    monkeypatch.setattr(RND, "reward", third)
    assert train(method="en") == 2
    assert_goes_on_after(capsys, "bonus RND: nan for environment")


def test_a_loss_that_becomes_nan(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("ppo.lr=1e30", "method.normalize_task=false", "ppo.epochs=4") == 2
    err = capsys.readouterr().err
    assert "learning has diverged" in err or "NaN or infinity in" in err
    state = read(Checkpoints(Path("run"), 1).all()[-1]) if Path("run").exists() else None
    if state is not None:  # what has diverged is in no checkpoint
        assert all(v.isfinite().all() for v in state["training"]["agent"].values())


def test_weights_that_are_nan_take_nobodys_place() -> None:
    with pytest.raises(EipoError, match="NaN or infinity in w of the agent after iteration 7"):
        keeping.refuse_nan({"iteration": 7, "agent": {"w": torch.tensor([1.0, float("nan")])}, "bonus": {}})


# The machine.


class Full:
    """A file that takes two lines; the third only in part."""

    def __init__(self, file: Any, number: int) -> None:
        self.file, self.number, self.lines = file, number, 0

    def write(self, text: str) -> None:
        self.lines += 1
        self.file.write(text if self.lines <= 2 else text[:20])
        self._fail()

    def close(self) -> None:
        self.file.close()
        self._fail()

    def _fail(self) -> None:
        if self.lines > 2:
            raise OSError(self.number, os.strerror(self.number))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("what", ["checkpoint", "metrics"])
def test_a_disk_that_is_full_or_has_become_read_only(
    what: str, number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = checkpoint.write_flushed, []

    def fail(path: Path, data: bytes) -> None:
        calls.append(1)
        if len(calls) >= 8:  # in the middle of the third checkpoint
            raise OSError(number, os.strerror(number), str(path))
        write(path, data)

    opened = Path.open
    with monkeypatch.context() as patch:
        if what == "checkpoint":
            patch.setattr(checkpoint, "write_flushed", fail)
        else:

            def limited(path: Path, *args: Any, **kwargs: Any) -> Any:
                file = opened(path, *args, **kwargs)
                return Full(file, number) if path.name == "metrics.jsonl" else file

            patch.setattr(Path, "open", limited)
        assert train() == 2
    assert_goes_on_after(capsys, os.strerror(number), iteration=1 if what == "checkpoint" else 2)


def test_a_disk_that_is_really_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file system of 200 KiB where the machine lets us make one, else a limit on the size of files."""
    import resource
    import subprocess

    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)], capture_output=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if mounted.returncode:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        out = str(small / "run")
        args = ["train", "CartPole-v1", "--method", "en", "--steps", "100000", "--out", out, "--set", *SMALL]
        assert main([*args, "checkpoint.last=50"]) == 2
        err = capsys.readouterr().err.splitlines()
        last = [line for line in err if line.startswith("eipo: error:")]
        assert len(last) == 1
        assert os.strerror(errno.EFBIG if mounted.returncode else errno.ENOSPC) in last[0]
        assert not any("Traceback" in line for line in err)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = Checkpoints(Path(out), 1).newest()
        assert found.state["training"]["iteration"] >= 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        if not mounted.returncode:
            subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_logger_that_fails_is_said_once_and_done_without(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def broken(writer: Any, metrics: Any, steps: int) -> None:
        calls.append(1)
        if len(calls) >= 3:
            raise ConnectionError("gone")

    monkeypatch.setattr(live.TensorBoard, "log", broken)
    assert train() == 0
    err = capsys.readouterr().err
    assert err.count("TensorBoard failed, the run goes on without it: ConnectionError: gone") == 1
    assert len(calls) == 3
    assert len(Path("run/metrics.jsonl").read_text().splitlines()) == 10
