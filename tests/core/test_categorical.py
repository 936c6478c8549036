"""The categorical distribution, against torch.distributions."""

from __future__ import annotations

import torch
from torch.distributions import Categorical, kl_divergence

from eipo.core import categorical

LOGITS = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
OTHER = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))


def test_argmax_with_gumbel_noise_samples_the_softmax() -> None:
    n = 200_000
    logits = torch.tensor([1.0, 0.0, -1.0, -3.0])
    noise = categorical.gumbel((n, 4), torch.Generator().manual_seed(0))
    frequency = (logits + noise).argmax(-1).bincount(minlength=4) / n
    p = logits.softmax(-1)
    error = (p * (1 - p) / n).sqrt()  # of a frequency
    assert ((frequency - p).abs() < 4 * error).all()


def test_gumbel_noise_has_its_mean_and_variance() -> None:
    noise = categorical.gumbel((1_000_000,), torch.Generator().manual_seed(0))
    assert noise.isfinite().all()
    assert abs(noise.mean().item() - 0.5772157) < 0.005  # Euler's constant; 4 standard errors
    assert abs(noise.var().item() - torch.pi**2 / 6) < 0.02


def test_gumbel_noise_comes_from_the_generator_alone() -> None:
    def draw() -> torch.Tensor:
        return categorical.gumbel((3, 2), torch.Generator().manual_seed(5))

    torch.manual_seed(1)
    first = draw()
    torch.manual_seed(2)
    assert torch.equal(first, draw())


def test_log_prob() -> None:
    action = torch.randint(5, (7,), generator=torch.Generator().manual_seed(2))
    expected = Categorical(logits=LOGITS).log_prob(action)
    torch.testing.assert_close(categorical.log_prob(LOGITS.log_softmax(-1), action), expected)


def test_entropy() -> None:
    torch.testing.assert_close(categorical.entropy(LOGITS.log_softmax(-1)), Categorical(logits=LOGITS).entropy())


def test_kl_and_its_direction() -> None:
    p, q = Categorical(logits=LOGITS), Categorical(logits=OTHER)
    ours = categorical.kl(LOGITS.log_softmax(-1), OTHER.log_softmax(-1))
    torch.testing.assert_close(ours, kl_divergence(p, q))
    assert not torch.allclose(ours, kl_divergence(q, p), rtol=1e-2)


def test_kl_of_a_policy_to_itself_is_zero() -> None:
    assert categorical.kl(LOGITS.log_softmax(-1), LOGITS.log_softmax(-1)).abs().max() == 0.0
