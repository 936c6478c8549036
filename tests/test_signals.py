"""Runs that are told to stop, as processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import eipo
from eipo.checkpoint import Checkpoints, read

EIPO = [sys.executable, "-m", "eipo"]
SMALL = [
    "--set",
    "envs.num=2",
    "ppo.minibatches=2",
    "envs.steps=16",
    "ppo.epochs=1",
    "compute.threads=1",
    "net.dense=8",
    "net.width=8",
]
# Hangs in its 100th step: in Python, where handlers run, or in C, where they never do.
WORLD = """
import ctypes, time
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Hangs(CartPoleEnv):
    steps = 0
    def __init__(self, where):
        super().__init__()
        self.where = where
    def step(self, action):
        Hangs.steps += 1
        if Hangs.steps == 100:
            open("hangs", "w").close()
            if self.where == "python":
                time.sleep(1000)
            while True:
                ctypes.CDLL(None).sleep(1000)
        return super().step(action)

for where in ("python", "c"):
    gym.register(f"Hangs-{where}-v0", Hangs, kwargs={"where": where})
"""


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("world.py").write_text(WORLD)


def start(env: str, steps: str = "1e8") -> subprocess.Popen[str]:
    args = ["train", env, "--steps", steps, "--method", "eo", "--out", "run", *SMALL]
    # A shell without job control starts what it puts into the background with SIGINT ignored; pytest may run in one.
    return subprocess.Popen(
        [*EIPO, *args], stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def wait_for(process: subprocess.Popen[str], path: str) -> None:
    began = time.monotonic()
    while not Path(path).exists():
        assert process.poll() is None
        assert time.monotonic() - began < 120
        time.sleep(0.02)


@pytest.mark.parametrize(("where", "number", "code"), [("python", signal.SIGINT, 130), ("c", signal.SIGTERM, 143)])
def test_a_second_signal_ends_a_run_that_hangs(where: str, number: signal.Signals, code: int) -> None:
    process = start(f"world:Hangs-{where}-v0")
    wait_for(process, "hangs")
    process.send_signal(number)
    time.sleep(0.3)
    assert process.poll() is None  # it waits for the iteration's end
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in err
    path = Checkpoints(Path("run"), 1).all()[-1]
    assert read(path)["training"]["iteration"] == 0
    if where == "python":
        assert "stops and saves after this iteration; once more: at once" in err
        assert "run keeps a checkpoint of iteration 0; to go on: eipo train --resume run" in err


def test_a_stopped_run_goes_on_where_it_stopped() -> None:
    process = start("eipo/Maze-v0")
    wait_for(process, "run/metrics.jsonl")
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    at = Checkpoints(Path("run"), 1).iteration()
    assert at is not None
    assert f"checkpoint of iteration {at}" in err
    assert len(Path("run/metrics.jsonl").read_text().splitlines()) == at
    more = eipo.resume("run", steps=(at + 2) * 32)
    assert [m["iteration"] for m in more.metrics] == list(range(1, at + 3))


def test_a_run_from_python_stops_at_an_iteration_and_raises(tmp_path: Path) -> None:
    """Where nobody has asked for SIGTERM it ends the process; SIGINT is a KeyboardInterrupt."""
    code = (
        "import eipo, os, signal, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def stop():\n"
        "    while not (os.path.exists('run/metrics.jsonl') and os.path.getsize('run/metrics.jsonl')):\n"
        "        time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=stop).start()\n"
        "try:\n"
        "    eipo.train('CartPole-v1', method='eo', steps=10**8, out='run',\n"
        "               settings={'envs.num': 2, 'envs.steps': 16, 'compute.threads': 1})\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "stopped\n"
    assert Checkpoints(Path("run"), 1).iteration() == len(Path("run/metrics.jsonl").read_text().splitlines())
