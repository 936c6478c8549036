"""A second reward of a user's own, from code or from the environment's info; and that its unit does not matter."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
import worlds
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import eipo
from eipo import cli
from eipo.bonuses import Info, make_bonus
from eipo.config import Bonus as BonusConfig
from eipo.config import Envs, check
from eipo.envs import infos
from eipo.envs.batch import Batch
from eipo.envs.make import make_batch
from eipo.errors import EipoError
from eipo.presets import METHODS, make_config
from eipo.rollout import Carry, collect
from eipo.training import Training

LINE = "eipo-test/Line-v0"
TINY = {"envs.num": 4, "envs.steps": 24, "net.dense": 16, "compute.threads": 1, "ppo.lr": 3e-3}


def train(bonus: Any, steps: int = 96 * 4, env: str = LINE, **more: Any) -> eipo.Run:
    settings = TINY | more.pop("settings", {})
    return eipo.train(env, bonus=bonus, steps=steps, settings=settings, **more)


# From Python and from the command line


def test_an_own_bonus_teaches_what_it_pays_for() -> None:
    """The task pays nothing here (its end is never reached); the bonus leads to the right."""
    run = train(worlds.Right(), 96 * 20, method="en", settings={"envs.options.end": 7})
    first, last = run.metrics[0]["bonus"], run.metrics[-1]["bonus"]
    assert abs(first) < 1.0
    assert last > 2.0  # straight to the right: the mean of 1, 2, 3, 4, 5, 5, ... over 12 steps is 3.75
    assert run.config.bonus.name == "worlds:Right"


def test_an_own_bonus_learns_and_its_state_is_its_parameters() -> None:
    bonus = worlds.Surprise()
    run = train(bonus, 96 * 10, method="en", settings={"bonus.lr": 0.1, "envs.options.end": 7})
    assert list(bonus.state_dict()) == ["guess"]
    assert bonus.guess.abs().item() > 0.1
    assert run.metrics[-1]["loss_bonus"] > 0.0


@pytest.mark.parametrize("method", [m for m in METHODS if METHODS[m].bonus])
@pytest.mark.parametrize("bonus", ["icm", "e3b", "counts"])
def test_every_bonus_works_with_every_method_that_takes_one(method: str, bonus: str) -> None:
    run = train(bonus, 96 * 2, method=method, settings={"bonus.features": 8, "method.switch": "alternate"})
    assert run.config.bonus.name == bonus
    for metrics in run.metrics:
        assert metrics["r_I"] > 0.0
        assert all(v is None or isinstance(v, str) or math.isfinite(v) for k, v in metrics.items() if "return" not in k)


def test_a_bonus_is_named_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = [f"{k}={v}" for k, v in TINY.items()]
    for name in ("worlds:Right", "info:progress", "icm"):
        out = tmp_path / name.replace(":", "-")
        code = cli.main(["train", LINE, "--bonus", name, "--steps", "192", "--out", str(out), "--set", *tiny])
        assert code == 0, capsys.readouterr().err
        assert f'"name": "{name}"' in (out / "config.json").read_text()


@pytest.mark.parametrize(
    ("bonus", "message"),
    [
        ("icn", "unknown bonus 'icn'; did you mean 'icm'?"),
        ("worlds:Nothing", "bonus worlds:Nothing cannot be found"),
        ("no_such_module:Right", "bonus no_such_module:Right cannot be found"),
        ("worlds:Line", "worlds:Line is no class derived from eipo.Bonus"),
        ("worlds:NeedsArguments", "cannot be made without arguments.*pass an object"),
        ("worlds:WrongShape", r"reward\(\) gave shape \(4,\); expected a tensor \(24, 4\)"),
        ("worlds:Infinite", "bonus Infinite: inf for environment 2 at step 1 of the rollout"),
        ("info:", "unknown bonus 'info:'"),
        ("info:shaping", "info:shaping: environment 0 of .*Line-v0, step 1 has no 'shaping' in .* it has progress"),
        (3, "bonus 3 is no eipo.Bonus"),
    ],
)
def test_what_is_wrong_with_a_bonus_is_one_line(bonus: Any, message: str) -> None:
    with pytest.raises(EipoError, match=message) as e:
        train(bonus)
    assert "\n" not in str(e.value)


def test_a_method_without_a_bonus_refuses_one() -> None:
    with pytest.raises(EipoError, match="method eo climbs the task reward alone"):
        make_config("CartPole-v1", method="eo", bonus="icm", steps=10_000)
    assert make_config("CartPole-v1", method="eo", bonus="none", steps=10_000).bonus.name == "none"
    check(make_config("CartPole-v1", bonus="my.module:Bonus", steps=10_000))


# Terms of the step's info


def many(form: str) -> Batch:
    """Three lines, in one of the forms that many environments may have."""
    if form in ("sync", "async", "threads"):
        return make_batch(LINE, Envs(num=3, vector=form))
    mode = AutoresetMode(form)
    return make_batch("lines", Envs(num=3), factory=lambda: SyncVectorEnv([worlds.Line] * 3, autoreset_mode=mode))


@pytest.mark.parametrize("form", ["sync", "async", "threads", *(m.value for m in AutoresetMode)])
def test_terms_are_those_of_the_step_also_where_an_episode_ended(make_agent: Callable, form: str) -> None:
    """+1 for a move to the right, -1 to the left; the reset behind an end says 99."""
    envs = many(form)
    envs.reset(0)
    envs.hand_on(("progress",))
    agent = make_agent(envs)
    rollout = collect(envs, agent, ["EI"], 40, Carry.start(agent, 3), torch.Generator().manual_seed(0))
    envs.close()
    assert rollout.done.any()
    assert torch.equal(rollout.terms["progress"], 2.0 * rollout.action - 1.0)
    assert torch.equal(Info("progress").reward(rollout), rollout.terms["progress"])


@pytest.mark.parametrize("method", [m for m in METHODS if METHODS[m].bonus])
def test_mujocos_own_terms_are_bonuses(method: str) -> None:
    """They are stepped in threads, which make infos only when asked: HalfCheetah's are what Gymnasium's say."""
    settings = TINY | {"envs.num": 2, "envs.options.max_episode_steps": 7}
    training = Training(
        make_config("HalfCheetah-v5", method=method, bonus="info:reward_forward", steps=48, settings=settings)
    )
    rollout, _ = training.iterate()
    training.close()
    peer = SyncVectorEnv([lambda: gym.make("HalfCheetah-v5", max_episode_steps=7)] * 2)
    peer.reset(seed=int(np.random.SeedSequence(0).generate_state(3)[2]) % 2**31)
    assert rollout.done[6].all()
    for t in range(7):  # the last one ends both episodes
        info = peer.step(rollout.action[t].numpy().clip(-1, 1))[4]
        assert rollout.terms["reward_forward"][t].numpy() == pytest.approx(info["reward_forward"], rel=1e-5)


def test_a_shaping_term_teaches() -> None:
    run = train("info:progress", 96 * 15, method="en", settings={"envs.options.end": 7})
    assert run.metrics[-1]["bonus"] > 0.8


@pytest.mark.parametrize(
    ("shaping", "message"),
    [
        ("sometimes", "environment 0 of .*, step 3 has no 'progress' in its step's info; it has more, other"),
        ("broken", "NaN or infinity from environment 0 of .*, step 3"),
        ("words", "not one number for each environment"),
    ],
)
def test_a_term_that_is_missing_or_no_number_is_refused(shaping: str, message: str) -> None:
    with pytest.raises(EipoError, match=f"info:progress: .*{message}"):
        train("info:progress", settings={"envs.options.shaping": shaping})


def test_numbers_of_a_vector_environment_without_masks() -> None:
    over = np.array([False, True])
    assert infos.numbers({"x": np.array([1, 2])}, "x", over, "here").tolist() == [1.0, 2.0]
    info = {"x": np.array([1.0, 9.0]), "final_info": {"x": np.array([0.0, 5.0]), "_x": np.array([False, True])}}
    assert infos.numbers(info, "x", over, "here").tolist() == [1.0, 5.0]


def test_a_term_where_all_episodes_end_at_once_and_a_reset_says_nothing() -> None:
    over = np.array([True, True])
    assert infos.numbers({"final_info": {"x": np.array([3.0, 4.0])}}, "x", over, "here").tolist() == [3.0, 4.0]


# The unit


def in_unit(unit: float, method: str) -> list[dict[str, Any]]:
    bonus = worlds.Times()
    bonus.unit = unit
    settings = {"method.switch": "alternate", "envs.options.end": 3}
    return train(bonus, 96 * 3, method=method, settings=settings).metrics


UNITLESS = ("return", "r_I", "r_E", "kl_EI", "entropy_EI", "loss_EI", "grad_norm", "loss_V_I__EI")


@pytest.mark.parametrize("method", ["eipo", "hepo"])
def test_a_bonus_in_another_unit_is_the_same_run(method: str) -> None:
    runs = {unit: in_unit(unit, method) for unit in (1.0, 2.0**-10, 1000.0, 0.001)}
    for unit, run in runs.items():
        for metrics, reference in zip(run, runs[1.0], strict=True):
            assert metrics["bonus"] == pytest.approx(unit * reference["bonus"], rel=1e-3)
            for key in UNITLESS:
                value, expected = metrics.get(key), reference.get(key)
                if unit in (1000.0, 0.001) and expected is not None:
                    expected = pytest.approx(expected, rel=0.02, abs=1e-4)  # rounding, grown over three updates
                assert value == expected, (unit, key, metrics["iteration"])


@pytest.mark.parametrize("method", ["eipo", "en", "dc", "hepo"])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e9, -1e-9])
def test_a_constant_bonus_of_any_size_trains_without_nan(value: float, method: str) -> None:
    run = train(worlds.Flat(value), 96 * 4, method=method, settings={"method.switch": "alternate"})
    for metrics in run.metrics:
        finite = (k for k in metrics if k.startswith(("loss", "entropy", "grad", "kl", "r_", "alpha", "J")))
        assert all((metrics[k] is None and k == "gap") or math.isfinite(metrics[k]) for k in finite)
    assert all(torch.isfinite(p).all() for p in run.agent.net.parameters())


def test_a_bonus_of_1e9_trains_without_nan() -> None:
    bonus = worlds.Times()
    bonus.unit = 1e9
    run = train(bonus, 96 * 4, method="eipo")
    assert run.metrics[-1]["bonus"] > 1e6
    assert all(torch.isfinite(p).all() for p in run.agent.net.parameters())


def test_a_bonus_is_named_by_config(scripted: Callable) -> None:
    envs = scripted()
    spaces = envs.observation_space, envs.action_space
    assert isinstance(make_bonus(BonusConfig(name="info:x"), *spaces, 3), Info)
    assert isinstance(make_bonus(BonusConfig(name="worlds:Right"), *spaces, 3), worlds.Right)
