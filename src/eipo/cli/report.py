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
    """Show runs side by side, as a picture or as a page: learning curves, alpha, where each agent has been."""

    runs: Positional[
        Annotated[
            tuple[Path, ...],
            arg(metavar="RUN_OR_DIR...", help="runs, or directories that hold runs", help_behavior_hint=""),
        ]
    ] = ()
    out: Annotated[
        Path,
        arg(
            aliases=["-o"], metavar="DIR_OR_HTML", help="a directory for a picture (PNG, SVG), or NAME.html for a page"
        ),
    ] = Path("report")
    figures: Annotated[bool, arg(help="beside a page, a picture of each world (PNG, SVG)")] = False

    def __call__(self) -> None:
        if not self.runs:
            raise EipoError("name at least one run, or a directory that holds runs: eipo report RUN_OR_DIR... -o DIR")
        if self.out.suffix.lower() not in (".html", ".htm"):
            if self.figures:
                raise EipoError(f"--figures go beside a page: -o {self.out}.html; a directory gets its picture anyway")
            from ..study.report import report

            with writing(self.out):
                picture = report(self.runs, self.out)
            print(f"report: {picture}")
            self._say()
            return
        from ..study.page import write_page

        with writing(self.out):
            for file in write_page(self.runs, self.out, self.figures):
                print(f"report: {file}")
        self._say()

    def _say(self) -> None:
        """What is wrong with single runs."""
        from ..study.diagnosis import diagnose
        from ..study.runs import read_runs

        for run in read_runs(self.runs):
            for sentence in diagnose(run):
                print(f"{run.path.name}: {sentence}")
