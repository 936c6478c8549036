"""Precision and compilation change how fast a run is, not what it learns."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from tests.test_training import latest, run
from torch import nn

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


def test_compiled_networks_are_the_same_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a compiler that changes nothing: what is compiled is what runs, and weights keep their names."""
    compile_, asked = nn.Module.compile, []

    def eager(module: nn.Module, **options: Any) -> None:
        asked.append(module)
        compile_(module, backend="eager", **options)

    monkeypatch.setattr(nn.Module, "compile", eager)
    settings = {
        "envs.num": 4, "envs.steps": 8, "net.dense": 8, "bonus.features": 8, "compute.threads": 1, "ppo.epochs": 1,
        "ppo.minibatches": 1,
    }  # fmt: skip
    results = []
    for compiled in (False, True):
        training = Training(make_config("CartPole-v1", steps=64, settings={**settings, "compute.compile": compiled}))
        for _ in range(2):
            training.iterate()
        results.append(training.agent.state_dict())
        training.close()
    assert len(asked) == 3  # the encoder's layers, the bonus' target and predictor
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
