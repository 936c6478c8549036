"""What a run leaves behind and shows on the way: its directory, TensorBoard events, a live bar or plain lines."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import platform
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from safetensors.numpy import save_file

from .agent import TrainedAgent, save_agent
from .config import Config
from .envs.batch import Batch
from .nets import Agent
from .rollout import Rollout

CONFIG, METRICS, VISITS, EVENTS = "config.json", "metrics.jsonl", "visits.safetensors", "tensorboard"
SLICES = 10  # of the run's time, in which visits are counted apart
PLAIN_EVERY = 10.0  # seconds between lines where there is no terminal


class Tracker:
    """Hangs on the training loop: `log` each iteration, `finish` at the end."""

    def __init__(self, config: Config, out: str | Path | None, envs: Batch, agent: Agent, progress: bool) -> None:
        self.config = config
        self.out = Path(out) if out is not None else None
        self.metrics: list[dict[str, Any]] = []
        self.board = envs.board
        self.policies = list(agent.policies)
        self.visits = (
            np.zeros((SLICES, len(self.policies), self.board.size), np.int64) if self.board is not None else None
        )
        self.show = Display(config) if progress else None
        self._file: Any = None
        self._events: Any = None

    def __enter__(self) -> Tracker:
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / CONFIG).write_text(json.dumps(provenance(self.config), indent=1) + "\n")
            self._file = open(self.out / METRICS, "w")
            from torch.utils.tensorboard import SummaryWriter  # slow to import, and only needed here

            self._events = SummaryWriter(str(self.out / EVENTS))
        if self.show is not None:
            self.show.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.show is not None:
            self.show.stop()
        if self._file is not None:
            self._file.close()
            self._events.close()

    def log(self, rollout: Rollout, metrics: dict[str, Any]) -> None:
        """One iteration."""
        metrics = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in metrics.items()}
        self.metrics.append(metrics)
        if self.visits is not None and rollout.cells is not None:
            when = min(SLICES - 1, (metrics["iteration"] - 1) * SLICES // self.config.iterations)
            count = np.bincount(rollout.cells.ravel(), minlength=self.visits.shape[-1])
            self.visits[when, self.policies.index(rollout.acted)] += count
        if self._file is not None:
            self._file.write(json.dumps(metrics) + "\n")
            self._file.flush()
            for name, value in metrics.items():
                if isinstance(value, int | float):
                    self._events.add_scalar(name, value, metrics["steps"])
        if self.show is not None:
            self.show.update(metrics)

    def finish(self, agent: TrainedAgent) -> None:
        """The run is complete: write the agent, and where it has been."""
        if self.out is None:
            return
        if self.visits is not None and self.board is not None:
            save_file(
                {"visits": self.visits, "board": np.ascontiguousarray(self.board)},
                self.out / VISITS,
                metadata={"policies": json.dumps(self.policies)},
            )
        save_agent(agent, self.out)


class Display:
    """Progress: a live bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.recent: dict[str, deque[float]] = {p: deque(maxlen=5) for p in ("E", "EI", "mixed")}
        self.speed: deque[float] = deque(maxlen=10)
        self.said = 0.0
        name = f"{config.method_name} {config.env} seed {config.seed}"
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=None), TaskProgressColumn(), TextColumn("{task.fields[facts]}"),
            TextColumn("ETA"), TimeRemainingColumn(), console=self.console, transient=False,
        )  # fmt: skip
        self.name = name
        self.task: Any = None

    def start(self) -> None:
        if self.live:
            self.bar.start()
            self.task = self.bar.add_task(self.name, total=self.config.iterations, facts="")
        self.began = time.monotonic()

    def stop(self) -> None:
        if self.live:
            self.bar.stop()

    def update(self, metrics: dict[str, Any]) -> None:
        for p, values in self.recent.items():
            if metrics[f"return_{p}"] is not None:
                values.append(metrics[f"return_{p}"])
        self.speed.append(metrics["steps_per_second"])
        if self.live:
            self.bar.update(self.task, completed=metrics["iteration"], facts=self.facts(metrics))
        elif time.monotonic() - self.said > PLAIN_EVERY or metrics["iteration"] == self.config.iterations:
            self.said = time.monotonic()
            done = metrics["iteration"] / self.config.iterations
            left = (self.said - self.began) * (1 - done) / done
            self.console.print(
                f"{self.name} {done:4.0%} {self.facts(metrics)} ETA {left:.0f} s", highlight=False, soft_wrap=True
            )

    def facts(self, metrics: dict[str, Any]) -> str:
        """Steps, each policy's return (mean of its last iterations), alpha, stage, speed."""
        parts = [f"{metrics['steps'] / 1e6:.2f} M steps"]
        parts += [f"return_{p} {np.mean(values):.4g}" for p, values in self.recent.items() if values]
        if "alpha" in metrics:
            parts += [f"alpha {metrics['alpha']:.4f}", f"stage {metrics['stage']}"]
        parts.append(f"{np.mean(self.speed) / 1e3:.1f}k steps/s")
        return "  ".join(parts)


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
