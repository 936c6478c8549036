"""Networks: an encoder of one observation, a memory over time, and linear heads for policies and critics.

Shapes: T steps, B (or N) environments, U distinct frames, F encoder features, H memory width, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TypeVar

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import Net
from .errors import EipoError
from .inputs import observation_input

State = tuple[Tensor, ...]  # of a memory: each (N, H); empty where there is none


M = TypeVar("M", bound=nn.Module)


def layer(module: M, gain: float = sqrt(2.0)) -> M:
    """Orthogonal weights, zero biases: the custom start of PPO's networks."""
    for name, p in module.named_parameters():
        if "bias" in name:
            nn.init.zeros_(p)
        else:
            nn.init.orthogonal_(p, gain)
    return module


def action_count(space: gym.Space) -> int:
    """Number of actions of a Discrete space that starts at 0."""
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return int(space.n)
    raise EipoError(f"action space {space} is not supported; supported: Discrete, starting at 0")


class Encoder(nn.Module):
    """One observation to F features: convolutions for images (the paper's two), then dense layers."""

    def __init__(self, space: gym.Space, net: Net) -> None:
        super().__init__()
        self.input, shape = observation_input(space)
        layers: list[nn.Module] = []
        if len(shape) == 3:
            layers += [
                layer(nn.Conv2d(shape[0], 16, 8, 4)),
                nn.ReLU(),
                layer(nn.Conv2d(16, 32, 4, 2, 1)),
                nn.ReLU(),
                nn.Flatten(),
            ]
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


class NoMemory(nn.Module):
    """The present is enough."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def start(self, n: int) -> State:
        return ()

    def project(self, x: Tensor) -> Tensor:
        return x

    def step(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        return projected, state

    def unroll(self, x: Tensor, state: State, reset: Tensor) -> Tensor:
        return x


class LSTM(nn.Module):
    """An LSTM whose state is cleared exactly where an episode starts."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.cell = layer(nn.LSTM(inputs, width), 1.0)

    def start(self, n: int) -> State:
        return torch.zeros(n, self.width), torch.zeros(n, self.width)

    def project(self, x: Tensor) -> Tensor:
        """The inputs' part of all four gates, (B, F) -> (B, 4 H): it needs no state, so each frame needs it once."""
        w_ih, _, b_ih, b_hh = self.cell.all_weights[0]
        return F.linear(x, w_ih, b_ih + b_hh)

    def step(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: projected inputs (N, 4 H), state 2 x (N, H) -> features (N, H), state."""
        h, c = state
        w_hh = self.cell.all_weights[0][1]
        gates = torch.addmm(projected, h, w_hh.t()).float()  # (N, 4 H): input, forget, cell, output
        opened = gates.sigmoid()
        i, f, _, o = opened.chunk(4, -1)
        c = f * c + i * gates[:, 2 * self.width : 3 * self.width].tanh()
        h = o * c.tanh()
        return h, (h, c)

    def unroll(self, x: Tensor, state: State, reset: Tensor) -> Tensor:
        """T steps: x (T, B, F), state before the first, reset (T, B): step t starts an episode -> (T, B, H).

        The sequence is cut only at the steps where some environment starts anew, so the fused kernel runs over each
        piece; between them the state of those environments is set to zero. Same function as `step` T times.
        """
        h, c = state
        # Where every sequence is whole (the usual case of fixed-length episodes) there is one piece.
        starts = [0, *[t for t in reset.any(1).nonzero().flatten().tolist() if t > 0], len(x)]
        outputs = []
        for begin, end in pairwise(starts):
            keep = (~reset[begin]).unsqueeze(-1).to(h.dtype)
            y, (h, c) = self.cell(x[begin:end], ((h * keep).unsqueeze(0), (c * keep).unsqueeze(0)))
            outputs.append(y)
            h, c = h[0], c[0]
        return torch.cat(outputs) if len(outputs) > 1 else outputs[0]


@dataclass(frozen=True)
class Outputs:
    """What the heads say, for any leading shape."""

    log_p: dict[str, Tensor]  # by policy: log probabilities (..., A)
    value: dict[str, Tensor]  # by critic: (...)


class Agent(nn.Module):
    """One shared backbone; a linear head for each policy and each critic."""

    def __init__(
        self,
        observation_space: gym.Space,
        action_space: gym.Space,
        net: Net,
        policies: Sequence[str],
        critics: Sequence[str],
        precision: str = "fp32",
    ) -> None:
        super().__init__()
        self.actions = action_count(action_space)
        self.precision = precision
        self.encoder = Encoder(observation_space, net)
        self.memory: LSTM | NoMemory = (
            LSTM(self.encoder.width, net.width) if net.memory == "lstm" else NoMemory(self.encoder.width)
        )
        width = self.memory.width
        # A small policy gain: every policy starts near uniform, and near the others (the paper assumes pi_E = pi_EI).
        self.policies = nn.ModuleDict({name: layer(nn.Linear(width, self.actions), 0.01) for name in policies})
        self.critics = nn.ModuleDict({name: layer(nn.Linear(width, 1), 1.0) for name in critics})

    def backbone_precision(self) -> torch.autocast:
        """The context in which encoder and memory run; what they return is fp32 again."""
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.precision == "bf16")

    def encode(self, frames: Tensor) -> Tensor:
        """(U, *observation) -> (U, F)."""
        with self.backbone_precision():
            return self.encoder(frames)

    def perceive(self, frames: Tensor) -> Tensor:
        """Frames as the memory takes them one step at a time: (U, *observation) -> (U, P)."""
        with self.backbone_precision():
            return self.memory.project(self.encoder(frames)).float()

    def remember(self, perceived: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of the memory: (N, P) -> (N, H) and the next state, fp32."""
        with self.backbone_precision():
            return self.memory.step(perceived, state)

    def unroll(self, x: Tensor, state: State, reset: Tensor) -> Tensor:
        """T steps of the memory: (T, B, F) -> (T, B, H)."""
        with self.backbone_precision():
            return self.memory.unroll(x, state, reset).float()

    def logits(self, h: Tensor, policy: str) -> Tensor:
        """(..., H) -> (..., A) of one policy."""
        with torch.autocast("cpu", enabled=False):
            logits: Tensor = self.policies[policy](h)
        return logits

    def heads(self, h: Tensor, policies: Sequence[str], critics: Sequence[str]) -> Outputs:
        """(..., H) -> what the named heads say; one matrix product for all, since reading h costs most."""
        modules = [self.policies[p] for p in policies] + [self.critics[c] for c in critics]
        weight, bias = (torch.cat([m.get_parameter(name) for m in modules]) for name in ("weight", "bias"))
        out = F.linear(h, weight, bias)
        parts = out.split([self.actions] * len(policies) + [1] * len(critics), dim=-1)
        return Outputs(
            {p: logits.log_softmax(-1) for p, logits in zip(policies, parts[: len(policies)], strict=True)},
            {c: value.squeeze(-1) for c, value in zip(critics, parts[len(policies) :], strict=True)},
        )
