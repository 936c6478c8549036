"""`eipo report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ..errors import EipoError
from .words import writing


@dataclass(frozen=True)
class Report:
    """Draw runs side by side: learning curves, alpha, where each agent has been."""

    runs: Positional[
        Annotated[
            tuple[Path, ...],
            arg(metavar="RUN_OR_DIR...", help="runs, or directories that hold runs", help_behavior_hint=""),
        ]
    ] = ()
    out: Annotated[Path, arg(aliases=["-o"], metavar="DIR", help="directory to write the report to")] = Path("report")

    def __call__(self) -> None:
        if not self.runs:
            raise EipoError("name at least one run, or a directory that holds runs: eipo report RUN_OR_DIR... -o DIR")
        from ..study.report import report

        with writing(self.out):
            picture = report(self.runs, self.out)
        print(f"report: {picture}")
