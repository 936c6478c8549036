"""Networks: an encoder of one observation (encoders.py), a memory over time, linear heads for policies and critics.

Shapes: T steps, B (or N) environments, U distinct frames, F encoder features, H memory width, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise

import gymnasium as gym
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lstm
from .actions import make_actions
from .config import Net
from .encoders import Encoder, layer

State = tuple[Tensor, ...]  # of a memory: each (N, H); empty where there is none


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
        like = self.cell.all_weights[0][1]
        return like.new_zeros(n, self.width), like.new_zeros(n, self.width)

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
        piece; between them the state of those environments is set to zero. Same function as `step` T times. Under bf16
        on a processor our own loop learns faster, and has nothing to cut.
        """
        h, c = state
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and torch.is_grad_enabled():
            return lstm.unroll(self.project(x), self.cell.all_weights[0][1], h, c, reset)
        # Where every sequence is whole (the usual case of fixed-length episodes) there is one piece.
        starts = [0, *[t for t in reset.any(1).nonzero().flatten().tolist() if t > 0], len(x)]
        outputs = []
        for begin, end in pairwise(starts):
            keep = (~reset[begin]).unsqueeze(-1).to(h.dtype)
            y, (h, c) = self.cell(x[begin:end], ((h * keep).unsqueeze(0), (c * keep).unsqueeze(0)))
            outputs.append(y)
            h, c = h[0], c[0]
        return torch.cat(outputs) if len(outputs) > 1 else outputs[0]


class Head(nn.Linear):
    """A linear head. With `noise`, factorized noise (Fortunato et al., 2017) in its weights, of learned size.

    The noise is that of the last `redraw`, and 0 before; it is no part of what is learned, so it is not kept.
    """

    eps_in: Tensor
    eps_out: Tensor

    def __init__(self, width: int, size: int, gain: float, noise: float = 0.0) -> None:
        super().__init__(width, size)
        layer(self, gain)
        self.noisy = noise > 0
        if self.noisy:
            self.sigma = nn.Parameter(torch.full((size, width), noise / width**0.5))
            self.sigma_bias = nn.Parameter(torch.full((size,), noise / width**0.5))
            self.register_buffer("eps_in", torch.zeros(width), persistent=False)
            self.register_buffer("eps_out", torch.zeros(size), persistent=False)

    def redraw(self, generator: torch.Generator) -> None:
        """New noise f(e), f(x) = sign(x) sqrt(|x|), for each input and each output."""
        for eps in (self.eps_in, self.eps_out) if self.noisy else ():
            eps.normal_(generator=generator)
            eps.copy_(eps.sign() * eps.abs().sqrt())

    def quiet(self) -> None:
        """No noise: the mean of all that it draws."""
        for eps in (self.eps_in, self.eps_out) if self.noisy else ():
            eps.zero_()

    def now(self) -> tuple[Tensor, Tensor]:
        """weight + sigma * (eps_out eps_in^T), bias + sigma_bias * eps_out."""
        if not self.noisy:
            return self.weight, self.bias
        return self.weight + self.sigma * torch.outer(
            self.eps_out, self.eps_in
        ), self.bias + self.sigma_bias * self.eps_out


class PolicyHead(Head):
    """A head, and what the distribution has beside it: a state-independent log std, 0 at the start."""

    def __init__(self, width: int, size: int, free: int, noise: float = 0.0) -> None:
        # A small gain: every policy starts near uniform, and near the others (the paper assumes pi_E = pi_EI).
        super().__init__(width, size, 0.01, noise)
        self.free = nn.Parameter(torch.zeros(free))


@dataclass(frozen=True)
class Outputs:
    """What the heads say, for any leading shape."""

    policy: dict[str, Tensor]  # by policy: parameters of its distribution (..., K), for the agent's `actions`
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
        stack: int = 1,
    ) -> None:
        super().__init__()
        self.actions = make_actions(action_space)
        self.precision, self.stack = precision, stack
        self.encoder = Encoder(observation_space, net, stack)
        self.memory: LSTM | NoMemory = (
            LSTM(self.encoder.width, net.width) if net.memory == "lstm" else NoMemory(self.encoder.width)
        )
        width = self.memory.width
        sizes = self.actions.size, self.actions.free, net.noisy
        self.policies = nn.ModuleDict({p: PolicyHead(width, *sizes) for p in policies})
        self.critics = nn.ModuleDict({name: Head(width, 1, 1.0, net.noisy) for name in critics})

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def backbone_precision(self) -> AbstractContextManager[object]:
        """The context in which encoder and memory run; what they return is fp32 again."""
        if self.precision == "fp32":
            return nullcontext()  # autocast costs a small network as much as one of its layers, even when it is off
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

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

    def sample(self, h: Tensor, policy: str, noise: Tensor | None) -> Tensor:
        """(..., H) -> an action of one policy, with noise drawn before; without: its likeliest."""
        head = self._head(policy)
        with nullcontext() if self.precision == "fp32" else torch.autocast(h.device.type, enabled=False):
            raw = F.linear(h, *head.now())
        if noise is None:
            return self.actions.mode(raw, head.free)
        return self.actions.sample(raw, head.free, noise)

    def heads(self, h: Tensor, policies: Sequence[str], critics: Sequence[str]) -> Outputs:
        """(..., H) -> what the named heads say; one matrix product for all, since reading h costs most."""
        modules = [self._head(p) for p in policies] + [self._critic(c) for c in critics]
        weight, bias = (torch.cat(parts) for parts in zip(*(m.now() for m in modules), strict=True))
        out = F.linear(h, weight, bias)
        parts = out.split([self.actions.size] * len(policies) + [1] * len(critics), dim=-1)
        raws, values = parts[: len(policies)], parts[len(policies) :]
        return Outputs(
            {p: self.actions.params(raw, self._head(p).free) for p, raw in zip(policies, raws, strict=True)},
            {c: value.squeeze(-1) for c, value in zip(critics, values, strict=True)},
        )

    def redraw(self, generator: torch.Generator) -> None:
        """New noise in the heads, where they have some. It then stays: what acted is what learns."""
        for head in self._heads():
            head.redraw(generator)

    def quiet(self) -> None:
        """No noise in the heads."""
        for head in self._heads():
            head.quiet()

    def _heads(self) -> list[Head]:
        return [self._head(p) for p in self.policies] + [self._critic(c) for c in self.critics]

    def _critic(self, name: str) -> Head:
        head = self.critics[name]
        assert isinstance(head, Head)
        return head

    def _head(self, policy: str) -> PolicyHead:
        head = self.policies[policy]
        assert isinstance(head, PolicyHead)
        return head
