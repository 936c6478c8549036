"""Running mean and standard deviation, and discounted sums, as buffers: so they are in every checkpoint."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RunningMoments(nn.Module):
    """Mean and variance of everything seen, per feature, merged batch by batch in float64 (Chan et al.).

    With a `window` the past fades: when a batch comes, all that was seen counts as that many rows at most. There is no
    made-up prior: multiplying the data by a constant multiplies mean and std by exactly that constant.
    """

    count: Tensor
    mean: Tensor
    m2: Tensor

    def __init__(self, shape: tuple[int, ...] = (), window: int = 0) -> None:
        super().__init__()
        self.window = window  # rows; 0: the whole history
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("m2", torch.zeros(shape, dtype=torch.float64))

    @torch.no_grad()
    def update(self, batch: Tensor, weight: Tensor | None = None) -> None:
        """Take in a batch (B, *shape); weight (B,) says how often each row occurred.

        Sums over single-precision rows are single-precision products: they are over one batch, and twice as fast. What
        is kept is double.
        """
        x = batch if batch.dtype == torch.float32 else batch.to(torch.float64)
        x = x.reshape(len(x), -1)
        w = x.new_ones(len(x)) if weight is None else weight.to(x.dtype)
        n = w.sum(dtype=torch.float64)
        away = x - x[0]  # from one of the rows: what never varies has exactly no variance
        off = (w @ away / n).to(x.dtype)
        m2 = (w @ away.sub_(off).square_()).to(torch.float64).reshape(self.mean.shape)
        mean = (x[0].to(torch.float64) + off).reshape(self.mean.shape)
        self._merge(n, mean, m2)

    @torch.no_grad()
    def merge(self, other: RunningMoments) -> None:
        """Take in all that another one has seen."""
        if other.count > 0:
            self._merge(other.count, other.mean, other.m2)

    def _merge(self, n: Tensor, mean: Tensor, m2: Tensor) -> None:
        total = self.count + n
        shift = mean - self.mean
        self.m2 += m2 + shift.square() * (self.count * n / total)
        self.mean += shift * (n / total)
        self.count.copy_(total)
        if self.window and total > self.window:
            self.m2 *= self.window / total
            self.count.fill_(self.window)

    def std(self) -> Tensor:
        """Standard deviation, 1 where nothing has varied beyond rounding (there is no scale to divide by)."""
        std = (self.m2 / self.count.clamp(min=1.0)).sqrt()
        return torch.where(std > 1e-8 * self.mean.abs(), std, torch.ones_like(std))


class RewardScale(nn.Module):
    """Divides a reward by the running standard deviation of its discounted sum  (appendix, extrinsic normalization).

    rbar_t = gamma * rbar_{t-1} + r_t runs along time, for each environment by itself, over episode ends (as in the
    paper); the moments are over all environments and all time. The mean is not subtracted: that would change the task.
    """

    rbar: Tensor

    def __init__(self, num_envs: int, gamma: float, window: int = 0) -> None:
        super().__init__()
        self.gamma = gamma
        self.register_buffer("rbar", torch.zeros(num_envs, dtype=torch.float64))
        self.moments = RunningMoments(window=window)

    @torch.no_grad()
    def forward(self, reward: Tensor) -> Tensor:
        """Take in a rollout of raw rewards (T, N), return it divided by the std as it is now."""
        sums = []
        for r_t in reward.to(torch.float64).unbind(0):
            self.rbar = self.gamma * self.rbar + r_t
            sums.append(self.rbar)
        self.moments.update(torch.stack(sums).flatten())
        return (reward / self.moments.std()).to(torch.float32)
