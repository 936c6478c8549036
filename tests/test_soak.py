"""Half an hour of training, stopping, going on, evaluating: memory, open files and threads stay flat."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

import eipo

MINUTES = float(os.environ.get("EIPO_SOAK_MINUTES", "30"))
SETTINGS = {
    "envs.num": 16, "envs.steps": 64, "net.dense": 32, "net.width": 32, "bonus.features": 32, "compute.threads": 2,
    "compute.shards": 2, "checkpoint.minutes": 0, "evaluation.every": 5, "evaluation.episodes": 4,
    "envs.options.max_episode_steps": 60,
}  # fmt: skip
ITERATION = 16 * 64


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def round_of(out: Path, env: str, method: str) -> tuple[int, int, int]:
    settings = SETTINGS if env.startswith("eipo/") else {k: v for k, v in SETTINGS.items() if "options" not in k}
    eipo.train(env, method=method, steps=10 * ITERATION, settings=settings, out=out)
    eipo.resume(out, steps=15 * ITERATION)
    eipo.evaluate(out, episodes=4)
    eipo.load(eipo.export(out, out / "agent.zip"))
    shutil.rmtree(out)
    gc.collect()
    return resident(), len(os.listdir("/proc/self/fd")), threading.active_count()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc to look into")
def test_half_an_hour_leaves_nothing_behind(tmp_path: Path) -> None:
    kinds = [("eipo/Maze-v0", "eipo"), ("CartPole-v1", "en"), ("eipo/Maze-v0", "dc")]
    until = time.monotonic() + MINUTES * 60
    seen: list[tuple[int, int, int]] = []
    while time.monotonic() < until or len(seen) < 6:
        seen.append(max(round_of(tmp_path / "run", env, method) for env, method in kinds))
    warm, last = seen[2], seen[-1]  # the first rounds fill caches and pools
    assert last[1] <= warm[1], f"open files: {[s[1] for s in seen]}"
    assert last[2] <= warm[2], f"threads: {[s[2] for s in seen]}"
    assert last[0] <= warm[0] * 1.1 + 20e6, f"memory: {[s[0] // 10**6 for s in seen]} MB"
