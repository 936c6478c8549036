"""Action spaces as distributions: what a policy head has to say, and how it is sampled and learned from.

A head gives P numbers from the features (`raw`), and has some of its own that do not depend on the state (`free`, as a
Gaussian's log std). `params` makes of both one tensor (..., K) that all other functions take.
"""

from __future__ import annotations

from math import prod
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from .core import categorical, gaussian
from .errors import EipoError


class Categorical:
    """One choice (Discrete), or several at once, each by itself (MultiDiscrete, MultiBinary)."""

    dtype = torch.int64
    free = 0

    def __init__(self, sizes: list[int], shape: tuple[int, ...], start: np.ndarray | None, space_dtype: Any) -> None:
        self.sizes, self.space_shape, self.start, self.space_dtype = sizes, shape, start, space_dtype
        self.size = sum(sizes)  # P: numbers that a head gives
        self.shape = () if shape == () else (len(sizes),)  # of an action as it is stored
        self.embedded = self.size

    def noise(self, lead: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """All the randomness that sampling needs, (*lead, P)."""
        return categorical.gumbel((*lead, self.size), generator)

    def sample(self, raw: Tensor, free: Tensor, noise: Tensor) -> Tensor:
        """An exact sample: argmax(logits + Gumbel noise), of each choice."""
        return self.mode(raw + noise, free)

    def mode(self, raw: Tensor, free: Tensor) -> Tensor:
        """The likeliest action."""
        if not self.shape:
            return raw.argmax(-1)
        return torch.stack([part.argmax(-1) for part in raw.split(self.sizes, -1)], -1)

    def params(self, raw: Tensor, free: Tensor) -> Tensor:
        """Log probabilities of each choice, (..., P)."""
        if not self.shape:
            return raw.log_softmax(-1)
        return torch.cat([part.log_softmax(-1) for part in raw.split(self.sizes, -1)], -1)

    def log_prob(self, params: Tensor, action: Tensor) -> Tensor:
        """log pi(a | s); choices are independent, so theirs add up."""
        if not self.shape:
            return categorical.log_prob(params, action)
        parts = zip(params.split(self.sizes, -1), action.unbind(-1), strict=True)
        return torch.stack([categorical.log_prob(log_p, a) for log_p, a in parts]).sum(0)

    def entropy(self, params: Tensor) -> Tensor:
        return categorical.entropy(params)  # a sum over all choices' outcomes: independent choices' entropies add up

    def kl(self, p: Tensor, q: Tensor) -> Tensor:
        return categorical.kl(p, q)

    def embed(self, action: Tensor) -> Tensor:
        """Indicators (..., P), for networks that read an action."""
        columns = action.unsqueeze(-1) if not self.shape else action
        offset = torch.tensor([0, *np.cumsum(self.sizes)[:-1].tolist()], device=action.device)
        lead = columns.shape[:-1]
        return torch.zeros(*lead, self.size, device=action.device).scatter_(-1, columns + offset, 1.0)

    def to_env(self, action: Tensor) -> np.ndarray:
        """Actions (B, *shape) as a batch of the space."""
        numbers = action.cpu().numpy().reshape(-1, *self.space_shape)
        return (numbers if self.start is None else numbers + self.start).astype(self.space_dtype, copy=False)


class Gaussian:
    """A diagonal Gaussian with a state-independent log std; what lies outside of the bounds is clipped on its way out.

    The clip belongs to the world, not to the policy: log probabilities are of the number that was drawn.
    """

    dtype = torch.float32

    def __init__(self, space: gym.spaces.Box) -> None:
        self.low, self.high, self.space_shape = space.low, space.high, space.shape
        self.size = self.free = self.embedded = prod(space.shape)
        self.shape = (self.size,)

    def noise(self, lead: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return torch.empty(*lead, self.size, device=generator.device).normal_(generator=generator)

    def sample(self, raw: Tensor, free: Tensor, noise: Tensor) -> Tensor:
        return raw + free.exp() * noise

    def mode(self, raw: Tensor, free: Tensor) -> Tensor:
        return raw

    def params(self, raw: Tensor, free: Tensor) -> Tensor:
        """Mean and log std, (..., 2 D)."""
        return torch.cat([raw, free.expand_as(raw)], -1)

    def log_prob(self, params: Tensor, action: Tensor) -> Tensor:
        mean, log_std = params.chunk(2, -1)
        return gaussian.log_prob(mean, log_std, action)

    def entropy(self, params: Tensor) -> Tensor:
        return gaussian.entropy(params.chunk(2, -1)[1])

    def kl(self, p: Tensor, q: Tensor) -> Tensor:
        return gaussian.kl(*p.chunk(2, -1), *q.chunk(2, -1))

    def embed(self, action: Tensor) -> Tensor:
        return action

    def to_env(self, action: Tensor) -> np.ndarray:
        return action.cpu().numpy().reshape(-1, *self.space_shape).clip(self.low, self.high)


Actions = Categorical | Gaussian


def make_actions(space: gym.Space) -> Actions:
    """The distribution over an action space."""
    s = gym.spaces
    if isinstance(space, s.Discrete):
        start = np.asarray(space.start) if space.start else None
        return Categorical([int(space.n)], (), start, space.dtype)
    if isinstance(space, s.MultiDiscrete):
        start = space.start if np.any(space.start) else None
        return Categorical(space.nvec.reshape(-1).tolist(), space.shape, start, space.dtype)
    if isinstance(space, s.MultiBinary):
        return Categorical([2] * prod(space.shape), space.shape, None, space.dtype)
    if isinstance(space, s.Box) and np.issubdtype(space.dtype, np.floating):
        return Gaussian(space)
    raise EipoError(
        f"action space {space} is not supported; supported: Discrete, MultiDiscrete, MultiBinary, and Box of floats"
    )
