"""The state of environments, where they can give it: then a run that was stopped goes on bit for bit.

An environment of your own can, too: give it `get_state()`, which returns tensors, arrays, numbers, texts, lists and
dictionaries of them, its generator included, and `set_state(state)`. A vector environment may have the two for all of
its environments at once; so may a wrapper, for what it knows beside the environment in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import wrappers
from gymnasium.vector import SyncVectorEnv, VectorEnv

from . import physics, sparse
from .vector import Threads

# What Gymnasium's wrappers know beside the environment in them. A wrapper that is not here is not understood.
REMEMBERS: dict[type, tuple[str, ...]] = {
    wrappers.TimeLimit: ("_elapsed_steps",),
    wrappers.OrderEnforcing: ("_has_reset",),
    wrappers.PassiveEnvChecker: (),
    wrappers.ClipAction: (),
    wrappers.RescaleAction: (),
    wrappers.ClipReward: (),
    wrappers.FlattenObservation: (),
    wrappers.DtypeObservation: (),
    wrappers.ReshapeObservation: (),
    wrappers.ResizeObservation: (),
    wrappers.GrayscaleObservation: (),
    sparse.Beyond: (),
}


def gives(thing: Any) -> bool:
    """Whether it says and takes its whole state itself."""
    return callable(getattr(type(thing), "get_state", None)) and callable(getattr(type(thing), "set_state", None))


def get(venv: VectorEnv) -> Any:
    """The state of all environments, or None."""
    if gives(venv):
        return venv.get_state()  # type: ignore[attr-defined]
    if isinstance(venv, SyncVectorEnv | Threads):
        each = [_get(env) for env in venv.envs]
        return None if None in each else each
    return None


def put(venv: VectorEnv, state: Any) -> None:
    """Go on from what `get` gave."""
    if isinstance(venv, SyncVectorEnv | Threads):
        if len(state) != len(venv.envs):
            raise ValueError(f"the state is one of {len(state)} environments, not of {len(venv.envs)}")
        for env, one in zip(venv.envs, state, strict=True):
            _put(env, one)
    else:
        venv.set_state(state)  # type: ignore[attr-defined]


def _layers(env: gym.Env) -> list[gym.Env]:
    """The wrappers from the outermost inwards, then the environment."""
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    return layers


def _get(env: gym.Env) -> list[Any] | None:
    states = []
    for layer in _layers(env):
        if gives(layer):
            states.append(layer.get_state())  # type: ignore[attr-defined]
        elif physics.is_mujoco(layer):
            states.append(physics.get(layer))
        elif type(layer) in REMEMBERS:
            states.append({name: getattr(layer, name) for name in REMEMBERS[type(layer)]})
        else:
            return None
    return states


def _put(env: gym.Env, states: list[Any]) -> None:
    layers = _layers(env)
    if len(layers) != len(states):
        raise ValueError(f"the state is one of {len(states)} layers, the environment has {len(layers)}")
    for layer, state in zip(layers, states, strict=True):
        if gives(layer):
            layer.set_state(state)  # type: ignore[attr-defined]
        elif physics.is_mujoco(layer):
            physics.put(layer, state)
        else:
            for name, value in _known(layer, state):
                setattr(layer, name, value)


def _known(layer: gym.Env, state: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, state[name]) for name in REMEMBERS[type(layer)]]
