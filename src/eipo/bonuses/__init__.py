"""Second rewards. A bonus rewards a rollout, learns from minibatches of it, and has its state in its state_dict."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium as gym

from ..config import BONUSES
from ..config import Bonus as BonusConfig
from ..errors import EipoError, unknown
from .base import Bonus, Info, NoBonus
from .counts import Counts
from .e3b import E3B
from .icm import ICM
from .rnd import RND

__all__ = ["E3B", "ICM", "RND", "Bonus", "Counts", "Info", "NoBonus", "make_bonus"]


def make_bonus(
    config: BonusConfig,
    observation_space: gym.Space,
    action_space: gym.Space,
    num_envs: int,
    own: Bonus | None = None,
) -> Bonus:
    """A bonus by name: one of ours, info:KEY, or module:Class; `own` is that class' object, if there is one already."""
    spaces, width, share = (observation_space, action_space), config.features, config.share
    head, _, rest = config.name.partition(":")
    if head == "info" and rest:
        return Info(rest)
    if rest:
        bonus = own if own is not None else _imported(head, rest)
        bonus.build(*spaces, num_envs)
        return bonus
    if config.name == "rnd":
        return RND(observation_space, width, share)
    if config.name == "icm":
        return ICM(*spaces, width, share)
    if config.name == "e3b":
        return E3B(*spaces, width, share, num_envs)
    if config.name == "counts":
        return Counts(num_envs)
    if config.name == "none":
        return NoBonus()
    raise unknown("bonus", config.name, BONUSES)


def name_of(bonus: Bonus) -> str:
    """What a configuration calls a bonus that was passed as an object."""
    if not isinstance(bonus, Bonus):
        raise EipoError(f"bonus {bonus!r} is no eipo.Bonus: derive its class from eipo.Bonus, and give it a reward()")
    return f"{type(bonus).__module__}:{type(bonus).__qualname__}"


def _imported(module: str, name: str) -> Bonus:
    """A user's own, made without arguments."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as e:
        raise EipoError(f"bonus {module}:{name} cannot be found: {e}") from e
    if not (isinstance(found, type) and issubclass(found, Bonus)):
        raise EipoError(f"bonus {module}:{name} is no class derived from eipo.Bonus")
    try:
        return found()
    except TypeError as e:
        raise EipoError(f"bonus {module}:{name} cannot be made without arguments: {e}; pass an object instead") from e
