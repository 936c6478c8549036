"""Encoders: one observation to features."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any, TypeVar

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import parallel
from .config import Net
from .core.moments import RunningMoments
from .inputs import Joined, Stacked, observation_input

M = TypeVar("M", bound=nn.Module)

# (channels, kernel, stride, padding) of each convolution
CONVS = {
    "paper": ((16, 8, 4, 0), (32, 4, 2, 1)),
    "nature": ((32, 8, 4, 0), (64, 4, 2, 0), (64, 3, 1, 0)),
    "small": ((16, 3, 1, 1), (32, 3, 2, 1)),
}
SMALL = 36  # pixels of a side that the other two need
FAR = 10.0  # standard deviations from the mean to which normalized observations are clipped
CHUNK = 256  # frames that the moments take in at once: no more than caches hold


def layer(module: M, gain: float = sqrt(2.0)) -> M:
    """Orthogonal weights, zero biases: the custom start of PPO's networks."""
    for name, p in module.named_parameters():
        if "bias" in name:
            nn.init.zeros_(p)
        else:
            nn.init.orthogonal_(p, gain)
    return module


class Layers(nn.Sequential):
    """Layers in a row. torch.compile passes over a forward of torch's own; this one it takes, and all that is in it."""

    def forward(self, x: Tensor) -> Tensor:
        for module in self:
            x = module(x)
        return x


class Encoder(nn.Module):
    """One observation to F features: convolutions for images (the paper's two), then dense layers."""

    def __init__(self, space: gym.Space, net: Net, stack: int = 1) -> None:
        super().__init__()
        self.input, shape = observation_input(space)
        shapes = (self.input.shapes if isinstance(self.input, Joined) else [shape]) * stack
        if stack > 1:
            self.input, shape = Stacked(self.input), (stack * shape[0], *shape[1:])
        self.moments = RunningMoments(shape) if net.normalize else None
        self._of: tuple[Tensor, int] | None = None  # the count, and its version, that mean and std are of
        self._mean, self._std = torch.empty(0), torch.empty(0)
        body: nn.Module
        if len(shape) == 3:
            body, width = convolutions(shape, net.convs)
        elif any(len(part) == 3 for part in shapes):
            body = Branches(shapes, net.convs)
            width = body.width
        else:
            body, width = nn.Identity(), shape[0]
        layers: list[nn.Module] = [body]
        for _ in range(net.layers):
            layers += [layer(nn.Linear(width, net.dense)), nn.ReLU()]
            width = net.dense
        self.layers = Layers(*layers)
        self.width = width

    def forward(self, frames: Tensor) -> Tensor:
        if self.moments is None:
            x = self.input(frames)
        else:
            mean, std = self._known()
            with torch.autocast(frames.device.type, enabled=False):
                x = self.input(frames).sub(mean).div_(std).clamp_(-FAR, FAR)
        features: Tensor = self.layers(x)
        return features

    def _known(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation in single precision, worked out once for each state of the moments."""
        assert self.moments is not None
        now = self.moments.count, self.moments.count._version  # torch counts what is written into a tensor
        if self._of is None or self._of[0] is not now[0] or self._of[1] != now[1]:
            self._of = now
            self._mean, self._std = self.moments.mean.float(), self.moments.std().float()
        return self._mean, self._std

    @torch.no_grad()
    def take_in(self, seen: Callable[[Tensor], Tensor], index: Tensor) -> None:
        """Let the moments learn from the frames that were acted on, where there are moments: seen(index) are they."""
        if self.moments is not None:
            distinct, times = index.unique(return_counts=True)
            batch = RunningMoments(tuple(self.moments.mean.shape)).to(index.device)
            for part, weight in zip(distinct.split(CHUNK), times.split(CHUNK), strict=True):
                batch.update(self.input(seen(part)), weight)
            self.moments.merge(parallel.pooled(batch))


class Branches(nn.Module):
    """Parts side by side (B, n): images through convolutions of their own, all else as it is."""

    def __init__(self, shapes: list[tuple[int, ...]], convs: str) -> None:
        super().__init__()
        self.shapes = shapes
        self.parts, self.width = nn.ModuleList(), 0
        for shape in shapes:
            part, width = convolutions(shape, convs) if len(shape) == 3 else (nn.Identity(), prod(shape))
            self.parts.append(part)
            self.width += width

    def forward(self, x: Tensor) -> Tensor:
        pieces = x.split([prod(shape) for shape in self.shapes], 1)
        parts = zip(self.parts, pieces, self.shapes, strict=True)
        return torch.cat([part(piece.unflatten(1, shape)) for part, piece, shape in parts], 1)


class Flattened(torch.autograd.Function):
    """(B, C, H, W) -> (B, C H W), whose gradient has the channels last, as convolutions have theirs.

    As it comes it has them first, and what lies before reads and writes it against the grain, at a fifth of the speed.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return x.flatten(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0].reshape(ctx.shape).contiguous(memory_format=torch.channels_last)


class Flatten(nn.Module):
    """Images to vectors, at the end of convolutions."""

    def forward(self, x: Tensor) -> Tensor:
        flat: Tensor = Flattened.apply(x)
        return flat


class Conv(nn.Conv2d):
    """A convolution. Of one channel, where kernel and width are multiples of the stride, the columns of a stride are
    read as channels: the same numbers in the same places of memory, and kernels are made for more channels than one."""

    def forward(self, x: Tensor) -> Tensor:
        (s, _), k, w = self.stride, self.kernel_size[0], x.shape[-1]
        whole = k % s == 0 and w % s == 0
        # torch.compile leaves sizes open, and cannot order the strides of this view without them.
        if self.in_channels > 1 or self.padding != (0, 0) or s == 1 or not whole or torch.compiler.is_compiling():
            return super().forward(x)
        wide = x.reshape(len(x), -1, w // s, s).permute(0, 3, 1, 2)  # (B, 1, H, W) -> (B, s, H, W / s)
        kernel = self.weight.reshape(-1, k, k // s, s).permute(0, 3, 1, 2)
        return F.conv2d(wide, kernel, self.bias, (s, 1))


def convolutions(shape: tuple[int, ...], kind: str, activation: type[nn.Module] = nn.ReLU) -> tuple[nn.Sequential, int]:
    """Convolutions with flat features, and how many these are. Images too small for `kind` take small ones."""
    channels, *size = shape
    body: list[nn.Module] = []
    for out, kernel, stride, padding in CONVS[kind if min(size) >= SMALL else "small"]:
        body += [layer(Conv(channels, out, kernel, stride, padding)), activation()]
        channels = out
        size = [(n + 2 * padding - kernel) // stride + 1 for n in size]
    convs = nn.Sequential(*body, Flatten())
    return convs.to(memory_format=torch.channels_last), channels * prod(size)  # type: ignore[call-overload]
