"""Go on with a run from its newest checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import parallel
from .agent import DESCRIPTION, WEIGHTS
from .bonuses import Bonus
from .checkpoint import UNREADABLE, Checkpoints, Found, first_line
from .config import Config, check, with_settings
from .envs.make import Factory
from .errors import EipoError
from .files import held, replace
from .parsing import whole
from .recorded import config_of, differences, read_config
from .tracking import CONFIG, VISITS
from .training import Run, Training, go_on

# What may change when a run goes on. Threads and device change rounding, so not every bit is then the same.
FREE = (
    "steps", "compute.threads", "compute.shards", "compute.device", "checkpoint.minutes", "checkpoint.last",
    "evaluation.every", "evaluation.episodes", "track.live",
)  # fmt: skip


def resume(
    run: str | Path,
    *,
    steps: int | None = None,
    settings: Iterable[str] | Mapping[str, Any] = (),
    progress: bool = False,
    factory: Factory | None = None,
    bonus: Bonus | None = None,
) -> Run:
    """Go on with a run that was stopped, or with a finished one by more `steps` in all.

    On a CPU, where the environments give their state, the result is bit for bit that of a run that never stopped.
    `settings` may change what does not change the result. `factory` and `bonus` are what they were at first, if
    they were Python objects. Raises EipoError where something is wrong that you can mend.
    """
    out = Path(run)
    parallel.start()
    if parallel.size() > 1:
        raise EipoError(f"{out} goes on in one process only: leave out torchrun")
    if not (out / CONFIG).is_file():
        raise EipoError(f"{out} is no run: {CONFIG} is missing")
    with held(out):
        recorded = read_config(out / CONFIG)
        config = with_settings(config_of(recorded["config"], out / CONFIG), settings)
        config = config if steps is None else dataclasses.replace(config, steps=whole("steps", steps))
        check(config)
        files = Checkpoints(out, config.checkpoint.last)
        found = files.newest()
        with _readable(found):
            changes = differences(found.state["config"], dataclasses.asdict(config))
            done = found.state["training"]["iteration"]
        refuse(out, changes, config, done)
        training = Training(config, factory, bonus)
        try:
            exact = load(training, found)
            files.go_on_from(found)
            _record(out, recorded, config, done, changes, None if exact else training.seed_anew())
            return go_on(training, out, progress, found.state["tracker"])
        finally:
            training.close()


def load(training: Training, found: Found) -> bool:
    """Put a checkpoint into a training that was made for it. False: episodes start anew."""
    with _readable(found):
        for kind, now in training.spaces().items():
            if found.state["spaces"][kind] != now:
                raise EipoError(f"{found.path} does not fit: {kind} was {found.state['spaces'][kind]}, is {now}")
        return training.load_state(found.state["training"])


@contextlib.contextmanager
def _readable(found: Found) -> Iterator[None]:
    """What does not hold what a checkpoint holds is one error."""
    try:
        yield
    except UNREADABLE as e:
        raise EipoError(f"{found.path} does not fit: {first_line(e)}") from e


def refuse(out: Path, changes: Mapping[str, tuple[Any, Any]], config: Config, done: int) -> None:
    """Refuse what would make it another run."""
    other = {k: v for k, v in changes.items() if k not in FREE}
    if other:
        shown = ", ".join(f"{k} was {old}, is {new}" for k, (old, new) in other.items())
        raise EipoError(f"{out} cannot go on with other settings: {shown}")
    if "steps" in changes:
        falls = "ppo.anneal" if config.ppo.anneal else "method.lam_decay" if config.method.lam_decay else None
        if falls:
            raise EipoError(
                f"{out} cannot go on to steps={config.steps} instead of {changes['steps'][0]}: {falls} ties every "
                "iteration to the length of the whole run"
            )
    if done > config.iterations:
        raise EipoError(f"{out} is at iteration {done} already; steps={config.steps} are {config.iterations}")


def _record(
    out: Path, recorded: dict[str, Any], config: Config, done: int, changes: Mapping[str, Any], seed: int | None
) -> None:
    """Note in config.json when and how the run went on."""
    entry = {
        "iteration": done,
        "episodes": "go on" if seed is None else "start anew",
        "seed": seed,  # from which they start anew
        "changes": dict(changes),
        "command": sys.argv,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    recorded = {**recorded, "config": dataclasses.asdict(config)}
    recorded["resumed"] = [*recorded.get("resumed", []), entry]
    replace(out / CONFIG, (json.dumps(recorded, indent=1) + "\n").encode())
    if done < config.iterations:
        for name in (DESCRIPTION, WEIGHTS, VISITS):  # of the shorter run: it is not finished now
            (out / name).unlink(missing_ok=True)
