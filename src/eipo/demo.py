"""The demo: EIPO and two baselines on the maze, side by side in three processes, then a report."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from rich.progress_bar import ProgressBar
from rich.table import Table

from .config import Config, check
from .display import Progress, Screen, count, duration
from .errors import EipoError
from .presets import make_config

DEMO_STEPS = 2_500_000
DEMO_SEED = 4  # one on which EIPO keeps the reward that it finds; results/ says how often it does
ENV, PRESET = "eipo/Maze-v0", "maze-grid"
METHODS = ("eipo", "en", "eo")
# Three runs share the cores: more threads in each would only get into each other's way.
SETTINGS = ("compute.threads=1", "compute.shards=1")
POLL = 0.25  # seconds


class Child:
    """One run in a process of its own, followed by the lines that it appends to its metrics."""

    def __init__(self, config: Config, out: Path, settings: Sequence[str]) -> None:
        self.name, self.out = config.method_name, out
        self.progress = Progress(config.iterations, config.iterations * config.steps_per_iteration)
        self.said = self.progress.last  # what the plain line before was about
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  a file never fills up, a pipe does
        self._metrics: IO[str] | None = None
        self._rest = ""
        command = [
            sys.executable, "-m", "eipo", "train", config.env,
            "--method", config.method_name, "--preset", config.preset,
            "--steps", str(config.steps), "--seed", str(config.seed), "--out", str(out), "--set", *settings,
        ]  # fmt: skip
        # TERM: what it says is kept for an error message, where colours have no place.
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._stderr,
            env={**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def read(self) -> None:
        """Take in the iterations that it has finished since."""
        if self._metrics is None:
            try:
                self._metrics = open(self.out / "metrics.jsonl")  # noqa: SIM115  read on until close()
            except FileNotFoundError:
                return
            self.progress.began = time.monotonic()  # loading torch is over
        *lines, self._rest = (self._rest + self._metrics.read()).split("\n")
        for line in lines:
            self.progress.update(json.loads(line))

    def error(self) -> str | None:
        """Why it ended, if it ended badly."""
        if self.process.poll() in (None, 0):
            return None
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), f"ended with code {self.process.returncode}")
        return last.removeprefix("eipo: ").removeprefix("error: ")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def close(self) -> None:
        """Wait for its end, but not for long."""
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stderr.close()
        if self._metrics is not None:
            self._metrics.close()


def table(children: Sequence[Child], width: int) -> Table:
    """The runs below each other, one line each; what does not fit is cut, never wrapped."""
    grid = Table.grid(padding=(0, 2 if width > 90 else 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, width=max(8, min(30, width - 76)))
    for _ in range(8):
        grid.add_column(justify="right", no_wrap=True)
    total = children[0].progress.total if children else 0
    grid.add_row(
        "", "", f"of {count(total)}", "", "return E", "return EI", "alpha", "stage", "steps/s", "ETA", style="dim"
    )
    for child in children:
        p = child.progress
        bar = ProgressBar(total=1.0, completed=p.done)
        if not p.last:
            grid.add_row(child.name.upper(), bar, "starts")
            continue
        means, alpha = p.means(), p.last.get("alpha")
        grid.add_row(
            child.name.upper(), bar, count(p.last["steps"]), f"{p.done:.0%}", means.get("E", ""), means.get("EI", ""),
            "" if alpha is None else f"{alpha:.3f}", p.last.get("stage", ""), f"{p.speed / 1e3:.1f}k",
            "done" if p.done == 1.0 else duration(p.left or 0.0),
        )  # fmt: skip
    return grid


def demo(out: Path, steps: int, seed: int, settings: Iterable[str] = ()) -> Path:
    """Train the three runs into `out`, draw the report there and return its path."""
    chosen = [*SETTINGS, *settings]
    configs = [make_config(ENV, method=m, preset=PRESET, steps=steps, seed=seed, settings=chosen) for m in METHODS]
    for config in configs:
        check(config)
    names = ", ".join(m.upper() for m in METHODS[:-1]) + f" and {METHODS[-1].upper()}"
    out.mkdir(parents=True, exist_ok=True)
    children: list[Child] = []
    screen = Screen(lambda width: table(children, width))
    screen.line(f"{names} on {ENV}, {count(steps)} steps each, side by side; kept in {out}")
    try:
        for config in configs:
            children.append(Child(config, out / config.method_name, chosen))
        screen.start()
        follow(children, screen)
    finally:
        screen.stop()
        for child in children:
            child.stop()
        for child in children:
            child.close()
        with contextlib.suppress(OSError):  # what the runs have made is kept
            out.rmdir()
    from .study.report import report

    return report([child.out for child in children], out)


def follow(children: Sequence[Child], screen: Screen) -> None:
    """Show the runs until all have ended; an error of one ends it all."""
    running = True
    while running:
        running = any(child.process.poll() is None for child in children)
        for child in children:
            child.read()
            if (reason := child.error()) is not None:
                raise EipoError(f"the run {child.out} failed: {reason}")
        if screen.is_time(now=not running):
            for child in children:
                if child.progress.last is not child.said:
                    screen.line(f"{child.name.upper():<5}{child.progress.forms()[0]}")
                    child.said = child.progress.last
        if running:
            time.sleep(POLL)
