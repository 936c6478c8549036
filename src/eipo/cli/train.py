"""`eipo train`."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, UseAppendAction, arg

from ..config import BONUSES, OWN_BONUSES, Config
from ..display import count, duration
from ..presets import METHODS, PRESETS
from .words import Stopped, Whole, free, refuse_unusable, writing

LAST = 10  # iterations whose mean return is shown at the end


@dataclass(frozen=True)
class Train:
    """Train an agent and keep the run in a directory."""

    env: Positional[Annotated[str, arg(metavar="ENV", help="id of the environment; `eipo list` shows which")]]
    steps: Annotated[Whole, arg(help="environment steps to train for, as 4000000, 4_000_000 or 4e6")]
    method: Annotated[str, arg(metavar="NAME", help=f"one of {', '.join(METHODS)}")] = "eipo"
    seed: Annotated[Whole, arg(help="seed of every generator of the run")] = 0
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
    set: UseAppendAction[
        Annotated[
            tuple[tuple[str, ...], ...],
            arg(metavar="KEY=VALUE...", help="change single settings; the list below shows all", help_behavior_hint=""),
        ]
    ] = ()

    def __call__(self) -> None:
        out = self.out if self.out is not None else free(Path("runs") / _run_name(self.env, self.method, self.seed))
        refuse_unusable(out)
        if ":" in f"{self.env}{self.bonus}" and "" not in sys.path:
            sys.path.append("")  # a user's own module:Name-v0 or module:Class, beside which the command runs
        from ..config import check
        from ..presets import make_config

        config = make_config(
            self.env, method=self.method, preset=self.preset, steps=self.steps, seed=self.seed, bonus=self.bonus,
            settings=[pair for group in self.set for pair in group],
        )  # fmt: skip
        check(config)  # before torch is loaded, which takes seconds
        from ..training import train_config

        began = time.monotonic()
        try:
            with writing(out):
                run = train_config(config, out, progress=True)
        except KeyboardInterrupt as stop:
            raise Stopped(stop, kept(out, config)) from None
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


def kept(out: Path, config: Config) -> str:
    """What a run that was stopped leaves behind."""
    try:
        with open(out / "metrics.jsonl") as lines:
            done = sum(1 for _ in lines)
    except OSError:
        return "stopped before the first iteration; nothing is kept"
    return (
        f"stopped after {done} of {config.iterations} iterations; "
        f"{out} keeps the configuration and the metrics so far, but no agent"
    )
