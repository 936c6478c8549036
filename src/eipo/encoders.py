"""Encoders: one observation to features."""

from __future__ import annotations

from math import sqrt
from typing import TypeVar

import gymnasium as gym
import torch
from torch import Tensor, nn

from .config import Net
from .errors import EipoError
from .inputs import Stacked, observation_input

M = TypeVar("M", bound=nn.Module)

# (channels, kernel, stride, padding) of each convolution
CONVS = {
    "paper": ((16, 8, 4, 0), (32, 4, 2, 1)),
    "nature": ((32, 8, 4, 0), (64, 4, 2, 0), (64, 3, 1, 0)),
}


def layer(module: M, gain: float = sqrt(2.0)) -> M:
    """Orthogonal weights, zero biases: the custom start of PPO's networks."""
    for name, p in module.named_parameters():
        if "bias" in name:
            nn.init.zeros_(p)
        else:
            nn.init.orthogonal_(p, gain)
    return module


class Encoder(nn.Module):
    """One observation to F features: convolutions for images (the paper's two), then dense layers."""

    def __init__(self, space: gym.Space, net: Net, stack: int = 1) -> None:
        super().__init__()
        self.input, shape = observation_input(space)
        if stack > 1:
            self.input, shape = Stacked(self.input), (stack * shape[0], *shape[1:])
        layers: list[nn.Module] = []
        if len(shape) == 3:
            channels = shape[0]
            for out, kernel, stride, padding in CONVS[net.convs]:
                layers += [layer(nn.Conv2d(channels, out, kernel, stride, padding)), nn.ReLU()]
                channels = out
            layers.append(nn.Flatten())
            try:
                width = nn.Sequential(*layers)(torch.zeros(1, *shape)).shape[1]
            except RuntimeError as e:
                raise EipoError(f"images of {shape[1]} x {shape[2]} pixels are too small for the convolutions") from e
        else:
            width = shape[0]
        for _ in range(net.layers):
            layers += [layer(nn.Linear(width, net.dense)), nn.ReLU()]
            width = net.dense
        self.layers = nn.Sequential(*layers)
        self.width = width

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.layers(self.input(frames))
        return features
