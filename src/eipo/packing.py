"""Dict and Tuple observations as rows of bytes, as the environment gave them: all else stores and reads one array."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import gymnasium as gym
import numpy as np

from .errors import EipoError


def is_composite(space: gym.Space) -> bool:
    return isinstance(space, gym.spaces.Dict | gym.spaces.Tuple)


def leaves(space: gym.Space, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], gym.Space]]:
    """The parts of a space that have no parts, each with the keys that lead to it; in a fixed order."""
    if isinstance(space, gym.spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, gym.spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from leaves(part, (*path, i))
    else:
        yield path, space


def part_of(observation: Any, path: tuple[Any, ...]) -> Any:
    """The part of an observation to which these keys lead."""
    for key in path:
        observation = observation[key]
    return observation


def pack(space: gym.Space, observation: Any, batched: bool) -> np.ndarray:
    """An observation as bytes (n,), or a batch of them (B, n): its parts one after the other."""
    rows = []
    for path, part in leaves(space):
        if part.dtype is None or part.shape is None:
            raise refused(path, part)
        x = np.ascontiguousarray(np.asarray(part_of(observation, path), dtype=part.dtype))
        shape = (-1, prod(part.shape)) if batched else (prod(part.shape),)
        rows.append(x.reshape(shape).view(np.uint8))
    return np.concatenate(rows, axis=-1)


def seen(space: gym.Space, keys: str) -> gym.Space:
    """A Dict space of the named keys alone ("a,b"); without names, the space as it is."""
    if not keys:
        return space
    names = [name.strip() for name in keys.split(",")]
    if not isinstance(space, gym.spaces.Dict):
        raise EipoError(f"envs.keys={keys}: the observation is a {type(space).__name__}, it has no keys to choose from")
    for name in names:
        if name not in space.spaces:
            raise EipoError(f"envs.keys={keys}: the observation has no {name!r}, but {', '.join(space.spaces)}")
    return gym.spaces.Dict({name: space.spaces[name] for name in names})


def refused(path: tuple[Any, ...], part: gym.Space) -> EipoError:
    """A part of an observation that no network reads."""
    name = ".".join(map(str, path))
    return EipoError(
        f"observation space: its part {name!r} is a {type(part).__name__}, which is not supported; "
        "name the parts to see with --set envs.keys=NAME,NAME"
    )
