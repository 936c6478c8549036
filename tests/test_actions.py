"""Distributions over action spaces, against torch.distributions and by what reaches the environment."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

import eipo
from eipo.actions import Gaussian, make_actions
from eipo.errors import EipoError

spaces = gym.spaces
SPACES = [
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 5, 3]),
    spaces.MultiDiscrete(np.array([[2, 3], [4, 2]])),
    spaces.MultiDiscrete([2, 3], start=[1, 5]),
    spaces.MultiBinary(4),
    spaces.MultiBinary((2, 2)),
    spaces.Box(-1.0, 1.0, (3,), np.float32),
    spaces.Box(np.array([[0.0, -2.0]]), np.array([[1.0, np.inf]]), dtype=np.float64),
]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_what_reaches_the_environment_lies_in_its_space(space: gym.Space) -> None:
    actions = make_actions(space)
    raw, free = 3 * torch.randn(50, actions.size, generator=generator()), torch.full((actions.free,), 0.5)
    for action in (actions.sample(raw, free, actions.noise((50,), generator(1))), actions.mode(raw, free)):
        assert action.shape == (50, *actions.shape)
        assert action.dtype == actions.dtype
        for row in actions.to_env(action):
            assert space.contains(row.astype(space.dtype)), row
            assert np.shape(row) == space.shape


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_shapes_and_gradients_over_leading_dimensions(space: gym.Space) -> None:
    actions = make_actions(space)
    raw = torch.randn(6, 5, actions.size, generator=generator(), requires_grad=True)
    free = torch.zeros(actions.free, requires_grad=True)
    action = actions.sample(raw.detach(), free.detach(), actions.noise((6, 5), generator(1)))
    params = actions.params(raw, free)
    log_prob = actions.log_prob(params, action)
    assert log_prob.shape == actions.entropy(params).shape == actions.kl(params, params).shape == (6, 5)
    assert actions.kl(params, params).abs().max() < 1e-6
    assert actions.embed(action).shape == (6, 5, actions.embedded)
    torch.testing.assert_close(log_prob[2, 3], actions.log_prob(params[2, 3], action[2, 3]))
    grads = torch.autograd.grad(log_prob.sum(), [raw, free], allow_unused=True, materialize_grads=True)
    assert grads[0].abs().sum() > 0
    assert not actions.free or grads[1].abs().sum() > 0


@pytest.mark.parametrize("sizes", [[4], [2, 5, 3]], ids=["one choice", "several"])
def test_categorical_choices_against_torch(sizes: list[int]) -> None:
    actions = make_actions(spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes))
    raw, other = torch.randn(2, 7, sum(sizes), generator=generator()).unbind(0)
    parts = [Categorical(logits=x) for x in raw.split(sizes, -1)]
    others = [Categorical(logits=x) for x in other.split(sizes, -1)]
    columns = torch.stack([torch.randint(n, (7,), generator=generator(n)) for n in sizes], -1)
    action = columns if len(sizes) > 1 else columns[:, 0]
    p, q = (actions.params(x, torch.empty(0)) for x in (raw, other))
    torch.testing.assert_close(
        actions.log_prob(p, action), sum(d.log_prob(a) for d, a in zip(parts, columns.unbind(-1), strict=True))
    )
    torch.testing.assert_close(actions.entropy(p), sum(d.entropy() for d in parts))
    torch.testing.assert_close(actions.kl(p, q), sum(map(kl_divergence, parts, others)))
    expected = torch.cat([torch.nn.functional.one_hot(a, n) for a, n in zip(columns.unbind(-1), sizes, strict=True)], 1)
    torch.testing.assert_close(actions.embed(action), expected.float())


def test_multidiscrete_samples_each_choice_by_its_own_softmax() -> None:
    actions, n = make_actions(spaces.MultiDiscrete([2, 3])), 100_000
    raw = torch.tensor([1.0, 0.0, 0.0, -1.0, 2.0])
    action = actions.sample(raw, torch.empty(0), actions.noise((n,), generator()))
    for column, logits in zip(action.unbind(-1), raw.split([2, 3]), strict=True):
        p = logits.softmax(-1)
        error = (p * (1 - p) / n).sqrt()
        assert ((column.bincount(minlength=len(p)) / n - p).abs() < 4 * error).all()
    both = ((action[:, 0] == 0) & (action[:, 1] == 2)).float().mean()
    assert abs(both - raw[:2].softmax(-1)[0] * raw[2:].softmax(-1)[2]) < 0.01  # independent of each other


def test_gaussian_against_torch() -> None:
    actions = make_actions(spaces.Box(-1, 1, (3,)))
    mean, other = torch.randn(2, 7, 3, generator=generator()).unbind(0)
    log_std, other_log_std = torch.tensor([0.3, -1.0, 0.0]), torch.tensor([0.0, 0.2, -0.5])
    action = torch.randn(7, 3, generator=generator(1))
    p, q = actions.params(mean, log_std), actions.params(other, other_log_std)
    normal, wrong = Normal(mean, log_std.exp()), Normal(other, other_log_std.exp())
    torch.testing.assert_close(actions.log_prob(p, action), normal.log_prob(action).sum(-1))
    torch.testing.assert_close(actions.entropy(p), normal.entropy().sum(-1))
    torch.testing.assert_close(actions.kl(p, q), kl_divergence(normal, wrong).sum(-1))
    drawn = actions.sample(mean[:1].expand(200_000, -1), log_std, actions.noise((200_000,), generator()))
    torch.testing.assert_close(drawn.mean(0), mean[0], rtol=0, atol=0.02)
    torch.testing.assert_close(drawn.std(0), log_std.exp(), rtol=0.02, atol=0)


def test_a_number_beyond_the_bounds_is_clipped_for_the_environment_only() -> None:
    actions = make_actions(spaces.Box(np.float32([-1, 0]), np.float32([1, 9])))
    assert isinstance(actions, Gaussian)
    drawn = torch.tensor([[3.0, -2.0], [0.5, 4.0]])
    assert actions.to_env(drawn).tolist() == [[1.0, 0.0], [0.5, 4.0]]
    assert drawn.tolist() == [[3.0, -2.0], [0.5, 4.0]]


@pytest.mark.parametrize("space", [spaces.Box(0, 9, (2,), np.int64), spaces.Text(3), spaces.Dict({})], ids=str)
def test_other_action_spaces_are_refused(space: gym.Space) -> None:
    with pytest.raises(EipoError, match="not supported"):
        make_actions(space)


class Strict(gym.Env):
    """Takes nothing that is not of its space."""

    def __init__(self, space: gym.Space) -> None:
        self.observation_space, self.action_space = spaces.Box(-1, 1, (2,), np.float32), space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), 1.0, False, self.np_random.random() < 0.2, {}


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_space_trains_with_two_policies_and_a_bonus_that_reads_actions(space: gym.Space, tmp_path: Path) -> None:
    settings = {"envs.num": 2, "envs.steps": 8, "net.dense": 8, "bonus.features": 8, "bonus.share": 1.0,
                "ppo.epochs": 1, "compute.threads": 1}  # fmt: skip
    run = eipo.train(lambda: Strict(space), method="dc", bonus="icm", steps=32, settings=settings, out=tmp_path / "run")
    for metrics in run.metrics:
        assert all(math.isfinite(metrics[key]) for key in ("loss_E", "loss_EI", "kl_E_EI", "loss_bonus", "entropy_EI"))
    agent = eipo.load(tmp_path / "run")
    for deterministic in (False, True):
        action, _ = agent.act(np.zeros(2, np.float32), deterministic=deterministic)
        assert space.contains(np.asarray(action, space.dtype)[()])
