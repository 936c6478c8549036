"""From an id, or a function that makes an environment, to a batch of environments."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from ..config import Envs
from ..errors import EipoError
from . import atari
from .batch import Batch
from .find import find
from .vector import Threads, Workers, mujoco_warns_once

# A user's own: makes one environment, or the vector environment that the run is to act in
Factory = Callable[..., Any]


def make_batch(env_id: str, config: Envs, threads: int = 1, factory: Factory | None = None) -> Batch:
    """config.num environments, by id or from a factory, in the form that config.vector names."""
    options = config.options
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            venv = _by_id(env_id, config, threads) if factory is None else _by_factory(env_id, factory, config, threads)
    except EipoError:
        raise
    except Exception as e:
        why = str(e).splitlines()[0] if str(e) else repr(e)
        if isinstance(e, gym.error.DependencyNotInstalled | ImportError):
            raise EipoError(f"{env_id} needs a package that is missing: {why}") from e
        given = f" with the options {', '.join(f'{k}={v}' for k, v in options.items())} (preset or --set)"
        raise EipoError(f"{env_id} could not be made{given if options else ''}: {why}") from e
    return Batch(venv, env_id, config.clip_reward, config.keys)


def _by_id(env_id: str, config: Envs, threads: int) -> VectorEnv:
    spec = find(env_id)
    if config.vector == "auto":
        own = _own_vector_form(spec, env_id, config)
        if own is not None:
            return own
    make = functools.partial(gym.make, env_id, disable_env_checker=True, **config.options)
    if not _is_mujoco(spec):
        return _many(make, env_id, config, threads)
    with mujoco_warns_once():
        return _many(make, env_id, config, threads, frees_the_lock=True)


def _by_factory(name: str, factory: Factory, config: Envs, threads: int) -> VectorEnv:
    make = functools.partial(factory, **config.options)
    first = make()
    if isinstance(first, VectorEnv):
        if first.num_envs != config.num:
            raise EipoError(f"{name} made {first.num_envs} environments, but envs.num={config.num}: make them equal")
        return first
    if not isinstance(first, gym.Env):
        raise EipoError(f"{name} made a {type(first).__name__}; it has to make a gymnasium.Env, a new one at each call")
    first.close()
    return _many(make, name, config, threads)


def _many(
    make: Callable[[], gym.Env], name: str, config: Envs, threads: int, frees_the_lock: bool = False
) -> VectorEnv:
    makes = [make] * config.num
    if config.vector == "async":
        return Workers(makes, name, config.timeout)
    if config.vector == "threads" or (config.vector == "auto" and frees_the_lock):
        return Threads(makes, max(1, min(threads, config.num)))
    return SyncVectorEnv(makes, autoreset_mode=AutoresetMode.SAME_STEP)


def _is_mujoco(spec: EnvSpec) -> bool:
    return str(spec.entry_point).startswith(("gymnasium.envs.mujoco", "eipo.envs.sparse"))


def _own_vector_form(spec: EnvSpec, env_id: str, config: Envs) -> VectorEnv | None:
    """The environment's own vector form, if it has one that keeps the true last observation."""
    if spec.vector_entry_point == atari.ENTRY:
        return atari.make_atari(spec, config.num, config.options)
    if spec.vector_entry_point is None:
        return None
    venv = gym.make_vec(env_id, num_envs=config.num, vectorization_mode="vector_entry_point", **config.options)
    if venv.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP:
        return venv
    venv.close()
    return None
