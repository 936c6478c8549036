"""`eipo evaluate` and `eipo export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from .words import Whole, own_modules, writing

AGENT = "directory of a run, finished or not, or a file that `eipo export` has written"


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained agent: mean, median and interquartile mean, with 95 % intervals."""

    agent: Positional[Annotated[Path, arg(metavar="RUN_OR_FILE", help=AGENT)]]
    episodes: Annotated[Whole, arg(help="episodes to play")] = 100
    policy: Annotated[
        str | None,
        arg(
            metavar="E|EI",
            help="who plays: E (task) or EI (task and bonus)",
            help_behavior_hint="(default: E where there is one)",
        ),
    ] = None
    seed: Annotated[Whole, arg(help="seed of environments and actions")] = 0
    deterministic: Annotated[bool, arg(help="play the likeliest actions instead of drawing them")] = False
    video: Annotated[
        Path | None, arg(metavar="MP4", help="film the first episode (extra `video`)", help_behavior_hint="")
    ] = None
    out: Annotated[
        Path | None,
        arg(
            metavar="JSON",
            help="where to write scores and lengths",
            help_behavior_hint="(default: evaluation-POLICY.json in the run, or beside the file)",
        ),
    ] = None

    def __call__(self) -> None:
        own_modules()
        from ..evaluation import evaluate
        from ..sharing import find_agent

        policy = self.policy or find_agent(self.agent).agent.policy
        directory = self.agent if self.agent.is_dir() else self.agent.parent
        out = self.out if self.out is not None else directory / f"evaluation-{policy}.json"
        with writing(out):
            result = evaluate(
                self.agent, episodes=self.episodes, policy=policy, seed=self.seed, deterministic=self.deterministic,
                video=self.video, out=out,
            )  # fmt: skip
        print(described(result))
        print(f"written: {out}" + (f", {self.video}" if self.video is not None else ""))


def described(result: dict[str, Any]) -> str:
    """One line a measure."""
    lines = [f"{result['method']} on {result['env']}, policy {result['policy']}, {result['episodes']} episodes:"]
    for name, title in (("mean", "mean"), ("median", "median"), ("iqm", "IQM")):
        low, high = result[f"{name}_interval"]
        lines.append(f"  {title:<7}{result[name]:.4g} ({low:.4g} to {high:.4g})")
    return "\n".join(lines)


@dataclass(frozen=True)
class Export:
    """Write a run's agent as one file, to share: weights, description, model card."""

    run: Positional[Annotated[Path, arg(metavar="RUN", help="directory of the run")]]
    file: Positional[Annotated[Path, arg(metavar="FILE", help="the file to write, as agent.zip")]]

    def __call__(self) -> None:
        from ..sharing import export

        with writing(self.file):
            export(self.run, self.file)
        print(f'{self.file}: read it with eipo.load("{self.file}"), play it with eipo evaluate {self.file}')
