"""Sentences about single runs: what a reader should know before trusting a curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..diagnosis import diagnose
from ..figures import steps_in_words
from ..runs import RunData


def notes_of(run: RunData) -> list[str]:
    """What every source has to say of a run, in their order, each sentence once."""
    return list(dict.fromkeys(sentence for source in SOURCES for sentence in source(run)))


def progress(run: RunData) -> list[str]:
    """How far it has come."""
    if run.finished:
        return []
    done, asked = steps_in_words(run.numbers["steps"][-1]), steps_in_words(run.config["steps"])
    return [f"Not finished: {done} of {asked} steps."]


def returns(run: RunData) -> list[str]:
    """Whether there is any. That the reward was never seen, the diagnosis says."""
    return [] if np.isfinite(run.column("return")).any() else ["No episode has ended, so there is no return."]


SOURCES: tuple[Callable[[RunData], list[str]], ...] = (progress, returns, diagnose)
