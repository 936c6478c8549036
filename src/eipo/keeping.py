"""Keeping a run: hangs on the training loop and writes checkpoints. A signal ends the run behind one."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import torch

from . import parallel
from .checkpoint import Checkpoints
from .errors import EipoError
from .signals import Stop
from .tracking import Tracker

if TYPE_CHECKING:
    from .training import Training


class Keeper:
    """A checkpoint before the first iteration, every few minutes, on a signal, and at the end."""

    def __init__(self, training: Training, tracker: Tracker) -> None:
        self.training, self.tracker = training, tracker
        self.stop = Stop()
        self.every = training.config.checkpoint.minutes * 60.0
        self.saved = training.iteration if tracker.goes_on is not None else None  # iteration of the last checkpoint
        self.began = time.monotonic()
        # On many processes there is none: each would have to keep its own environments and memories.
        out = tracker.out if parallel.size() == 1 else None
        self.files = Checkpoints(out, training.config.checkpoint.last) if out is not None else None

    def __enter__(self) -> Keeper:
        if self.files is not None:
            self.stop.__enter__()
            try:
                self.save()  # a stop during the first iteration, too, leaves something to go on from
            except BaseException:
                self.stop.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.__exit__()

    def after_iteration(self) -> None:
        """Save if it is time, or if the run is to stop."""
        asked = self.stop.asked is not None
        if asked or time.monotonic() - self.began >= self.every:
            self.save()
        if asked:
            self.stop.leave()

    def save(self) -> None:
        """A checkpoint of this moment, unless there is one."""
        if self.files is None or self.saved == self.training.iteration:
            return
        self.began = time.monotonic()
        state = self.training.state()
        refuse_nan(state)
        about = {"config": dataclasses.asdict(self.training.config), "spaces": self.training.spaces()}
        try:
            self.files.save(self.training.iteration, about | {"training": state, "tracker": self.tracker.state()})
        except OSError as e:
            raise EipoError(f"{unsaved(self.files, self.training.iteration)}: {e.strerror or e}") from e
        self.saved = self.training.iteration


def refuse_nan(state: dict[str, Any]) -> None:
    """What has become NaN must not take the place of what has not."""
    for part in ("agent", "bonus"):
        for name, value in state[part].items():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not value.isfinite().all():
                raise EipoError(f"NaN or infinity in {name} of the {part} after iteration {state['iteration']}")


def unsaved(files: Checkpoints, iteration: int) -> str:
    """That a checkpoint could not be written, and which one there is."""
    there = files.all()
    last = f"the last one is {there[-1]}" if there else "there is none"
    return f"{files.directory}: the checkpoint of iteration {iteration} could not be written ({last})"
