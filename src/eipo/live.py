"""A run as people watch it while it goes: TensorBoard, Weights & Biases or Trackio. None of them can stop a run."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from .config import Config

EVENTS = "tensorboard"  # in the run directory
PROJECT = "eipo"


class Logger(Protocol):
    """What shows metrics."""

    def log(self, metrics: Mapping[str, float], steps: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Events in the run directory."""

    def __init__(self, config: Config, out: Path, steps: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import, and only needed here

        self._writer = SummaryWriter(str(out / EVENTS), purge_step=steps + 1 if steps else None)

    def log(self, metrics: Mapping[str, float], steps: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, steps)

    def close(self) -> None:
        self._writer.close()


class WandB:
    """Weights & Biases, as its own settings and environment variables have it; its files go into the run directory."""

    def __init__(self, config: Config, out: Path, steps: int) -> None:
        import wandb

        self._run = wandb.init(project=PROJECT, name=title(out), dir=str(out), config=dataclasses.asdict(config))

    def log(self, metrics: Mapping[str, float], steps: int) -> None:
        self._run.log(dict(metrics), step=steps)

    def close(self) -> None:
        self._run.finish()


class Trackio:
    """Trackio: the same on one's own machine (`trackio show`)."""

    def __init__(self, config: Config, out: Path, steps: int) -> None:
        import trackio

        self._trackio = trackio
        trackio.init(project=PROJECT, name=title(out), config=dataclasses.asdict(config))

    def log(self, metrics: Mapping[str, float], steps: int) -> None:
        self._trackio.log(dict(metrics), step=steps)

    def close(self) -> None:
        self._trackio.finish()


LOGGERS: dict[str, Callable[[Config, Path, int], Logger]] = {
    "tensorboard": TensorBoard, "wandb": WandB, "trackio": Trackio,
}  # fmt: skip

NAMES = {"tensorboard": "TensorBoard", "wandb": "Weights & Biases", "trackio": "Trackio"}


def title(out: Path) -> str:
    """A run's name there: the last two parts of its directory, which in a sweep are the task and the method."""
    return "/".join(out.absolute().parts[-2:])


class Live:
    """The logger that a run asks for, or nothing. When it fails it is let go, with one warning, and the run goes on."""

    def __init__(self, config: Config, out: Path, steps: int = 0) -> None:
        self.name = config.track.live
        self._logger: Logger | None = None
        if self.name != "none":
            self._logger = self._guarded(lambda: LOGGERS[self.name](config, out, steps))

    def log(self, metrics: Mapping[str, Any]) -> None:
        """One iteration; words and what has no value are left out."""
        logger = self._logger
        if logger is not None:
            numbers = {k: v for k, v in metrics.items() if isinstance(v, int | float)}
            self._guarded(lambda: logger.log(numbers, metrics["steps"]))

    def close(self) -> None:
        if self._logger is not None:
            self._guarded(self._logger.close)
            self._logger = None

    def _guarded(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except ImportError:
            why = f"it is not installed: pip install 'eipo[{self.name}]'"
        except Exception as e:
            why = f"{type(e).__name__}: {e}".splitlines()[0]
        self._logger = None
        warnings.warn(f"{NAMES[self.name]} failed, the run goes on without it: {why}", stacklevel=2)
        return None
