"""`eipo compare`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from ..errors import EipoError
from .words import Whole, writing


@dataclass(frozen=True)
class Compare:
    """Score runs as the paper does, and say which method is better and how surely."""

    runs: Positional[
        Annotated[
            tuple[Path, ...],
            arg(
                metavar="RUN_OR_DIR...",
                help="runs, directories that hold runs, or tables of scores (CSV: task,method,seed,steps,score)",
                help_behavior_hint="",
            ),
        ]
    ] = ()
    paper: Annotated[bool, arg(help="set Atari runs beside the paper's scores; without runs: its tables alone")] = False
    out: Annotated[
        Path | None,
        arg(aliases=["-o"], metavar="DIR", help="write the tables (CSV, Markdown, LaTeX) and a figure here",
            help_behavior_hint=""),
    ] = None  # fmt: skip
    focus: Annotated[
        str | None,
        arg(metavar="METHOD", help="whose wins and losses to show task by task", help_behavior_hint="(default: eipo)"),
    ] = None
    scale: Annotated[
        Literal["reference", "best", "human", "random"],
        arg(
            help="what counts as 1 in normalized scores: the reference method, the best one, a human, the random score"
        ),
    ] = "reference"
    reference: Annotated[str, arg(metavar="METHOD", help="method of --scale reference")] = "eo"
    random: Annotated[
        Path | None,
        arg(metavar="FILE", help="CSV of more random scores: task,random and perhaps human", help_behavior_hint=""),
    ] = None
    policy: Annotated[
        Literal["any", "task"], arg(help="score all episodes, or those of the task policy where it acted")
    ] = "any"
    last: Annotated[Whole, arg(help="episodes whose median is a score")] = 100
    steps: Annotated[
        Whole | None, arg(metavar="N", help="score the runs as they were after so many steps", help_behavior_hint="")
    ] = None
    resamples: Annotated[Whole, arg(help="of the bootstrap that makes the intervals")] = 2000
    seed: Annotated[Whole, arg(help="seed of the bootstrap")] = 0

    def __call__(self) -> None:
        if not self.runs and not self.paper:
            raise EipoError(
                "name at least one run, a directory that holds runs, or a table: eipo compare RUN_OR_DIR..."
            )
        for name in ("last", "steps", "resamples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EipoError(f"--{name} {value}: must be at least 1")
        from rich.console import Console

        from ..study.comparison import compare, write_comparison
        from ..study.scores import Rule
        from ..study.statistics import Bootstrap

        rule, how = Rule(self.last, self.policy, self.steps), Bootstrap(self.resamples, seed=self.seed)
        found = compare(
            self.runs, with_paper=self.paper, rule=rule, scale=self.scale, reference=self.reference,
            random=self.random, focus=self.focus, how=how,
        )  # fmt: skip
        # A pipe has no width: there no table is torn apart.
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
        for table in found.tables.values():
            table.show(console)
        for note in found.notes:
            print(f"note: {note}")
        if self.out is not None:
            with writing(self.out):
                files = write_comparison(found, self.out)
            print(f"{len(files)} files in {self.out}")
