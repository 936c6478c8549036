"""Encoders, the memory, the heads."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from eipo import encoders
from eipo.config import Net
from eipo.encoders import Encoder
from eipo.errors import EipoError
from eipo.inputs import observation_input
from eipo.nets import LSTM, Agent

spaces = gym.spaces


def lstm(inputs: int = 5, width: int = 7) -> LSTM:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        memory = LSTM(inputs, width)
        for p in memory.parameters():  # biases too, so that a cleared state is not a fixed point
            torch.nn.init.normal_(p, std=0.4)
    return memory


def step_by_step(memory: LSTM, x: torch.Tensor, state: tuple[torch.Tensor, ...], reset: torch.Tensor) -> torch.Tensor:
    """The same function, one environment and one step at a time: the state is zero where an episode starts."""
    rows = []
    for b in range(x.shape[1]):
        h, c = state[0][b : b + 1], state[1][b : b + 1]
        column = []
        for t in range(len(x)):
            if reset[t, b]:
                h, c = torch.zeros_like(h), torch.zeros_like(c)
            y, (h, c) = memory.step(memory.project(x[t, b : b + 1]), (h, c))
            column.append(y)
        rows.append(torch.cat(column))
    return torch.stack(rows, 1)


def resets(kind: str, T: int, B: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(1)
    reset = torch.rand(T, B, generator=g) < 0.25 if kind == "random" else torch.zeros(T, B, dtype=torch.bool)
    if kind == "first":
        reset[0] = True
    if kind == "random":  # at least: one at t = 0, different environments at different times, one at the end
        reset[0, 0] = reset[3, 1] = reset[5, 2] = reset[T - 1, 3] = True
        reset[0, 1] = False
    return reset


@pytest.mark.parametrize("kind", ["none", "first", "random"])
def test_unroll_equals_stepping_in_values_and_gradients(kind: str) -> None:
    memory, T, B = lstm(), 9, 4
    g = torch.Generator().manual_seed(2)
    x = torch.randn(T, B, 5, generator=g).requires_grad_()
    state = tuple(torch.randn(2, B, 7, generator=g).unbind(0))
    weight = torch.randn(T, B, 7, generator=g)
    found = []
    for function in (memory.unroll, lambda *args: step_by_step(memory, *args)):
        y = function(x, state, resets(kind, T, B))
        found.append([y, *torch.autograd.grad((y * weight).sum(), [x, *memory.parameters()])])
    for fused, slow in zip(*found, strict=True):
        torch.testing.assert_close(fused, slow, rtol=1e-5, atol=1e-5)


def test_a_reset_hides_the_past_and_only_for_its_environment() -> None:
    memory, T = lstm(), 6
    g = torch.Generator().manual_seed(2)
    x, reset = torch.randn(T, 2, 5, generator=g), torch.zeros(T, 2, dtype=torch.bool)
    reset[3, 0] = True
    other = x.clone()
    other[:3] += 1.0
    y, z = (memory.unroll(data, memory.start(2), reset) for data in (x, other))
    torch.testing.assert_close(y[3:, 0], z[3:, 0])
    assert (y[3:, 1] - z[3:, 1]).abs().min() > 0


def test_heads_equal_separate_heads() -> None:
    net = Net(dense=8, memory="none")
    agent = Agent(spaces.Box(-1, 1, (4,)), spaces.Discrete(3), net, ["E", "EI"], ["E__E", "I__EI"])
    h = torch.randn(5, 2, 8)
    out = agent.heads(h, ["EI", "E"], ["I__EI", "E__E"])
    assert set(out.policy) == {"E", "EI"}
    assert set(out.value) == {"E__E", "I__EI"}
    for p in ("E", "EI"):
        torch.testing.assert_close(out.policy[p], agent.policies[p](h).log_softmax(-1))
        assert torch.equal(agent.sample(h, p, None), agent.policies[p](h).argmax(-1))
    for c in ("E__E", "I__EI"):
        torch.testing.assert_close(out.value[c], agent.critics[c](h).squeeze(-1))


def encode(space: gym.Space, observations: np.ndarray, layers: int = 1, dense: int = 8) -> torch.Tensor:
    torch.manual_seed(0)
    return Encoder(space, Net(layers=layers, dense=dense))(torch.from_numpy(observations))


@pytest.mark.parametrize(
    ("space", "row", "expected"),
    [
        (spaces.Box(-9, 9, (3,), np.float32), [1.5, -2, 0], [1.5, -2, 0]),
        (spaces.Box(-9, 9, (2, 2), np.float64), [[1, 2], [3, 4]], [1, 2, 3, 4]),
        (spaces.Discrete(4), 2, [0, 0, 1, 0]),
        (spaces.MultiDiscrete([2, 3]), [1, 0], [0, 1, 1, 0, 0]),
        (spaces.MultiDiscrete(np.array([[2, 2], [2, 2]])), [[0, 1], [1, 0]], [1, 0, 0, 1, 0, 1, 1, 0]),
        (spaces.MultiBinary(3), [1, 0, 1], [1, 0, 1]),
        (spaces.MultiBinary((2, 2)), [[1, 0], [0, 1]], [1, 0, 0, 1]),
    ],
)
def test_vectors_and_codes_become_floats(space: gym.Space, row: list, expected: list[float]) -> None:
    module, shape = observation_input(space)
    batch = np.stack([np.asarray(row, dtype=space.dtype)] * 2)
    assert module(torch.from_numpy(batch)).tolist() == [expected] * 2
    assert module(torch.from_numpy(batch)).dtype == torch.float32
    assert shape == (len(expected),)
    assert encode(space, batch).shape == (2, 8)


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (2, 3, 84, 84), dtype=np.uint8)


def test_images_with_channels_first_or_last_give_the_same_features() -> None:
    first = encode(spaces.Box(0, 255, (3, 84, 84), np.uint8), image())
    last = encode(spaces.Box(0, 255, (84, 84, 3), np.uint8), image().transpose(0, 2, 3, 1).copy())
    assert first.shape == (2, 8)
    torch.testing.assert_close(first, last)
    assert (first[0] - first[1]).abs().max() > 1e-3


def test_image_bytes_become_0_to_1() -> None:
    module, shape = observation_input(spaces.Box(0, 255, (3, 84, 84), np.uint8))
    x = module(torch.from_numpy(image()))
    assert shape == (3, 84, 84)
    torch.testing.assert_close(x, torch.from_numpy(image() / 255).float())


def test_the_papers_convolutions_leave_3200_features() -> None:
    # 84 -> (84 - 8) / 4 + 1 = 20 -> (20 + 2 - 4) / 2 + 1 = 10: 32 * 10 * 10
    assert encode(spaces.Box(0, 255, (3, 84, 84), np.uint8), image(), layers=0).shape == (2, 3200)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Text(3)}),
        spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3, start=1)]),
        spaces.Text(3),
        spaces.Discrete(3, start=1),
    ],
)
def test_unsupported_observation_spaces_are_refused(space: gym.Space) -> None:
    with pytest.raises(EipoError, match=r"not supported|start at 0"):
        Encoder(space, Net())


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_bf16_is_close_to_fp32_and_its_heads_are_fp32(memory: str) -> None:
    def build(precision: str) -> Agent:
        torch.manual_seed(0)
        net = Net(dense=64, memory=memory, width=32)
        return Agent(spaces.Box(-1, 1, (16,)), spaces.Discrete(3), net, ["E"], ["E__E"], precision)

    frames = torch.randn(6, 4, 16, generator=torch.Generator().manual_seed(0))
    reset = torch.zeros(6, 4, dtype=torch.bool)
    values = []
    for agent in (build("fp32"), build("bf16")):
        x = agent.encode(frames.flatten(0, 1)).unflatten(0, (6, 4))
        h = agent.unroll(x, agent.memory.start(4), reset)
        assert h.dtype == torch.float32
        values.append(agent.heads(h, ["E"], ["E__E"]).value["E__E"])
        assert values[-1].dtype == torch.float32
    difference = (values[0] - values[1]).abs().max()
    assert 0 < difference < 0.03  # bf16 has 8 bits: values near 1 are off by up to 0.004 a product


@pytest.mark.parametrize("shape", [(1, 84, 84), (1, 12, 20), (1, 84, 83), (3, 84, 84)])
def test_a_convolution_read_by_columns_is_the_same_function(shape: tuple[int, ...]) -> None:
    """One channel, width a multiple of the stride: columns become channels. Else nothing changes."""
    torch.manual_seed(0)
    x, conv = torch.randn(3, *shape), encoders.Conv(shape[0], 5, 8, 4)
    y = conv(x)
    expected = F.conv2d(x, conv.weight, conv.bias, 4)
    up = torch.randn_like(y)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
    of = list(conv.parameters())
    for got, wanted in zip(torch.autograd.grad(y, of, up), torch.autograd.grad(expected, of, up), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3)


def test_flattened_images_have_a_gradient_with_the_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).requires_grad_()
    up = torch.randn(2, 60)
    got: list[torch.Tensor] = []
    through = x * 1.0
    through.register_hook(got.append)
    (encoders.Flatten()(through) * up).sum().backward()
    assert torch.equal(got[0], up.reshape(2, 3, 4, 5))
    assert got[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(x.grad, up.reshape(2, 3, 4, 5))
