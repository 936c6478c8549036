"""Precision and compilation change how fast a run is, not what it learns."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.test_training import latest, run
from torch import nn

from eipo.encoders import Layers, convolutions, layer
from eipo.errors import EipoError
from eipo.presets import make_config
from eipo.training import Run, Training


def learned(precision: str, memory: str, env: str) -> Run:
    return run(env, "eipo", 16, compute__precision=precision, net__memory=memory, compute__shards=1)


@pytest.mark.parametrize(("env", "memory", "chance"), [("Context", "none", 1 / 3), ("Recall", "lstm", 1 / 2)])
def test_bf16_and_fp32_learn_the_same(env: str, memory: str, chance: float) -> None:
    """The same seed; bf16 goes through the LSTM's own loop, fp32 through torch's kernel."""
    single, half = (learned(precision, memory, env) for precision in ("fp32", "bf16"))
    assert latest(single) > 0.95 > chance
    assert latest(half) > 0.95
    apart = [abs(a - b) for (_, a), (_, b) in zip(single.series("return"), half.series("return"), strict=True)]
    assert 0 < max(apart) < 0.25  # their paths differ by rounding alone


SMALL = {
    "envs.num": 4, "envs.steps": 8, "net.dense": 8, "bonus.features": 8, "compute.threads": 1, "ppo.epochs": 1,
    "ppo.minibatches": 1,
}  # fmt: skip


def weights(env: str, **settings: Any) -> dict[str, torch.Tensor]:
    """Of the agent and the bonus, after two iterations: one rollout, learning, and another."""
    training = Training(make_config(env, steps=64, settings={**SMALL, **settings}))
    for _ in range(2):
        training.iterate()
    state = training.agent.state_dict() | training.bonus.state_dict(prefix="bonus.")
    training.close()
    return state


def test_compiled_networks_are_the_same_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a compiler that changes nothing: what is compiled is what runs, whole, and weights keep their names."""
    compile_, asked, layers = torch.compile, [], []

    def reading(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        layers.append(sum("linear" in str(node.target) for node in graph.graph.nodes))
        return graph.forward

    def eager(function: Any, **options: Any) -> Any:
        asked.append(function)
        return compile_(function, backend=reading, **options)

    monkeypatch.setattr(torch, "compile", eager)
    results = [weights("CartPole-v1", **{"compute.compile": compiled}) for compiled in (False, True)]
    assert len(asked) == 4  # whether it works at all; the encoder's layers, the bonus' target and predictor
    # Each once for acting and once for learning: the trial has no layer, encoder and target two, the predictor four.
    assert set(layers) == {0, 2, 4}
    assert layers.count(2) >= 3
    assert list(results[0]) == list(results[1])
    for name, value in results[0].items():
        torch.testing.assert_close(value, results[1][name])


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, "20000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")],
)
def test_threads_that_wait_give_way_unless_the_user_has_said_how_they_wait(before: dict[str, str], after: str) -> None:
    """Set before torch is loaded, which reads it then."""
    code = "import eipo, os, sys; assert 'torch' not in sys.modules; print(os.environ.get('GOMP_SPINCOUNT'))"
    env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")} | before
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == after


def test_a_missing_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch._inductor import config

    torch._dynamo.reset()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with config.patch({"cpp.cxx": (None, "no-such-compiler")}), pytest.raises(EipoError) as e:
        weights("CartPole-v1", **{"compute.compile": True, "compute.device": "cpu"})
    assert re.fullmatch(
        r"compute\.compile=true: torch\.compile does not work here \(.*no-such-compiler.*leave it", str(e.value)
    )


@pytest.mark.slow  # minutes of compiling
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(("channels", "kind"), [(1, "paper"), (4, "nature")])
def test_compiled_for_this_machine_they_say_and_learn_the_same(channels: int, kind: str, bf16: bool) -> None:
    """What comes out, and the gradients, for batches of several sizes: up to rounding."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    body, width = convolutions((channels, 84, 84), kind)
    net = Layers(body, layer(nn.Linear(width, 8)), nn.ReLU())
    found: list[list[torch.Tensor]] = []
    for compiled in (False, True):
        if compiled:
            net.compile(dynamic=True)
        found.append([])
        for size in (4, 64, 7):
            x = torch.rand(size, channels, 84, 84, generator=torch.Generator().manual_seed(size))
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16), torch.set_grad_enabled(size != 4):
                y = net(x).float()
            found[-1].append(y.detach())
            if size != 4:
                found[-1] += torch.autograd.grad(y.square().sum(), list(net.parameters()))
    for plain, other in zip(*found, strict=True):
        assert (plain - other).abs().max() <= (0.02 if bf16 else 1e-4) * plain.abs().max()
