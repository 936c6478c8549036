"""`eipo demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction, arg

from ..demo import DEMO_SEED, DEMO_STEPS
from .ending import Stopped
from .words import Whole, free, refuse_unusable, writing


@dataclass(frozen=True)
class Demo:
    """Train EIPO, EN and EO on the maze side by side, and draw the report."""

    out: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="directory of the runs and the report; must not hold anything yet",
            help_behavior_hint="(default: demo, or demo-2, ... where there is one already)",
        ),
    ] = None
    steps: Annotated[Whole, arg(help="environment steps of each run")] = DEMO_STEPS
    seed: Annotated[Whole, arg(help="seed of the runs; not every one ends alike")] = DEMO_SEED
    set: UseAppendAction[
        Annotated[
            tuple[tuple[str, ...], ...],
            arg(metavar="KEY=VALUE...", help="change settings of all; see `eipo list settings`", help_behavior_hint=""),
        ]
    ] = ()

    def __call__(self) -> None:
        from ..demo import demo

        out = self.out if self.out is not None else free(Path("demo"))
        refuse_unusable(out)
        try:
            with writing(out):
                picture = demo(out, self.steps, self.seed, [pair for group in self.set for pair in group])
        except KeyboardInterrupt as stop:
            left = f"{out} keeps what the runs have written" if out.exists() else "nothing is kept"
            raise Stopped(stop, f"stopped; {left}") from None
        print(f"report: {picture}")
