"""`eipo sweep`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ..errors import EipoError
from .ending import Stopped
from .words import Whole, writing


@dataclass(frozen=True)
class Sweep:
    """Train all runs of a study: methods x environments x seeds x settings, side by side on Ray."""

    study: Positional[
        Annotated[
            str,
            arg(metavar="STUDY", help="a study.toml, or the name of a ready study", help_behavior_hint=""),
        ]
    ] = ""
    list: Annotated[bool, arg(help="show the ready studies")] = False
    status: Annotated[bool, arg(help="show what is complete and what is left, and train nothing")] = False
    out: Annotated[
        Path | None,
        arg(metavar="DIR", help="directory of the runs", help_behavior_hint="(default: runs/STUDY)"),
    ] = None
    address: Annotated[
        str | None,
        arg(
            metavar="HOST:PORT",
            help="a Ray cluster, or `auto` for the one that this machine belongs to",
            help_behavior_hint="(default: this machine alone)",
        ),
    ] = None
    jobs: Annotated[Whole, arg(help="runs at a time; 0: as many as there are cores")] = 0
    gpus: Annotated[float, arg(help="GPUs of each run; 0.25 lets four runs share one")] = 0.0
    tasks: Annotated[tuple[str, ...], arg(metavar="NAME...", help="only these", help_behavior_hint="")] = ()
    methods: Annotated[tuple[str, ...], arg(metavar="NAME...", help="only these", help_behavior_hint="")] = ()
    seeds: Annotated[
        tuple[Whole, ...], arg(metavar="N...", help="these in place of the study's", help_behavior_hint="")
    ] = ()

    def __call__(self) -> None:
        from ..study.plan import chosen, plan, progress, read_study, ready, status_text

        if self.list:
            names = ready()
            print("\n".join(f"{name:<{max(map(len, names))}}  {doc}" for name, doc in names.items()))
            return
        if not self.study:
            raise EipoError("name a study: eipo sweep STUDY (a study.toml, or one that `eipo sweep --list` shows)")
        study = chosen(read_study(self.study), self.tasks, self.methods, self.seeds)
        out = self.out if self.out is not None else Path("runs") / study.name
        runs = plan(study, out)
        if self.status:
            print(status_text(study, runs))
            return
        from ..study.sweep import sweep

        try:
            with writing(out):
                failed = sweep(runs, out, self.address, self.jobs, self.gpus, lambda line: print(line, flush=True))
        except KeyboardInterrupt as stop:
            left = sum(progress(run) < 1.0 for run in runs)
            raise Stopped(stop, f"stopped; {left} of {len(runs)} runs left, the same command goes on") from None
        if failed:
            raise EipoError(f"{failed} of {len(runs)} runs failed; each has left its reason in DIR/TASK/RUN.error.txt")
        print(f"next: eipo report {out} -o report")
