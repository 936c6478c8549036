"""Progress on stderr: a live line on a terminal, a plain line now and then elsewhere. Light: it needs no torch."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .config import Config

PLAIN_EVERY = 10.0  # seconds between lines where there is no terminal
RECENT = 5  # iterations that a shown return is the mean of
NARROW_BAR = 8  # columns; a form of the line that leaves less goes without a bar
FREE = 4  # columns: a terminal echoes ^C behind the line, and may wrap when its last column is written to


class Progress:
    """What is known of one run while it goes on, and how to say it in a given width."""

    def __init__(self, iterations: int, total_steps: int, before: int = 0) -> None:
        self.iterations, self.total = iterations, total_steps
        self.before = before / iterations  # share of the run that was done when it went on
        self.returns: dict[str, deque[float]] = {p: deque(maxlen=RECENT) for p in ("E", "EI", "I", "mixed")}
        self.speeds: deque[float] = deque(maxlen=10)
        self.last: Mapping[str, Any] = {}
        self.began = time.monotonic()
        self.ended: float | None = None

    def update(self, metrics: Mapping[str, Any]) -> None:
        """One iteration."""
        for policy, values in self.returns.items():
            if metrics.get(f"return_{policy}") is not None:
                values.append(metrics[f"return_{policy}"])
        self.speeds.append(metrics["steps_per_second"])
        self.last = metrics
        if self.done == 1.0:
            self.ended = time.monotonic()

    @property
    def done(self) -> float:
        return self.last["iteration"] / self.iterations if self.last else 0.0

    @property
    def left(self) -> float | None:
        """Seconds still to go."""
        since = self.done - self.before
        return (time.monotonic() - self.began) * (1 - self.done) / since if since > 0 else None

    @property
    def speed(self) -> float:
        """Steps a second, lately."""
        return sum(self.speeds) / max(1, len(self.speeds))

    def means(self) -> dict[str, str]:
        """The mean return of each policy over its last iterations."""
        return {p: f"{sum(v) / len(v):.4g}" for p, v in self.returns.items() if v}

    def clock(self) -> str:
        if self.ended is not None:
            return f"took {duration(self.ended - self.began)}"
        return f"ETA {duration(self.left) if self.left is not None else '-'}"

    def forms(self) -> list[str]:
        """The same facts, from the long form to the shortest."""
        m, steps = self.last, self.last.get("steps", 0)
        if not m:
            return ["  0%  starting"] * 5
        means = self.means()
        policies = {p: v for p, v in means.items() if p != "mixed"} or means
        alpha = [f"alpha {m['alpha']:.3f}"] if "alpha" in m else []
        stage = [m["stage"]] if "stage" in m else []
        long = [
            f"{self.done:4.0%}", f"{count(steps)} of {count(self.total)} steps",
            *([f"return {'  '.join(f'{p} {v}' for p, v in means.items())}"] if means else []), *alpha,
            *(f"stage {name}" for name in stage),
            f"{self.speed / 1e3:.1f}k steps/s", self.clock(),
        ]  # fmt: skip
        short = [
            f"{self.done:4.0%}", f"{count(steps)}/{count(self.total)}", *(f"{p} {v}" for p, v in policies.items()),
            *([" ".join(alpha + stage)] if alpha else []), f"{self.speed / 1e3:.1f}k/s", self.clock(),
        ]  # fmt: skip
        tiny = [f"{self.done:4.0%}", *(f"{p} {v}" for p, v in policies.items()), self.clock()]
        return ["  ".join(long), "  ".join(short), " ".join(short), " ".join(tiny), short[0]]

    def line(self, width: int) -> RenderableType:
        """A bar and the longest form that fits beside it: always one line."""
        long, short, tight, tiny, share = self.forms()
        for text in (long, short, tight):
            if (bar := width - len(text) - 1) >= NARROW_BAR:
                line = Table.grid(padding=(0, 1, 0, 0))
                line.add_row(ProgressBar(total=1.0, completed=self.done, width=min(bar, 40)), Text(text, no_wrap=True))
                return line
        return Text(next((t for t in (tight, tiny, share) if len(t) <= width), ""), no_wrap=True)


class Screen:
    """Shows `live(columns)` on a terminal, given lines elsewhere. A closed stderr ends the show, not the run."""

    def __init__(self, live: Callable[[int], RenderableType]) -> None:
        console = Console(stderr=True, highlight=False)
        self.is_live = console.is_terminal and not console.is_dumb_terminal
        self._live = (
            Live(get_renderable=lambda: live(console.width - FREE), console=console, refresh_per_second=4)
            if self.is_live
            else None
        )
        self._said = time.monotonic() - PLAIN_EVERY
        self._closed = False

    def start(self) -> None:
        if self._live is not None:
            self._live.start()

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()

    def line(self, text: str) -> None:
        """A line of its own, above what is live."""
        if self._live is not None:
            self._live.console.print(Text(text), soft_wrap=True)
            return
        try:
            if not self._closed and sys.stderr is not None:
                print(text, file=sys.stderr, flush=True)
        except OSError:
            self._closed = True

    def is_time(self, now: bool = False) -> bool:
        """Whether a plain line is due, where nothing is live."""
        due = not self.is_live and (now or time.monotonic() - self._said >= PLAIN_EVERY)
        if due:
            self._said = time.monotonic()
        return due


class Display:
    """Progress of one run."""

    def __init__(self, config: Config, out: Path | None = None, before: int = 0) -> None:
        self.config, self.out, self.before = config, out, before
        self.progress = Progress(config.iterations, config.iterations * config.steps_per_iteration, before)
        self.screen = Screen(self.progress.line)

    def start(self) -> None:
        c = self.config
        self.screen.line(
            f"{c.method_name} on {c.env}, preset {c.preset}, seed {c.seed}: "
            f"{c.iterations} iteration{'s' * (c.iterations > 1)} of {c.steps_per_iteration} steps"
            + (f", kept in {self.out}" if self.out is not None else "")
            + (f", goes on after {self.before}" if self.before else "")
        )
        self.progress.began = time.monotonic()
        self.screen.start()

    def stop(self) -> None:
        self.screen.stop()

    def update(self, metrics: Mapping[str, Any]) -> None:
        """One iteration."""
        self.progress.update(metrics)
        if self.screen.is_time(now=self.progress.done == 1.0):
            self.screen.line(f"{self.config.method_name} {self.progress.forms()[0]}")


def count(n: float) -> str:
    """1680000 as 1.68M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            x = n / size
            return f"{x:.{2 if x < 10 else 1 if x < 100 else 0}f}{sign}"
    return f"{n:.0f}"


def duration(seconds: float) -> str:
    """103.0 as 1:43."""
    minutes, s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{s:02}" if hours else f"{minutes}:{s:02}"
