"""Environments by id: the packages that bring them are imported where the id says which."""

from __future__ import annotations

import difflib
import importlib

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..errors import EipoError

# How an id begins -> (the module to import, what in it registers the ids if the import does not, what to install)
PACKAGES = {
    "ALE/": ("ale_py", "registration.register_v5_envs", "eipo[atari]"),
    "MinAtar/": ("minatar.gym", "register_envs", "minatar"),
    "MiniGrid-": ("minigrid", "", "minigrid"),
    "BabyAI-": ("minigrid", "", "minigrid"),
}


def find(env_id: str) -> EnvSpec:
    """What Gymnasium knows of an id, which may name a module to import first: module:Name-v0."""
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            importlib.import_module(module)  # which registers the environment
        if name not in gym.registry:
            _import_package(name)
        return gym.spec(name)
    except gym.error.DeprecatedEnv as e:
        raise EipoError(f"environment {env_id!r}: {e}") from e
    except (gym.error.Error, ImportError) as e:
        if env_id in gym.registry or isinstance(e, ImportError):
            raise EipoError(f"environment {env_id!r}: {e}") from e
        if near := difflib.get_close_matches(env_id, gym.registry, n=1, cutoff=0.7):
            raise EipoError(f"unknown environment {env_id!r}; did you mean {near[0]!r}?") from e
        raise EipoError(f"unknown environment {env_id!r}: {e} `eipo list` says what can be named") from e


def _import_package(name: str) -> None:
    """Import the package that registers ids beginning as this one does, where we know which."""
    for start, (module, function, package) in PACKAGES.items():
        if not name.startswith(start) or any(known.startswith(start) for known in gym.registry):
            continue
        try:
            register = importlib.import_module(module)
        except ImportError as e:
            raise EipoError(f"{name} needs a package that is missing ({e}): pip install {package!r}") from e
        if function and not any(known.startswith(start) for known in gym.registry):
            for part in function.split("."):
                register = getattr(register, part)
            register()  # type: ignore[operator]
