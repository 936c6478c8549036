"""`eipo train`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, UseAppendAction, arg

from ..config import BONUSES, OWN_BONUSES
from ..display import count, duration
from ..errors import EipoError
from ..presets import METHODS, PRESETS
from .ending import Stopped, exit_code
from .words import Whole, follows, free, newest, own_modules, refuse_unusable, said_once, writing

if TYPE_CHECKING:
    from ..training import Run

METRICS = "metrics.jsonl"
LAST = 10  # iterations whose mean return is shown at the end


@dataclass(frozen=True)
class Train:
    """Train an agent and keep the run in a directory."""

    env: Positional[
        Annotated[
            str | None,
            arg(metavar="ENV", help="id of the environment; `eipo list` shows which", help_behavior_hint="(required)"),
        ]
    ] = None
    steps: Annotated[
        Whole | None,
        arg(
            metavar="N",
            help="environment steps to train for, as 4000000, 4_000_000 or 4e6",
            help_behavior_hint="(required; with --resume: the run's own)",
        ),
    ] = None
    method: Annotated[
        str | None,
        arg(metavar="NAME", help=f"one of {', '.join(METHODS)}", help_behavior_hint="(default: eipo)"),
    ] = None
    seed: Annotated[
        Whole | None, arg(metavar="N", help="seed of every generator of the run", help_behavior_hint="(default: 0)")
    ] = None
    resume: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="go on with the run in this directory, from its newest checkpoint; alone, or with --steps and --set",
            help_behavior_hint="",
        ),
    ] = None
    out: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="directory of the run; must not hold anything yet",
            help_behavior_hint="(default: runs/ENV-METHOD-SEED)",
        ),
    ] = None
    preset: Annotated[
        str | None,
        arg(
            metavar="NAME",
            help=f"networks, optimization and sizes: one of {', '.join(PRESETS)}",
            help_behavior_hint="(default: the environment's own)",
        ),
    ] = None
    bonus: Annotated[
        str | None,
        arg(
            metavar="NAME",
            help=f"the second reward: {', '.join([*BONUSES, *OWN_BONUSES])}",
            help_behavior_hint="(default: the preset's, rnd)",
        ),
    ] = None
    track: Annotated[
        Literal["tensorboard", "wandb", "trackio", "none"] | None,
        arg(
            help="what shows the run as it goes; the same as --set track.live=...",
            help_behavior_hint="(default: tensorboard)",
        ),
    ] = None
    set: UseAppendAction[
        Annotated[
            tuple[tuple[str, ...], ...],
            arg(metavar="KEY=VALUE...", help="change single settings; the list below shows all", help_behavior_hint=""),
        ]
    ] = ()

    def __call__(self) -> None:
        """Train, or go on with a run."""
        if self.resume is not None:
            self._go_on(self.resume)
        else:
            self._begin()

    def _settings(self) -> list[str]:
        given = [pair for group in self.set for pair in group]
        return given if self.track is None else [*given, f"track.live={self.track}"]

    def _go_on(self, out: Path) -> None:
        given = [n for n in ("env", "method", "seed", "preset", "bonus", "out") if getattr(self, n) is not None]
        if given:
            names = ", ".join("ENV" if n == "env" else f"--{n}" for n in given)
            raise EipoError(f"--resume goes on with what {out} was told: leave out {names}")
        own_modules()
        from ..resuming import resume

        settings = self._settings()
        _report(out, lambda: resume(out, steps=self.steps, settings=settings, progress=True))

    def _begin(self) -> None:
        if self.env is None:
            raise EipoError("ENV is missing: eipo train ENV --steps N (`eipo list` shows which; eipo train --help)")
        if self.steps is None:
            raise EipoError(f"--steps is missing: eipo train {self.env} --steps N (see eipo train --help)")
        method, seed = self.method or "eipo", self.seed or 0
        out = self.out if self.out is not None else free(Path("runs") / _run_name(self.env, method, seed))
        if not follows():
            refuse_unusable(out)
        own_modules()
        from ..config import check
        from ..presets import make_config

        with said_once():
            config = make_config(
                self.env, method=method, preset=self.preset, steps=self.steps, seed=seed, bonus=self.bonus,
                settings=self._settings(),
            )  # fmt: skip
            check(config)  # before torch is loaded, which takes seconds
            from .. import parallel

            parallel.start()
            parallel.refuse(config)
        from ..training import train_config

        _report(out, lambda: train_config(config, out, progress=True))


def _report(out: Path, train: Callable[[], Run]) -> None:
    """Train, and say what became of it."""
    began = time.monotonic()
    try:
        with writing(out):
            run = train()
    except KeyboardInterrupt as stop:
        if follows():
            raise SystemExit(exit_code(stop)) from None
        raise Stopped(stop, kept(out)) from None
    except EipoError as e:
        if (at := newest(out)) and (out / METRICS).is_file():
            raise EipoError(f"{e} (checkpoint of iteration {at} kept: eipo train --resume {out})") from e
        raise
    if follows():
        return
    took = f"{count(run.metrics[-1]['steps'])} steps in {duration(time.monotonic() - began)}"
    print(f"{out}: {took}; {last_returns(run.metrics)}")
    print(f"next: eipo report {out} -o report")


def _run_name(env: str, method: str, seed: int) -> str:
    return re.sub(r"[^\w.-]+", "-", f"{env.removeprefix('eipo/')}-{method}-{seed}")


def last_returns(metrics: list[dict[str, Any]]) -> str:
    """The mean return of each policy over the last iterations in which an episode of it ended."""
    parts = []
    for policy in ("E", "EI", "I", "mixed"):
        values = [m[f"return_{policy}"] for m in metrics[-LAST:] if m[f"return_{policy}"] is not None]
        if values:
            parts.append(f"{policy} {sum(values) / len(values):.4g}")
    if not parts:
        return "no episode ended"
    return f"return over the last {min(LAST, len(metrics))} iterations: {', '.join(parts)}"


def kept(out: Path) -> str:
    """What a run that was stopped leaves behind."""
    at = newest(out)
    if at is None:
        return "stopped before the first iteration; nothing is kept"
    return f"stopped; {out} keeps a checkpoint of iteration {at}; to go on: eipo train --resume {out}"
