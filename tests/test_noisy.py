"""Noisy heads: what is drawn, when, and that what acted is what learns."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from pathlib import Path

import pytest
import torch

import eipo
from eipo.config import Net
from eipo.nets import Agent, Head
from eipo.presets import make_config
from eipo.training import Training
from eipo.update import log_prob_now


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_noise_has_the_moments_of_factorized_noise() -> None:
    """f(x) = sign(x) sqrt(|x|): mean 0, E f^2 = E|x| = sqrt(2 / pi); a weight's noise is a product of two such."""
    head, g = Head(3, 2, 1.0, noise=0.5), generator()
    head.weight.data.zero_()
    head.bias.data.zero_()
    weights, biases = [], []
    for _ in range(4000):
        head.redraw(g)
        weight, bias = head.now()
        weights.append(weight.detach())
        biases.append(bias.detach())
    w, b, sigma = torch.stack(weights), torch.stack(biases), 0.5 / sqrt(3)
    assert w.mean(0).abs().max() < 0.02  # five standard errors: 5 * 0.23 / sqrt(4000)
    assert b.mean(0).abs().max() < 0.025
    torch.testing.assert_close(w.square().mean(0), torch.full((2, 3), sigma**2 * 2 / pi), rtol=0.15, atol=0)
    torch.testing.assert_close(b.square().mean(0), torch.full((2,), sigma**2 * sqrt(2 / pi)), rtol=0.15, atol=0)
    # Factorized: the noise of all weights together has rank 1.
    assert torch.linalg.matrix_rank(weights[0]) == 1


def test_a_noisy_head_in_numbers() -> None:
    head = Head(2, 2, 1.0, noise=0.5)
    head.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    head.sigma.data = torch.tensor([[0.1, 0.2], [0.3, 0.4]])
    head.sigma_bias.data = torch.tensor([0.5, 0.6])
    head.eps_in.copy_(torch.tensor([2.0, -1.0]))
    head.eps_out.copy_(torch.tensor([1.0, 3.0]))
    weight, bias = head.now()
    torch.testing.assert_close(weight, torch.tensor([[1.2, -0.2], [1.8, -0.2]]))
    torch.testing.assert_close(bias, torch.tensor([0.5, 1.8]))
    (weight.sum() + bias.sum()).backward()
    assert head.sigma.grad is not None
    assert head.sigma.grad.tolist() == [[2.0, -1.0], [6.0, -3.0]]  # the noise itself
    head.quiet()
    assert torch.equal(head.now()[0], head.weight)


def test_a_head_without_noise_draws_nothing(scripted: Callable, make_agent: Callable) -> None:
    g = generator()
    before = g.get_state()
    make_agent(scripted()).redraw(g)
    assert torch.equal(g.get_state(), before)


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_noise_is_redrawn_each_rollout_and_stays_for_its_update(memory: str) -> None:
    settings = {"envs.num": 4, "envs.steps": 16, "net.memory": memory, "net.width": 8, "net.dense": 8, "ppo.lr": 0.0,
                "compute.threads": 1}  # fmt: skip
    training = Training(make_config("CartPole-v1", method="noisy", steps=64 * 3, settings=settings))
    head = training.agent.policies["E"]
    assert isinstance(head, Head)
    drawn = []
    for _ in range(3):
        rollout, metrics = training.iterate()
        drawn.append(head.eps_in.clone())
        ratio = (log_prob_now(training.agent, rollout, "E") - rollout.log_prob).exp()
        torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=0, atol=1e-4)  # it did not learn: still itself
        assert metrics["kl_E"] == pytest.approx(0.0, abs=1e-6)
    training.close()
    assert drawn[0].abs().min() > 0
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])


def test_noisy_learns_and_its_agent_acts_without_noise(tmp_path: Path) -> None:
    run = eipo.train(
        "eipo-test/Context-v0", method="noisy", steps=30 * 512, out=tmp_path / "run",
        settings={"envs.num": 16, "envs.steps": 32, "ppo.lr": 3e-3, "compute.threads": 1},
    )  # fmt: skip
    assert run.config.net.noisy == 0.5
    assert run.config.bonus.name == "none"
    assert run.metrics[-1]["return"] > 0.85
    loaded = eipo.load(tmp_path / "run")
    assert [loaded.act(c, deterministic=True)[0] for c in range(3)] == [1, 2, 0]
    for agent in (run.agent, loaded):
        head = agent.net.policies["E"]
        assert torch.equal(head.now()[0], head.weight)
    assert (loaded.net.policies["E"].sigma != 0.5 / sqrt(64)).any()  # the noise's size was learned


def test_any_agent_can_be_noisy(scripted: Callable) -> None:
    envs = scripted()
    agent = Agent(
        envs.observation_space, envs.action_space, Net(layers=0, memory="none", noisy=1.0), ["E", "EI"], ["E__E"]
    )
    agent.redraw(generator())
    quiet = agent.heads(torch.ones(1, 3), ["EI"], ["E__E"])
    agent.redraw(generator(1))
    other = agent.heads(torch.ones(1, 3), ["EI"], ["E__E"])
    assert not torch.equal(quiet.policy["EI"], other.policy["EI"])
    assert not torch.equal(quiet.value["E__E"], other.value["E__E"])
