"""Settings: text to typed values and back, nearest names, bounds."""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from eipo.cli.listing import settings_text
from eipo.config import Config, check, settings, with_settings
from eipo.errors import EipoError, unknown
from eipo.presets import METHODS, PRESETS, make_config

CONFIG = Config(env="CartPole-v1", steps=1_000_000)


def get(config: Config, key: str) -> Any:
    section, name = key.split(".")
    return getattr(getattr(config, section), name)


def values(kind: Any) -> st.SearchStrategy[Any]:
    if typing.get_origin(kind) is Literal:
        return st.sampled_from(typing.get_args(kind))
    return {
        bool: st.booleans(),
        int: st.integers(),
        float: st.floats(allow_nan=False),
        str: st.text("abcdefghijklmnopqrstuvwxyz-_0123456789=", min_size=1),
    }[kind]


KEYS = {key: kind for key, (kind, _) in settings().items() if key != "envs.options"}


@how(deadline=None)  # the machine may be busy
@given(st.data())
def test_every_value_survives_its_way_through_text(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(KEYS)))
    value = data.draw(values(KEYS[key]))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    found = get(with_settings(CONFIG, [f"{key}={text}"]), key)
    assert found == value
    assert type(found) is type(value)
    assert with_settings(CONFIG, {key: value}) == with_settings(CONFIG, [f"{key}={text}"])


@how(deadline=None)  # the machine may be busy
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_whole_number_is_a_float_where_a_float_is_asked_for(x: float) -> None:
    found = with_settings(CONFIG, [f"ppo.lr={round(x)}"]).ppo.lr
    assert type(found) is float
    assert found == float(round(x))


def test_later_settings_win_and_the_original_stays() -> None:
    config = with_settings(CONFIG, ["ppo.lr=1", " ppo.lr = 2e-4 ", "net.memory=none"])
    assert config.ppo.lr == 2e-4
    assert config.net.memory == "none"
    assert CONFIG.net.memory == "lstm"


def test_options_of_the_environment_are_added_to_those_of_the_preset() -> None:
    config = make_config(
        "eipo/Maze-v0", steps=1, settings=["envs.options.a=1", "envs.options.b=1.5", "envs.options.c=x"]
    )
    assert config.envs.options == {"observation": "grid", "a": 1, "b": 1.5, "c": "x"}
    assert with_settings(CONFIG, ["envs.options.on=True"]).envs.options == {"on": True}
    assert "a" not in PRESETS["maze-grid"].envs.options
    assert with_settings(CONFIG, {"envs.options": {"a": 1}}).envs.options == {"a": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ppo.lrr=1", "did you mean 'ppo.lr'?"),
        ("method.alpah=1", "did you mean 'method.alpha'?"),
        ("lr=1", "unknown setting 'lr'"),
        ("=1", "unknown setting ''"),
        ("ppo=1", "unknown setting 'ppo'"),
        ("ppo.lr", "--set takes key=value, got 'ppo.lr'"),
        ("ppo.lr=", "expected a number"),
        ("ppo.lr=fast", "expected a number"),
        ("ppo.epochs=1.5", "expected a whole number"),
        ("ppo.epochs=true", "expected a whole number"),
        ("ppo.anneal=1", "expected true or false"),
        ("net.memory=gru", "choose one of none, lstm"),
        ("envs.options=a", "envs.options.NAME=VALUE"),
        ("envs.options.=a", "unknown setting"),
    ],
)
def test_a_wrong_setting_says_what_is_right(text: str, expected: str) -> None:
    with pytest.raises(EipoError) as e:
        with_settings(CONFIG, [text])
    assert expected in str(e.value)


@pytest.mark.parametrize(
    "text",
    [
        "envs.num=0", "envs.steps=0", "ppo.epochs=0", "ppo.minibatches=0", "ppo.minibatches=129", "compute.shards=0",
        "compute.threads=-1", "net.dense=0", "net.layers=-1", "net.width=0", "bonus.features=0", "ppo.gamma=1.1",
        "ppo.gamma=nan", "ppo.gae_lambda=-0.1", "ppo.clip=2", "bonus.share=1.5", "method.lam_decay=2", "ppo.lr=-1",
        "ppo.lr=nan", "ppo.lr=inf", "ppo.grad_norm=-1", "bonus.lr=-1", "ppo.entropy=-1", "ppo.value=-1",
        "method.lam=-1", "method.lam_min=-1", "method.alpha=-1", "method.beta=-1", "method.alpha_clip=-1",
        "method.kl_weight=-1", "bonus.name=rdn",
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_refused_and_named(text: str) -> None:
    config = with_settings(CONFIG, [text])
    with pytest.raises(EipoError) as e:
        check(config)
    key = text.partition("=")[0]
    assert (key if key != "bonus.name" else "did you mean 'rnd'?") in str(e.value)


def test_the_smallest_run_is_one_iteration() -> None:
    check(dataclasses.replace(CONFIG, steps=CONFIG.steps_per_iteration))
    with pytest.raises(EipoError, match="below one iteration"):
        check(dataclasses.replace(CONFIG, steps=CONFIG.steps_per_iteration - 1))


def test_a_repeated_frame_has_no_stack() -> None:
    with pytest.raises(EipoError, match=r"envs\.stack with envs\.repeats"):
        check(with_settings(CONFIG, ["envs.stack=4", "envs.repeats=true"]))


def test_steps_and_seed_are_whole_numbers_however_python_writes_them() -> None:
    config = make_config("CartPole-v1", steps=4e6, seed=np.int64(3))  # type: ignore[arg-type]
    assert json.dumps([config.steps, config.seed]) == "[4000000, 3]"
    for bad in (1.5, float("inf"), "many", None):
        with pytest.raises(EipoError, match="expected a whole number"):
            make_config("CartPole-v1", steps=bad)  # type: ignore[arg-type]


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(EipoError, match="seed=-1"):
        check(dataclasses.replace(CONFIG, seed=-1))


def test_every_method_under_every_preset_is_sound() -> None:
    for method in METHODS:
        for preset in PRESETS:
            check(make_config("eipo/Maze-v0", method=method, preset=preset, steps=10**6))


def test_names() -> None:
    assert str(unknown("method", "eipoo", METHODS)) == "unknown method 'eipoo'; did you mean 'eipo'?"
    assert str(unknown("method", "zzzzz", ["b", "a"])) == "unknown method 'zzzzz'; known: a, b"


def test_every_setting_is_listed_with_type_default_and_help() -> None:
    text = " ".join(settings_text().split())
    for key, (kind, doc) in settings().items():
        assert f"{key} " in text
        assert doc in text
        assert kind is not None
    assert "net.dense width of the dense layer(s) of the encoder. int; default 512 (maze-grid: 128" in text
