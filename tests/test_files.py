"""What the machine does to a run's files: a process killed while it saves, a disk that fails, two processes on one."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import eipo
from eipo import files, resuming
from eipo.checkpoint import Checkpoints, flatten
from eipo.errors import EipoError
from eipo.training import Training


def test_kill_9_at_200_moments_of_saving(in_memory: Path) -> None:
    """A process that only saves a run, killed after a random time: the run can always go on, and never loses a save."""
    run = in_memory / "run"
    small = {"envs.num": 4, "envs.steps": 8, "net.dense": 8, "net.width": 8, "bonus.features": 8, "compute.shards": 1,
             "compute.threads": 1, "checkpoint.last": 3}  # fmt: skip
    config = eipo.train("eipo/Maze-v0", steps=64, settings=small, out=run).config
    kept, training = Checkpoints(run, 3), Training(config)
    state = kept.newest().state
    began = time.monotonic()
    for _ in range(4):
        kept.save(2, state)
    takes = (time.monotonic() - began) / 4
    rng, left_behind, scale = random.Random(0), set(), 2.0
    first = before = int(kept.newest().path.suffix[1:])
    for killed in range(200):
        child = os.fork()
        if child == 0:
            try:
                while True:
                    kept.save(2, state)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0.1, scale) * takes)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        aside = [p for p in (run / "checkpoints").iterdir() if p.name.startswith(".")]
        left_behind.add(len(list(aside[0].iterdir())) if aside else -1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing may be damaged
            found = kept.newest()
        assert int(found.path.suffix[1:]) >= before
        # However busy the machine is: neither too early for every save, nor too late to hit one.
        scale *= 1.15 if int(found.path.suffix[1:]) == before else 0.8
        before = int(found.path.suffix[1:])
        assert resuming.load(training, found)
        assert _plain(training.state()) == _plain(found.state["training"])
        if killed % 50 == 0:
            assert len(eipo.resume(run).metrics) == 2
    assert before > first + 10  # many saves came to their end,
    assert len(left_behind) >= 3  # and many did not, at different files
    assert len(eipo.resume(run, steps=96).metrics) == 3


def _plain(tree: Any) -> Any:
    return json.loads(json.dumps(flatten(tree, "", {})))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("calls", range(1, 8))
def test_a_disk_that_fails_at_any_write(
    error: int, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The save fails with what the system says; the checkpoints before it stay, and room is given back."""
    left, kept = calls, Checkpoints(tmp_path, 5)
    for i in (1, 2):
        kept.save(i, {"i": i})

    def fsync(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(files.os, "fsync", fsync)
    if calls <= 5:
        with pytest.raises(OSError, match=os.strerror(error)):
            kept.save(3, {"i": 3})
    else:
        kept.save(3, {"i": 3})
    monkeypatch.undo()
    names = [p.name for p in (tmp_path / "checkpoints").iterdir()]
    assert not [n for n in names if n.startswith(".")]
    assert kept.newest().state["i"] == (2 if calls <= 4 else 3)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.json"
    files.replace(path, b"one")
    monkeypatch.setattr(files.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        files.replace(path, b"two")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["agent.json"]


def test_the_lock_ends_with_its_process_and_not_with_a_child_of_it(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    holder = os.fork()
    if holder == 0:
        with files.held(tmp_path):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            os.write(write_end, str(child).encode())
            time.sleep(60)
        os._exit(0)
    child = int(os.read(read_end, 20))
    try:
        with pytest.raises(EipoError, match="another process is writing"), files.held(tmp_path):
            pass
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        with files.held(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
