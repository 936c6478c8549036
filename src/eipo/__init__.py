"""eipo: a second reward without its weight.

>>> import eipo
>>> run = eipo.train("eipo/Maze-v0", method="eipo", steps=4_000_000, seed=0, out="runs/x")
>>> agent = eipo.load("runs/x")
>>> action, state = agent.act(observation, state=None)
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from .envs import register as _register
from .errors import EipoError

if TYPE_CHECKING:
    from .agent import TrainedAgent, load
    from .bonuses import Bonus
    from .config import Config
    from .evaluation import evaluate
    from .presets import METHODS, PRESETS, make_config
    from .resuming import resume
    from .sharing import export
    from .training import Run, train, train_config

__all__ = [
    "METHODS", "PRESETS", "Bonus", "Config", "EipoError", "Run", "TrainedAgent", "evaluate", "export", "load",
    "make_config", "resume", "train", "train_config",
]  # fmt: skip
__version__ = "0.1.0"

# Torch's threads wait in a loop for their next work, a millisecond and more, in which emulators and physics could have
# the core. Read by the OpenMP runtime as torch loads; docs/performance.md says what it is worth.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

_register()

# gymnasium.make("eipo:eipo/Maze-v0") imports this package: torch is only loaded when it is needed.
_HOME = {
    "METHODS": "presets", "PRESETS": "presets", "make_config": "presets", "Bonus": "bonuses", "Config": "config",
    "TrainedAgent": "agent", "load": "agent", "Run": "training", "train": "training", "train_config": "training",
    "resume": "resuming", "evaluate": "evaluation", "export": "sharing",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'eipo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
