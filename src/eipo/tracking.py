"""What a run leaves behind: its directory. What it shows on the way is in display.py and live.py."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save

from . import past
from .agent import TrainedAgent, save_agent
from .checkpoint import DIRECTORY as CHECKPOINTS
from .config import Config
from .display import Display
from .envs.batch import Batch
from .errors import EipoError
from .files import held, replace
from .live import EVENTS, Live
from .nets import Agent
from .rollout import Rollout
from .signals import uninterrupted

CONFIG, METRICS, VISITS = "config.json", "metrics.jsonl", "visits.safetensors"
EPISODES, EPISODE_COLUMNS = "episodes.csv", ("iteration", "steps", "policy", "score", "length")
SLICES = 10  # of the run's time, in which visits are counted apart


class Tracker:
    """Hangs on the training loop: `log` each iteration, `finish` at the end.

    With `goes_on`, the state() of a checkpoint, its files are cut back to what they were then, and written on.
    """

    def __init__(
        self, config: Config, out: str | Path | None, envs: Batch, agent: Agent, progress: bool,
        goes_on: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.config = config
        self.out = Path(out) if out is not None else None
        self.metrics: list[dict[str, Any]] = []
        self.board = envs.board
        self.policies = list(agent.policies)
        self.visits = (
            np.zeros((SLICES, len(self.policies), self.board.size), np.int64) if self.board is not None else None
        )
        self.goes_on = goes_on
        if goes_on is not None and self.visits is not None:
            self.visits = past.spread(goes_on, self.visits.shape, config.iterations)
        self.show = Display(config, self.out, goes_on["iteration"] if goes_on else 0) if progress else None
        self._lock = contextlib.ExitStack()
        self._file: Any = None
        self._episodes: Any = None
        self._live: Live | None = None
        self._made: list[Path] = []  # directories that this run made

    def __enter__(self) -> Tracker:
        self._open()
        if self.show is not None:
            self.show.start()
        return self

    @uninterrupted()
    def _open(self) -> None:
        if self.out is not None:
            self._made = [p for p in (self.out, *self.out.parents) if not p.exists()]
            self.out.mkdir(parents=True, exist_ok=True)
            done = self.goes_on["iteration"] * self.config.steps_per_iteration if self.goes_on is not None else 0
            if self.goes_on is None:
                self._lock.enter_context(held(self.out))
                replace(self.out / CONFIG, (json.dumps(provenance(self.config), indent=1) + "\n").encode())
                (self.out / EPISODES).write_text(",".join(EPISODE_COLUMNS) + "\n")
            else:
                self.metrics = past.cut_metrics(self.out / METRICS, self.goes_on["iteration"])
                past.cut_episodes(self.out / EPISODES, self.goes_on["iteration"])
            self._file = (self.out / METRICS).open("a")  # closed on exit
            self._episodes = (self.out / EPISODES).open("a")
            self._live = Live(self.config, self.out, done)

    @uninterrupted()
    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self.show is not None:
            self.show.stop()
        for file in (self._file, self._episodes):
            if file is not None:
                # What a full disk has not taken fails again: the error that ends the run is the first.
                with contextlib.suppress(OSError) if kind is not None else contextlib.nullcontext():
                    file.close()
        if self._live is not None:
            self._live.close()
        if kind is not None and issubclass(kind, EipoError) and not self.metrics and self.goes_on is None:
            self._leave_nothing()
        self._lock.close()

    def _leave_nothing(self) -> None:
        """Take back what was made for a run that could not begin. The directory was empty before."""
        if self.out is not None:
            for name in (CONFIG, METRICS, EPISODES):
                (self.out / name).unlink(missing_ok=True)
            for within in (EVENTS, CHECKPOINTS):
                shutil.rmtree(self.out / within, ignore_errors=True)
            for directory in self._made:
                with contextlib.suppress(OSError):  # something else has come to lie in it
                    directory.rmdir()

    @uninterrupted()
    def log(self, rollout: Rollout, metrics: dict[str, Any]) -> None:
        """One iteration."""
        metrics = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in metrics.items()}
        self.metrics.append(metrics)
        if self.visits is not None and rollout.cells is not None:
            when = min(SLICES - 1, (metrics["iteration"] - 1) * SLICES // self.config.iterations)
            for policy, cells in zip(rollout.acted, rollout.cells.T, strict=True):
                np.add.at(self.visits[when, self.policies.index(policy)], cells, 1)
        if self._file is not None:
            self._write_episodes(rollout, metrics)  # first: what has a line of metrics has all its episodes
            self._file.write(json.dumps(metrics) + "\n")
            self._file.flush()
        if self._live is not None:
            self._live.log(metrics)
        if self.show is not None:
            self.show.update(metrics)

    def _write_episodes(self, rollout: Rollout, metrics: dict[str, Any]) -> None:
        """The iteration's episodes in the order in which they ended."""
        when = f"{metrics['iteration']},{metrics['steps']}"
        self._episodes.writelines(f"{when},{e.policy},{e.score!r},{e.length}\n" for e in rollout.episodes)
        self._episodes.flush()

    @uninterrupted()
    def finish(self, agent: TrainedAgent) -> None:
        """The run is complete: write the agent, and where it has been."""
        if self.out is None:
            return
        if self.visits is not None and self.board is not None:
            arrays = {"visits": self.visits, "board": np.ascontiguousarray(self.board)}
            replace(self.out / VISITS, save(arrays, metadata={"policies": json.dumps(self.policies)}))
        save_agent(agent, self.out)

    @uninterrupted()
    def state(self) -> dict[str, Any]:
        """For a checkpoint: what is only written at the end. What is written as the run goes is flushed to the disk."""
        for file in (self._episodes, self._file):
            if file is not None:
                os.fsync(file.fileno())  # `log` has flushed it
        state: dict[str, Any] = {"iteration": len(self.metrics), "iterations": self.config.iterations}
        if self.visits is not None:  # mostly zeros
            state["cells"] = np.flatnonzero(self.visits)
            state["visits"] = self.visits.ravel()[state["cells"]]
        return state


def provenance(config: Config) -> dict[str, Any]:
    """The whole configuration, and what else decides the result."""
    packages = ("eipo", "torch", "numpy", "gymnasium")
    return {
        "format": 1,
        "config": dataclasses.asdict(config),
        "versions": {"python": platform.python_version(), **{p: importlib.metadata.version(p) for p in packages}},
        "machine": {"system": platform.platform(), "threads": torch.get_num_threads()},
        "git": _git(),
        "command": sys.argv,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _git() -> dict[str, Any] | None:
    """Commit of the working directory, and whether it has changes; None outside a repository."""

    def git(*args: str) -> str:
        return subprocess.run(["git", *args], capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None
