"""What a network sees of an observation: a module that turns a batch of one space into floats."""

from __future__ import annotations

from math import prod

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from . import packing
from .errors import EipoError


class OneHot(nn.Module):
    """Categories (B, *shape) to indicators (B, sum of sizes): a code is a name, not a magnitude."""

    offset: Tensor

    def __init__(self, sizes: np.ndarray) -> None:
        super().__init__()
        flat = sizes.reshape(-1)
        self.size = int(flat.sum())
        self.register_buffer("offset", torch.as_tensor(np.cumsum(flat) - flat, dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        index = x.reshape(len(x), -1).to(torch.int64) + self.offset
        return torch.zeros(len(x), self.size, device=x.device).scatter_(1, index, 1.0)


class Flat(nn.Module):
    """Numbers (B, *shape) to float vectors (B, n)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), -1).to(torch.float32)


class Pixels(nn.Module):
    """Bytes or bits (B, C, H, W), or (B, H, W, C), to floats in 0..1 with the channels first."""

    def __init__(self, channels_last: bool, scale: float = 255.0) -> None:
        super().__init__()
        self.channels_last, self.scale = channels_last, scale

    def forward(self, x: Tensor) -> Tensor:
        # Bytes are exact in bf16, so where it is what the convolutions read, nothing wider has to be written.
        kind = torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else torch.float32
        return (x.permute(0, 3, 1, 2) if self.channels_last else x).to(kind).div_(self.scale)


class Joined(nn.Module):
    """Packed parts of an observation (B, bytes): what the input of each makes of it, flat and side by side (B, n)."""

    def __init__(self, space: gym.Space) -> None:
        super().__init__()
        self.parts = nn.ModuleList()
        self.raw: list[tuple[int, torch.dtype, tuple[int, ...]]] = []  # of each part: bytes, type, shape
        self.shapes: list[tuple[int, ...]] = []  # of what comes out of each
        for path, part in packing.leaves(space):
            try:
                module, shape = observation_input(part)
            except EipoError as e:
                raise packing.refused(path, part) from e
            like = np.empty(part.shape or (), part.dtype)
            self.parts.append(module)
            self.raw.append((like.nbytes, torch.from_numpy(like).dtype, like.shape))
            self.shapes.append(shape)

    def forward(self, x: Tensor) -> Tensor:
        floats = []
        pieces = x.split([size for size, _, _ in self.raw], -1)
        for piece, module, (_, dtype, shape) in zip(pieces, self.parts, self.raw, strict=True):
            # A copy, so that it begins where its type may begin.
            whole = piece.clone(memory_format=torch.contiguous_format).view(dtype)
            floats.append(module(whole.reshape(len(x), *shape)).flatten(1))
        return torch.cat(floats, 1)


class Stacked(nn.Module):
    """K frames at once (B, K, *shape): what `each` makes of them, side by side in the first dimension."""

    def __init__(self, each: nn.Module) -> None:
        super().__init__()
        self.each = each

    def forward(self, x: Tensor) -> Tensor:
        parts: Tensor = self.each(x.flatten(0, 1)).unflatten(0, x.shape[:2])  # (B, K, C, ...)
        return parts.flatten(1, 2)


def observation_input(space: gym.Space) -> tuple[nn.Module, tuple[int, ...]]:
    """The module that turns a batch of observations into floats, and the shape of one of its rows."""
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        starts = getattr(space, "start", 0)
        if np.any(np.asarray(starts) != 0):
            raise EipoError(f"observation space {space} does not start at 0; wrap the environment to shift it")
        sizes = np.atleast_1d(
            np.asarray(space.n if isinstance(space, gym.spaces.Discrete) else getattr(space, "nvec", 2))
        )
        if isinstance(space, gym.spaces.MultiBinary):
            return Flat(), (prod(space.shape),)
        one_hot = OneHot(sizes)
        return one_hot, (one_hot.size,)
    if isinstance(space, gym.spaces.Box):
        if len(space.shape) == 3 and space.dtype in (np.uint8, np.bool_):
            channels_last = space.shape[2] <= space.shape[0]
            c, h, w = (space.shape[2], *space.shape[:2]) if channels_last else space.shape
            return Pixels(channels_last, 255.0 if space.dtype == np.uint8 else 1.0), (c, h, w)
        return Flat(), (prod(space.shape),)
    if packing.is_composite(space):
        joined = Joined(space)
        return joined, (sum(prod(shape) for shape in joined.shapes),)
    raise EipoError(
        f"observation space {space} is not supported; supported: Box, Discrete, MultiDiscrete, MultiBinary, and Dict "
        "and Tuple of these"
    )
