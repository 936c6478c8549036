"""Half an hour of training, stopping, going on, evaluating: memory, open files and threads stay flat.

Half of it is many short runs in one process (what a run leaves behind), half one long run (what it gathers on the way).
`-s` shows the figures at the start and at the end.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import eipo
from eipo.keeping import Keeper

MINUTES = float(os.environ.get("EIPO_SOAK_MINUTES", "30"))
SETTINGS = {
    "envs.num": 16, "envs.steps": 64, "net.dense": 32, "net.width": 32, "bonus.features": 32, "compute.threads": 2,
    "compute.shards": 2, "checkpoint.minutes": 0, "evaluation.every": 5, "evaluation.episodes": 4,
}  # fmt: skip
ITERATION = 16 * 64
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("eipo/Maze-v0", "eipo", {"envs.options.max_episode_steps": 60}),
    ("eipo/Maze-v0", "dc", {"envs.options.max_episode_steps": 60}),
    ("CartPole-v1", "en", {}),
    ("CartPole-v1", "eo", {"envs.vector": "async", "envs.num": 4, "envs.steps": 256}),
]  # fmt: skip
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc to look into"),
]


class Seen(NamedTuple):
    """Of this process: memory in MB, and how many files, threads and processes of its own it has."""

    memory: float
    files: int
    threads: int
    children: int


def seen() -> Seen:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = [c for task in Path("/proc/self/task").iterdir() for c in (task / "children").read_text().split()]
    files = len(os.listdir("/proc/self/fd"))
    return Seen(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, files, threading.active_count(), len(children))


def assert_flat(figures: list[Seen], what: str, warm: int) -> None:
    """The first `warm` fill caches and pools. Memory may be what the most used until then, and a tenth more."""
    start, last = figures[warm], figures[-1]
    every = [tuple(round(x) for x in s) for s in figures[:: max(1, len(figures) // 20)]]
    print(f"\n{what}, {len(figures)} times: at first {figures[0]}, warm {start}, at the end {last}")
    assert all(now <= then for now, then in zip(last[1:], start[1:], strict=True)), (
        f"files, threads or processes: {every}"
    )
    assert last.memory <= max(s.memory for s in figures[: warm + 1]) * 1.1 + 20, f"memory: {every}"


def one_round(out: Path) -> None:
    for env, method, more in KINDS:
        eipo.train(env, method=method, steps=10 * ITERATION, settings={**SETTINGS, **more}, out=out)
        eipo.resume(out, steps=15 * ITERATION)
        eipo.evaluate(out, episodes=4)
        eipo.load(eipo.export(out, out / "agent.zip"))
        shutil.rmtree(out)


def test_many_runs_leave_nothing_behind(tmp_path: Path) -> None:
    until, figures = time.monotonic() + MINUTES / 2 * 60, []
    while time.monotonic() < until or len(figures) < 6:
        one_round(tmp_path / "run")
        figures.append(seen())
    assert_flat(figures, "rounds of 4 runs", warm=2)


def test_a_long_run_gathers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints after each iteration, evaluations after each fifth; then Ctrl-C.

    An iteration's metrics, which the run returns at its end, take about 2 KB: longer iterations, so that these are few.
    """
    env, method, more = KINDS[0]
    more = {**more, "envs.steps": 512}
    until, figures, after = time.monotonic() + MINUTES / 2 * 60, [], Keeper.after_iteration

    def watched(keeper: Keeper) -> None:
        if keeper.training.iteration % 20 == 0:
            figures.append(seen())
        if time.monotonic() > until and len(figures) >= 6:
            signal.raise_signal(signal.SIGINT)
        after(keeper)

    monkeypatch.setattr(Keeper, "after_iteration", watched)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            eipo.train(env, method=method, steps=10**9, settings={**SETTINGS, **more}, out=tmp_path / "run")
    finally:
        signal.signal(signal.SIGINT, before)
    assert_flat(figures, "20 iterations of one run", warm=3)
