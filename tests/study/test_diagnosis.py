"""Each sickness on a run that was made to have it, and on one that has not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib.style
import numpy as np
import pytest
import torch
from torch import Tensor

import eipo
from eipo.appraise import Streams
from eipo.cli import main
from eipo.methods import EIPO, Targets, make_method
from eipo.presets import METHODS
from eipo.rollout import Rollout
from eipo.study import diagnosis
from eipo.study.diagnosis import diagnose
from eipo.study.figures import STYLE
from eipo.study.groups import grouped
from eipo.study.page.notes import notes_of
from eipo.study.report import caption_of, compose
from eipo.study.runs import RunData, read_run

N = 8


class Button(gym.Env):
    """One step, a number is shown: action 1 pays `pays`; after `until` steps of an environment nothing does."""

    def __init__(self, pays: float = 1.0, until: int = 10**9) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.pays, self.until, self.steps = pays, until, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return self.np_random.random(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.steps += 1
        paid = self.pays * float(action == 1) * (self.steps <= self.until)
        return self.np_random.random(1, np.float32), paid, True, False, {}


gym.register("eipo-test/Button-v0", entry_point=Button)


class Other(eipo.Bonus):
    """Pays for action 0, and for the number shown, times a size that may fall from rollout to rollout."""

    def __init__(self, falls: float = 1.0) -> None:
        super().__init__()
        self.falls, self.size = falls, 1.0

    def reward(self, rollout: Rollout) -> Tensor:
        self.size *= self.falls
        return self.size * ((rollout.action == 0).float() + 0.2 * rollout.observations[..., 0])


class Nothing(eipo.Bonus):
    def reward(self, rollout: Rollout) -> Tensor:
        return torch.ones_like(rollout.reward)


def made(tmp_path: Path, method: str, bonus: eipo.Bonus | None = None, **settings: Any) -> RunData:
    """A run of 15 iterations, read back from its directory."""
    known = {"envs.num": N, "envs.steps": 16, "net.dense": 8, "ppo.lr": 1e-2, "compute.threads": 1, "ppo.epochs": 2}
    eipo.train("eipo-test/Button-v0", method=method, bonus=bonus, steps=15 * 16 * N, out=tmp_path / "run",
               settings=known | {k.replace("__", "."): v for k, v in settings.items()})  # fmt: skip
    return read_run(tmp_path / "run")


def has(run: RunData, words: str) -> bool:
    found = [sentence for sentence in diagnose(run) if words in sentence]
    assert len(found) <= 1
    return bool(found)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """The task is learned beside a bonus that pays for the opposite."""
    return made(tmp_path_factory.mktemp("healthy"), "en", Other(), method__lam=0.1)


@pytest.fixture(scope="module")
def unpaid(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return made(tmp_path_factory.mktemp("unpaid"), "en", Other(), **{"envs.options.pays": 0.0})


def test_a_healthy_run_is_told_nothing(healthy: RunData) -> None:
    assert healthy.column("return")[-3:].mean() > 0.9
    assert diagnose(healthy) == []


def test_never_seen(unpaid: RunData) -> None:
    run = unpaid
    assert has(run, "The task reward has never been seen: it was 0 in every step.")
    assert not has(run, "drowns")  # there is nothing to drown
    assert not has(run, "lost again")


def test_lost_again(tmp_path: Path) -> None:
    run = made(tmp_path, "eo", **{"envs.options.until": 144})  # 9 of 15 iterations
    assert has(run, "The task reward was seen and lost again")
    assert not has(run, "never")


def test_the_bonus_has_died(tmp_path: Path) -> None:
    run = made(tmp_path, "en", Other(falls=0.5), method__lam=0.1)
    assert has(run, "The bonus has died: its spread over the steps is")
    assert not has(run, "drowns")


def test_a_constant_bonus_is_dead(tmp_path: Path) -> None:
    assert has(made(tmp_path, "en", Nothing()), "The bonus is dead: it has been the same in every step")


def test_the_bonus_drowns_the_task(tmp_path: Path) -> None:
    assert has(
        made(tmp_path, "en", Other(), method__lam=100.0), "The bonus drowns the task: where there was task reward"
    )


@pytest.mark.parametrize(("lam", "alike"), [(10.0, False), (0.0, True)])
def test_two_policies_collapse_onto_each_other(tmp_path: Path, lam: float, alike: bool) -> None:
    """Paid for opposite actions they part. Without a bonus, and held together, they are one."""
    run = made(tmp_path, "dc", Other(), method__lam=lam, method__kl_weight=1.0 if alike else 0.0)
    assert has(run, "The two policies have collapsed onto each other: KL(task and mixed policy) is") is alike


def columns(tmp_path: Path, **columns: list[float | None]) -> RunData:
    """A run of these metrics."""
    tmp_path.mkdir(exist_ok=True)
    config = {"env": "x", "method_name": "en", "seed": 0, "steps": 1000, "bonus": {"name": "rnd"}}
    (tmp_path / "config.json").write_text(json.dumps({"config": config}))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = (json.dumps({"steps": 10 * (i + 1)} | row) for i, row in enumerate(rows))
    (tmp_path / "metrics.jsonl").write_text("".join(line + "\n" for line in lines))
    return read_run(tmp_path)


def test_a_short_run_is_told_nothing(tmp_path: Path) -> None:
    assert diagnose(columns(tmp_path / "short", reward=[0.0] * (diagnosis.FEWEST - 1))) == []
    assert len(diagnose(columns(tmp_path / "long", reward=[0.0] * diagnosis.FEWEST))) == 1


def test_noise_is_no_gain_that_was_lost(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).uniform(0.0, 1.0, 200)
    assert not has(columns(tmp_path, **{"return": noise.tolist()}), "lost")
    rare = [0.0] * 200
    rare[50:56] = [3.0, 0.0, 20.0, 9.0, 0.0, 4.0]
    run = columns(tmp_path / "rare", **{"return": rare})
    assert has(run, "lost again")
    assert "the return was" in diagnose(run)[0]
    assert "and is 0." in diagnose(run)[0]


def test_negative_returns_that_fall_back_are_lost_too(tmp_path: Path) -> None:
    y = [-200.0] * 10 + [-100.0] * 20 + [-199.0] * 20
    assert has(columns(tmp_path, **{"return": y}), "the return was -100 around 0.12 k steps, and is -199.")
    risen = columns(tmp_path / "risen", **{"return": [-200.0] * 10 + [-100.0] * 40})
    assert not has(risen, "lost")


def test_a_constant_task_reward_is_not_called_zero(tmp_path: Path) -> None:
    run = columns(tmp_path, reward=[-1.0] * 20)
    assert diagnose(run) == ["The task reward has never changed: its mean was -1 a step in every iteration."]


def test_the_report_says_it(unpaid: RunData, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = unpaid
    said = [sentence for sentence in notes_of(run) if "0 in every" in sentence]
    assert said == ["The task reward has never been seen: it was 0 in every step."]  # and not of the return again
    assert main(["report", str(run.path), "-o", str(tmp_path / "report")]) == 0
    assert "run: The task reward has never been seen" in capsys.readouterr().out
    assert "never been seen" in caption_of(grouped([run]), [])
    with matplotlib.style.context(STYLE):
        titles = [ax.get_title("left") for ax in compose(grouped([run])).axes]
    assert "Bonus in what the mixed policy climbs" in titles


# The share


def spread(x: float) -> Tensor:
    """Values with this standard deviation."""
    return torch.tensor([[x, -x], [-x, x]])


def test_shares_in_numbers() -> None:
    a, b = torch.tensor([[3.0, -3.0], [3.0, -3.0]]), spread(1.0)
    assert Targets({"EI": a + b}, bonus={"EI": b}).bonus_shares() == pytest.approx({"EI": 0.25})
    assert Targets({"E": a, "EI": b}, bonus={"EI": b}).bonus_shares() == pytest.approx({"E": 0.0, "EI": 1.0})
    # HEPO: each is normalized first, so only the weight matters
    assert Targets({"EI": 1000 * a}, added={"EI": (3.0, b)}).bonus_shares() == pytest.approx({"EI": 0.75})
    assert np.isnan(Targets({"EI": torch.zeros(2, 2)}).bonus_shares()["EI"])


@pytest.mark.parametrize("method", [m for m in METHODS if METHODS[m].bonus])
@pytest.mark.parametrize("varies", ["task", "bonus"])
def test_every_method_says_which_part_is_bonus(method: str, varies: str) -> None:
    """Where only one of the two varies, the mixed policy's share is 1 or 0; pi_E's in MAX is always 0."""
    task, bonus = (spread(1.0), torch.ones(2, 2)) if varies == "task" else (torch.ones(2, 2), spread(1.0))
    A = {"E__E": task, "E__EI": task, "E__I": task, "I__EI": bonus, "I__I": bonus}
    own = {"E": torch.ones(2, 2), "EI": torch.tensor([[2.0, 0.0]] * 2), "I": torch.tensor([[0.0, 2.0]] * 2)}
    streams = Streams(task, task, bonus, bonus, A, A, own)
    rule = make_method(METHODS[method].method, 10)
    expected = 1.0 if varies == "bonus" else 0.0
    assert rule.targets(streams).bonus_shares()["EI"] == pytest.approx(expected)
    if isinstance(rule, EIPO):
        rule.max_stage = True
        assert rule.targets(streams).bonus_shares()["EI"] == pytest.approx(expected)
        if varies == "task":
            assert rule.targets(streams).bonus_shares()["E"] == 0.0
