"""From an id to a batch of environments."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from ..errors import EipoError
from . import atari
from .batch import Batch
from .find import find


def make_batch(env_id: str, num: int, options: dict[str, Any], clip_reward: bool = False) -> Batch:
    """N environments by id: the environment's own vector form where it has one, else one after the other."""
    spec = find(env_id)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            venv = _own_vector_form(spec, env_id, num, options)
            if venv is None:
                make = functools.partial(gym.make, env_id, disable_env_checker=True, **options)
                venv = SyncVectorEnv([make] * num, autoreset_mode=AutoresetMode.SAME_STEP)
    except EipoError:
        raise
    except Exception as e:
        why = str(e).splitlines()[0] if str(e) else repr(e)
        if isinstance(e, gym.error.DependencyNotInstalled | ImportError):
            raise EipoError(f"{env_id} needs a package that is missing: {why}") from e
        given = f" with the options {', '.join(f'{k}={v}' for k, v in options.items())} (preset or --set)"
        raise EipoError(f"{env_id} could not be made{given if options else ''}: {why}") from e
    return Batch(venv, env_id, clip_reward)


def _own_vector_form(spec: EnvSpec, env_id: str, num: int, options: dict[str, Any]) -> VectorEnv | None:
    """The environment's own vector form, if it has one that keeps the true last observation."""
    if spec.vector_entry_point == atari.ENTRY:
        return atari.make_atari(spec, num, options)
    if spec.vector_entry_point is None:
        return None
    venv = gym.make_vec(env_id, num_envs=num, vectorization_mode="vector_entry_point", **options)
    if venv.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP:
        return venv
    venv.close()
    return None
