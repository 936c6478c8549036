"""Faults, tried one after the other: what a run does, and whether it goes on afterwards. `make faults` runs it.

    python benchmarks/faults.py [--write docs/reliability.md]

Processes are real ones (`eipo train`), in a directory of their own. The table says how often each was tried, and how
often all held that must: the exit code, one line on stderr and no traceback, a whole checkpoint, no process left over,
and that the run comes to its end after `eipo train --resume`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import eipo
from eipo.checkpoint import MANIFEST, STATE, TENSORS, Checkpoints, read
from eipo.errors import EipoError
from eipo.files import held

WORLD = """
import os, signal, time
import gymnasium as gym
import numpy as np

class Faulty(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Discrete(2)
    def __init__(self, fault="", at=1):
        self.fault, self.at, self.count = fault, at, 0
    def now(self):
        return self.count == self.at and not os.path.exists("mended")
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.now() and self.fault == "reset":
            raise RuntimeError("reset failed")
        return self.np_random.random(3, np.float32), {}
    def step(self, action):
        time.sleep(0.0005)
        self.count += 1
        obs, reward = self.np_random.random(3, np.float32), 1.0
        if self.now():
            if self.fault == "step":
                raise ZeroDivisionError("step failed")
            if self.fault == "observation":
                obs[1] = np.nan
            reward = {"notanumber": np.nan, "infinite": np.inf}.get(self.fault, reward)
            if self.fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "hangs":
                time.sleep(1000)
        return obs, reward, False, self.count % 5 == 0, {}

gym.register("Faulty-v0", Faulty)
"""
SMALL = [
    "envs.num=2", "envs.steps=10", "net.dense=8", "bonus.features=8", "ppo.epochs=1", "ppo.minibatches=1",
    "compute.threads=1", "compute.shards=1", "checkpoint.minutes=0", "envs.timeout=1.0",
]  # fmt: skip
STEPS = 20 * 40
Tried = Iterator[bool]


def heard() -> None:
    """In the child: a shell's background jobs ignore SIGINT, and what they start would inherit it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*settings: str, env: str = "world:Faulty-v0", steps: int = STEPS) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "eipo", "train", env, "--method", "en", "--steps", str(steps), "--out", "run"]
    return subprocess.Popen(
        [*command, "--set", *SMALL, *settings], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, preexec_fn=heard,
    )  # fmt: skip


def wait_for_checkpoint(process: subprocess.Popen[str], iteration: int) -> None:
    while process.poll() is None and (Checkpoints(Path("run"), 1).iteration() or 0) < iteration:
        time.sleep(0.01)


def ended_well(process: subprocess.Popen[str], code: int, line: str) -> bool:
    """In time, exit code, one line, no traceback, nobody left over."""
    try:
        _, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False
    errors = [text for text in err.splitlines() if text.startswith(("eipo: error", "eipo: stopped"))]
    good = process.returncode == code and "Traceback" not in err
    if line:
        good = good and len(errors) == 1 and re.search(line, errors[0]) is not None
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return good
        time.sleep(0.05)
    return False


def goes_on(iterations: int = 40) -> bool:
    """From a whole checkpoint, to the end, in a process of its own."""
    Path("mended").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Checkpoints(Path("run"), 1).newest()
    command = [sys.executable, "-m", "eipo", "train", "--resume", "run", "--steps", str(iterations * 20)]
    done = subprocess.run(command, capture_output=True)
    return done.returncode == 0 and len(Path("run/metrics.jsonl").read_text().splitlines()) == iterations


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """An empty directory with the world in it."""
    here, directory = os.getcwd(), tempfile.mkdtemp()
    os.chdir(directory)
    Path("world.py").write_text(WORLD)
    try:
        yield
    finally:
        os.chdir(here)
        shutil.rmtree(directory)


def environment(fault: str, line: str, *settings: str) -> Callable[[random.Random], Tried]:
    def tries(rng: random.Random) -> Tried:
        for at in (25, 55, 5 * rng.randrange(12, 20)):
            with fresh():
                process = start(f"envs.options.fault={fault}", f"envs.options.at={at}", *settings)
                yield ended_well(process, 2, line) and goes_on()

    return tries


def stopped(number: signal.Signals, code: int) -> Callable[[random.Random], Tried]:
    def tries(rng: random.Random) -> Tried:
        for _ in range(5):
            with fresh():
                process = start(steps=10**6)
                wait_for_checkpoint(process, 1)
                time.sleep(rng.uniform(0, 0.3))
                process.send_signal(number)
                good = ended_well(process, code, "" if code < 0 else "keeps a checkpoint of iteration")
                at = Checkpoints(Path("run"), 1).iteration() or 0
                yield good and goes_on(at + 2)

    return tries


def twice(rng: random.Random) -> Tried:
    """A second signal, in a step that never ends."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        with fresh():
            process = start("envs.options.fault=hangs", "envs.options.at=45")
            wait_for_checkpoint(process, 4)
            time.sleep(0.5)
            process.send_signal(number)
            time.sleep(rng.uniform(0.1, 0.5))
            process.send_signal(number)
            yield ended_well(process, code, "keeps a checkpoint of iteration 4") and goes_on()


def second_process(rng: random.Random) -> Tried:
    with fresh():
        eipo.train("eipo/Maze-v0", method="eo", steps=100, out="run", settings={"envs.num": 4, "envs.steps": 25})
        for _ in range(3):
            with held(Path("run")):
                done = subprocess.run(
                    [sys.executable, "-m", "eipo", "train", "--resume", "run"], capture_output=True, text=True
                )
                yield done.returncode == 2 and "another process is writing to this run" in done.stderr


def two_checkpoints() -> Path:
    eipo.train(
        "eipo/Maze-v0", method="eipo", steps=200, out="run",
        settings={"envs.num": 4, "envs.steps": 25, "net.dense": 8, "net.width": 8, "bonus.features": 8,
                  "checkpoint.minutes": 0.0, "compute.threads": 1, "compute.shards": 1},
    )  # fmt: skip
    return Checkpoints(Path("run"), 2).all()[-1]


def the_older_is_taken(newest: Path) -> bool:
    """The newest is named, and the other read; or, where no value has changed, it is read as it was."""
    try:
        read(newest)
    except EipoError:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = Checkpoints(Path("run"), 2).newest()
        return found.path.name == "00000001" and len(said) == 1 and newest.name in str(said[0].message)
    return (newest / MANIFEST).exists()


def flips(rng: random.Random) -> Tried:
    with fresh():
        newest = two_checkpoints()
        for name in (TENSORS, STATE):
            good = (newest / name).read_bytes()
            for _ in range(300):
                bad = bytearray(good)
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
                (newest / name).write_bytes(bytes(bad))
                try:
                    read(newest)
                    yield False
                except EipoError:
                    yield the_older_is_taken(newest)
            (newest / name).write_bytes(good)


def cuts(rng: random.Random) -> Tried:
    """At each tenth (the first leaves it empty), and without it."""
    with fresh():
        newest = two_checkpoints()
        for name in (TENSORS, STATE, MANIFEST):
            good = (newest / name).read_bytes()
            for tenth in range(10):
                (newest / name).write_bytes(good[: len(good) * tenth // 10])
                yield the_older_is_taken(newest)
            (newest / name).unlink()
            yield the_older_is_taken(newest)
            (newest / name).write_bytes(good)


def killed_while_saving(rng: random.Random) -> Tried:
    with fresh():
        two_checkpoints()
        kept = Checkpoints(Path("run"), 2)
        state, before = kept.newest().state, (2, 0)
        began = time.monotonic()
        kept.save(2, state)
        takes, scale = time.monotonic() - began, 2.0
        for _ in range(200):
            child = os.fork()
            if child == 0:
                while True:
                    kept.save(2, state)
            time.sleep(rng.uniform(0.1, scale) * takes)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = kept.newest()
            now = (2, int(found.path.suffix[1:] or 0))
            scale *= 1.15 if now == before else 0.8  # neither too early for every save, nor too late to hit one
            yield now >= before and found.state["training"]["iteration"] == 2
            before = now


def full_disk(rng: random.Random) -> Tried:
    """A file system of 200 to 400 KiB; needs the right to mount one."""
    for size in range(200, 401, 50):
        with fresh():
            Path("run").mkdir()
            if subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", "run"], capture_output=True
            ).returncode:
                return
            try:
                process = start("checkpoint.last=100", steps=10**6)
                good = ended_well(process, 2, "No space left on device")
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    yield good and Checkpoints(Path("run"), 1).newest().state["training"]["iteration"] > 0
            finally:
                subprocess.run(["umount", "-l", "run"], check=True)


FAULTS: dict[str, Callable[[random.Random], Tried]] = {
    "environment raises in step": environment("step", "raised ZeroDivisionError at its step"),
    "environment raises in reset": environment("reset", "raised RuntimeError at its step"),
    "NaN in an observation": environment("observation", "NaN or infinity in the observation"),
    "NaN as reward": environment("notanumber", "reward nan"),
    "infinite reward": environment("infinite", "reward inf"),
    "worker process killed": environment("killed", "died with exit code -9", "envs.vector=async"),
    "worker process hangs": environment("hangs", "did not answer within 1 s", "envs.vector=async"),
    "SIGINT": stopped(signal.SIGINT, 130),
    "SIGTERM": stopped(signal.SIGTERM, 143),
    "a second signal, in a step that hangs": twice,
    "SIGKILL while training": stopped(signal.SIGKILL, -9),
    "SIGKILL while saving": killed_while_saving,
    "a second process on the run": second_process,
    "disk full": full_disk,
    "one bit of the newest checkpoint flipped": flips,
    "a file of the newest checkpoint cut, empty or missing": cuts,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="put the table between this page's marks")
    parser.add_argument("--only", help="faults whose name holds this text")
    args = parser.parse_args()
    rows = ["| fault | tried | as promised |", "|---|---|---|"]
    bad = 0
    for name, tries in FAULTS.items():
        if args.only and args.only not in name:
            continue
        outcomes = list(tries(random.Random(0)))
        bad += outcomes.count(False)
        rows.append(f"| {name} | {len(outcomes) or 'not here'} | {outcomes.count(True)} |")
        print(rows[-1], flush=True)
    if args.write:
        page = args.write.read_text()
        before, _, rest = page.partition("<!-- faults -->\n")
        _, _, after = rest.partition("<!-- /faults -->")
        args.write.write_text(before + "<!-- faults -->\n" + "\n".join(rows) + "\n<!-- /faults -->" + after)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
