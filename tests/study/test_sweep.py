"""Runs on Ray: what is skipped, begun again, killed, interrupted, refused. Ray starts three times here."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import eipo
from eipo import cli
from eipo.checkpoint import Checkpoints
from eipo.study.plan import plan, progress, read_study
from eipo.study.sweep import GRACE, share, sweep

STUDY = """
methods = ["eo"]
seeds = [0]
[settings]
net.dense = 4
envs.num = 2
envs.steps = 8
ppo.minibatches = 1
ppo.epochs = 1
checkpoint.minutes = 0
"""
PATIENCE = 300.0  # seconds, on a busy machine


def task(name: str, steps: int, settings: str = "") -> str:
    return f'[[tasks]]\nenv = "CartPole-v1"\nname = "{name}"\nsteps = {steps}\nsettings = {{ {settings} }}\n'


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process with a group of its own, of which nothing is left behind."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(what: Callable[[], object], sweeping: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert sweeping.poll() is None, sweeping.communicate()
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def workers(run: Path) -> list[int]:
    """Process ids of those who have written a run, the last one last: TensorBoard puts them into its file's name."""
    events = sorted((run / "tensorboard").glob("events.*"), key=lambda f: f.stat().st_mtime)
    return [int(f.name.split(".")[-2]) for f in events]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def raylet(parent: int) -> int:
    """Ray's own process on this machine, whose end ends its workers."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, name, _, ppid, *_ = stat.read_text().split()
            if (name, ppid) == ("(raylet)", str(parent)):
                return int(pid)
    raise AssertionError("Ray does not run")


def lines(run: Path) -> int:
    try:
        return (run / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def test_a_killed_run_goes_on_in_another_worker_and_ctrl_c_leaves_nothing_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "study.toml", tmp_path / "runs"
    file.write_text(STUDY + task("short", 160) + task("endless", 10**9))
    command = ["sweep", str(file), "--out", str(out)]
    with started(sys.executable, "-m", "eipo", *command) as sweeping:
        short, endless = out / "short" / "eo-0", out / "endless" / "eo-0"
        wait_for(lambda: (short / "agent.json").exists() and lines(endless) >= 2, sweeping)
        first = workers(endless)[-1]
        os.kill(first, signal.SIGKILL)
        kept = lines(endless) - 1  # the last iteration may be without its checkpoint
        wait_for(lambda: workers(endless)[-1:] != [first] and lines(endless) >= kept + 2, sweeping)
        resumed = json.loads((endless / "config.json").read_text())["resumed"]
        assert [entry["iteration"] >= kept for entry in resumed] == [True]
        second = workers(endless)[-1]
        assert not alive(first)
        assert alive(second)

        os.kill(raylet(sweeping.pid), signal.SIGKILL)  # as Ray does itself where it starves
        wait_for(lambda: workers(endless)[-1:] != [second], sweeping)
        kept = lines(endless)
        wait_for(lambda: lines(endless) >= kept + 2, sweeping)
        assert len(json.loads((endless / "config.json").read_text())["resumed"]) == 2
        assert not alive(second)
        third = workers(endless)[-1]

        assert cli.main(command) == 2
        assert "another sweep is writing" in capsys.readouterr().err
        assert cli.main([*command, "--status"]) == 0
        assert "1 of 2 runs complete, 1 begun" in capsys.readouterr().out

        os.killpg(sweeping.pid, signal.SIGINT)  # as a terminal does
        stdout, stderr = sweeping.communicate(timeout=PATIENCE)
    assert sweeping.returncode == 130
    assert re.search(r"^1/2 short/eo-0: \d+:\d\d$", stdout, re.M)
    assert "endless/eo-0: its worker died (WorkerCrashedError), another one goes on\n" in stdout
    assert "Ray has died; it is started again, and runs go on from their last checkpoints\n" in stdout
    assert stderr == "eipo: stopped; 1 of 2 runs left, the same command goes on\n"
    end = time.monotonic() + 60
    while alive(third) and time.monotonic() < end:
        time.sleep(0.1)
    assert not alive(third)
    assert (endless / "metrics.jsonl").read_bytes().endswith(b"\n")
    at = Checkpoints(endless, 2).iteration()
    assert at is not None
    assert lines(endless) == at  # stopped behind a checkpoint


def test_what_is_complete_is_skipped_and_a_run_that_fails_stops_no_other(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    tasks = [task("done", 160), task("begun", 160), task("wrong", 160, "envs.options.nonsense = 1")]
    file.write_text(STUDY + "".join(tasks))
    runs = {run.task: run for run in plan(read_study(str(file)), tmp_path / "runs")}
    for name in ("done", "begun"):
        eipo.train_config(runs[name].config, runs[name].out)
    before = (runs["done"].out / "metrics.jsonl").stat().st_mtime_ns
    (runs["begun"].out / "agent.json").unlink()
    shutil.rmtree(runs["begun"].out / "checkpoints")  # as if killed before the first
    said: list[str] = []
    failed = sweep(list(runs.values()), tmp_path / "runs", say=said.append)
    assert failed == 1
    assert said[0] == f"3 runs, 1 of them complete; kept in {tmp_path / 'runs'}"
    wrong = next(line for line in said if "wrong/eo-0" in line)
    assert "failed: CartPole-v1 could not be made with the options nonsense=1" in wrong
    assert "nonsense" in (tmp_path / "runs" / "wrong" / "eo-0.error.txt").read_text()
    assert not runs["wrong"].out.exists()
    assert [progress(runs[name]) for name in ("done", "begun")] == [1.0, 1.0]
    assert (runs["done"].out / "metrics.jsonl").stat().st_mtime_ns == before
    assert [lines(runs[name].out) for name in ("done", "begun")] == [10, 10]


def test_threads_are_a_runs_share_of_the_cores() -> None:
    class Ray:
        """A cluster of machines with so many cores."""

        def __init__(self, *cores: int, dead: int = 0) -> None:
            self.cores, self.dead = cores, dead

        def nodes(self) -> list[dict]:
            there = [{"Alive": True, "Resources": {"CPU": float(c)}} for c in self.cores]
            return [*there, {"Alive": False, "Resources": {"CPU": float(self.dead)}}]

    assert share(Ray(16), jobs=0, runs=100) == 1  # one core each
    assert share(Ray(16), jobs=4, runs=100) == 4
    assert share(Ray(16), jobs=0, runs=3) == 5  # the last few have the machine to themselves
    assert share(Ray(16), jobs=3, runs=1) == 16
    assert share(Ray(8, 8), jobs=1, runs=100) == 8  # a run has one machine at most
    assert share(Ray(2, dead=64), jobs=0, runs=1) == 2
    assert share(Ray(2), jobs=50, runs=100) == 1


def test_a_sweep_in_the_background_of_a_script_stops_its_runs_too(tmp_path: Path) -> None:
    """Where SIGINT is ignored, as in a script's background jobs, ray.cancel would go unheard."""
    file, run = tmp_path / "study.toml", tmp_path / "runs" / "endless" / "eo-0"
    file.write_text(STUDY + task("endless", 10**9))
    deaf = "sh", "-c", 'trap "" INT; exec "$0" "$@"'
    with started(*deaf, sys.executable, "-m", "eipo", "sweep", str(file), "--out", str(tmp_path / "runs")) as sweeping:
        wait_for(lambda: lines(run) >= 2, sweeping)
        began = time.monotonic()
        sweeping.terminate()
        _, stderr = sweeping.communicate(timeout=PATIENCE)
    assert sweeping.returncode == 143
    assert stderr == "eipo: stopped; 1 of 1 runs left, the same command goes on\n"
    assert time.monotonic() - began < GRACE  # else it was waited for in vain
    assert lines(run) == Checkpoints(run, 2).iteration()
