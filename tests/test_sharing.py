"""An agent as one file: what is exported is read, what anyone else has made of it is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import pickle
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

import eipo
from eipo.archive import MANIFEST, MEMBERS, RUN
from eipo.cli import main
from eipo.errors import EipoError
from eipo.sharing import find_agent

SMALL = {
    "envs.num": 4, "envs.steps": 10, "net.dense": 8, "net.width": 8, "bonus.features": 8, "compute.threads": 1,
    "compute.shards": 1, "ppo.minibatches": 1, "ppo.epochs": 1, "envs.options.max_episode_steps": 9,
}  # fmt: skip
STEPS = 120


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    eipo.train("eipo/Maze-v0", steps=STEPS, settings=SMALL, out=out)
    eipo.evaluate(out, episodes=3, policy="EI", out=out / "evaluation-EI.json")
    return out


@pytest.fixture(scope="module")
def parts(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = eipo.export(run, tmp_path_factory.mktemp("zip") / "agent.zip")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return box.getvalue()


def sealed(parts: dict[str, bytes]) -> dict[str, bytes]:
    """With a manifest that says that all is right."""
    about = {n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in parts.items() if n != MANIFEST}
    return {**parts, MANIFEST: json.dumps({"format": 1, "files": about}).encode()}


def test_what_is_exported_acts_as_the_agent_did(run: Path, tmp_path: Path) -> None:
    path = eipo.export(run, tmp_path / "agent.zip")
    ours, theirs = eipo.load(run), eipo.load(path)
    for policy in ("E", "EI"):
        for agent in (ours, theirs):
            agent.seed(0)
        obs = np.random.default_rng(0).integers(4, size=(50, 5, 5)).astype(np.uint8)
        assert np.array_equal(ours.act(obs, policy=policy)[0], theirs.act(obs, policy=policy)[0])
    assert eipo.evaluate(run, episodes=4)["scores"] == eipo.evaluate(path, episodes=4)["scores"]
    assert eipo.export(run, tmp_path / "again.zip").stat().st_size > 0
    with zipfile.ZipFile(path) as a, zipfile.ZipFile(tmp_path / "again.zip") as b:
        assert all(a.read(n) == b.read(n) for n in MEMBERS if n not in ("README.md", MANIFEST))


def test_the_card_says_what_it_is_and_how_it_was_made(parts: dict[str, bytes], run: Path) -> None:
    text = parts["README.md"].decode()
    assert "# eipo on eipo/Maze-v0" in text
    assert "120 environment steps, alpha 0." in text
    assert "| evaluation, EI | 3 | " in text
    episodes = (run / "episodes.csv").read_text().splitlines()[1:]
    assert f"| last training episodes, EI | {sum(',EI,' in row for row in episodes)} | " in text
    command = next(line.strip() for line in text.splitlines() if line.startswith("    eipo train"))
    from eipo.cli import parse

    again = parse(command.split()[1:])
    pairs = [pair for group in again.set for pair in group]
    config = eipo.make_config(
        again.env, method=again.method, preset=again.preset, steps=again.steps, seed=again.seed, settings=pairs
    )
    assert json.loads(json.dumps(json.loads((run / "config.json").read_text())["config"])) == json.loads(
        json.dumps(dataclasses.asdict(config))
    )


def test_from_the_command_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent.zip"
    assert main(["export", str(run), str(file)]) == 0
    assert str(file) in capsys.readouterr().out
    assert main(["evaluate", str(file), "--episodes", "2"]) == 0
    assert (tmp_path / "evaluation-E.json").is_file()
    assert main(["export", str(tmp_path), str(file)]) == 2
    assert "is no run" in capsys.readouterr().err


# Files that others have made.


def refused(path: Path, match: str) -> None:
    with pytest.raises(EipoError, match=match) as e:
        eipo.load(path)
    assert "\n" not in str(e.value)


def made(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "agent.zip"
    path.write_bytes(data)
    return path


Change = Callable[[dict[str, bytes]], dict[str, bytes]]
CHANGES: dict[str, tuple[Change, str]] = {
    "climbs out": (lambda p: {**p, "../x": b""}, r"'../x' points outside"),
    "climbs out inside": (lambda p: {**p, "a/../../x": b""}, "points outside"),
    "absolute": (lambda p: {**p, "/etc/x": b""}, "points outside"),
    "drive": (lambda p: {**p, "C:x": b""}, "points outside"),
    "extra": (lambda p: {**p, "x.py": b"print()"}, "'x.py' does not belong into it"),
    "folder": (lambda p: {**p, "x/": b""}, "'x/' does not belong into it"),
    "pickle": (lambda p: {**p, "data.pkl": pickle.dumps(print)}, "'data.pkl' does not belong into it"),
    "pickle as weights": (lambda p: sealed({**p, "agent.safetensors": pickle.dumps(print)}), "no readable agent"),
    **{f"no {n}": (lambda p, n=n: {k: v for k, v in p.items() if k != n}, f"{n} is missing") for n in MEMBERS},
    "other weights": (lambda p: {**p, "agent.safetensors": p["agent.safetensors"][:-4] + b"1234"}, "is damaged"),
    "header of 2**60": (
        lambda p: sealed({**p, "agent.safetensors": (2**60).to_bytes(8, "little") + p["agent.safetensors"][8:]}),
        "no readable agent",
    ),
    "header beyond the file": (
        lambda p: sealed({**p, "agent.safetensors": (10**6).to_bytes(8, "little") + p["agent.safetensors"][8:]}),
        "no readable agent",
    ),
    "a long text": (lambda p: sealed({**p, RUN: b" " * (5 * 2**20)}), "which is too much"),
    "other manifest": (lambda p: {**p, MANIFEST: b'{"format": 1, "files": {}}'}, "its manifest lists other files"),
    "newer": (lambda p: {**p, MANIFEST: b'{"format": 2, "files": {}}'}, "has format 2, this eipo reads up to 1"),
    "newer run": (lambda p: sealed({**p, RUN: b'{"format": 3}'}), "has format 3"),
    "no JSON": (lambda p: sealed({**p, RUN: b"{"}), "is no agent that eipo has exported"),
    "deep JSON": (lambda p: sealed({**p, RUN: b"[" * 10**5}), "is no agent that eipo has exported"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_members(name: str, parts: dict[str, bytes], tmp_path: Path) -> None:
    change, match = CHANGES[name]
    refused(made(tmp_path, packed(change(parts))), match)


def test_the_file_itself(parts: dict[str, bytes], tmp_path: Path) -> None:
    good = packed(parts)
    eipo.load(made(tmp_path, good))
    refused(made(tmp_path, b""), "no agent that eipo has exported")
    refused(made(tmp_path, pickle.dumps({"x": 1})), "no agent that eipo has exported")
    for tenth in range(1, 10):
        refused(made(tmp_path, good[: len(good) * tenth // 10]), "no agent that eipo has exported")
    refused(made(tmp_path, packed(parts, zipfile.ZIP_DEFLATED)), "is compressed or encrypted")
    refused(tmp_path / "nothing.zip", "holds no trained agent")


def test_a_link_and_a_member_twice(parts: dict[str, bytes], tmp_path: Path) -> None:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name)
            if name == "agent.json":
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                data = b"/etc/passwd"
            archive.writestr(info, data)
    refused(made(tmp_path, box.getvalue()), "'agent.json' is a link")
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in [*parts.items(), ("agent.json", b"{}")]:
            archive.writestr(zipfile.ZipInfo(name), data)
    refused(made(tmp_path, box.getvalue()), "has a member twice")


BOX = {"kind": "Box", "low": 0, "high": 1, "dtype": "uint8"}


def changed(parts: dict[str, bytes], **values: Any) -> dict[str, bytes]:
    return sealed({**parts, "agent.json": json.dumps({**json.loads(parts["agent.json"]), **values}).encode()})


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"net": {"dense": 10**12, "layers": 1, "memory": "none", "width": 1}}, "no readable agent"),
        ({"net": {"dense": 8, "layers": 10**9, "memory": "none", "width": 1}}, "none of eipo's"),
        ({"net": {"dense": 8, "layers": 1, "memory": "lstm", "width": 16}}, "has shape"),
        ({"net": {"what": 1}}, "no readable agent"),
        ({"policies": ["E"]}, "has shape"),
        ({"action_space": {"kind": "Discrete", "n": 10**15, "start": 0}}, "no readable agent"),
        ({"action_space": {"kind": "os.system"}}, "not known to this version"),
        ({"observation_space": {**BOX, "shape": [10**9]}}, "too large"),
        ({"observation_space": {"kind": "MultiBinary", "n": [10**9]}}, "too large"),
        ({"observation_space": {"kind": "Dict", "spaces": {"a": {**BOX, "shape": [10**10]}}}}, "too large"),
        ({"observation_space": {"kind": "Tuple", "spaces": [{**BOX, "shape": [10**7]}] * 11}}, "too large"),
        ({"observation_space": {**BOX, "shape": [3], "dtype": "S1000000000"}}, "is no type of number"),
        ({"observation_space": None}, "no readable agent"),
        ({"format": 2}, "has format 2, this eipo reads up to 1"),
        ({"format": "1"}, "'1' is no format"),
        ({"stack": 10**9}, "none of eipo's"),
    ],
)  # fmt: skip
def test_descriptions_that_ask_for_more_than_there_is(
    values: dict[str, Any], match: str, parts: dict[str, bytes], tmp_path: Path
) -> None:
    refused(made(tmp_path, packed(changed(parts, **values))), match)


def test_weights_of_another_shape(parts: dict[str, bytes], tmp_path: Path) -> None:
    weights = load(parts["agent.safetensors"])
    other_shape = next(name for name, w in weights.items() if w.shape != (1,))
    for name, match in ((other_shape, "has shape"), ("more", "more has shape")):
        other = {**parts, "agent.safetensors": save({**weights, name: torch.zeros(1)})}
        refused(made(tmp_path, packed(sealed(other))), match)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["kind", "n", "shape", "low"]), x, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_fuzzing_raises_the_one_error(parts: dict[str, bytes], in_memory: Path, data: st.DataObject) -> None:
    """Bytes changed anywhere in the file, members changed under a manifest that fits, fields of the JSON replaced."""
    path = in_memory / "fuzzed.zip"
    kind = data.draw(st.sampled_from(["bytes", "member", "field", "setting", "cut"]))
    if kind in ("bytes", "cut"):
        raw = packed(parts)
        # most of it is weights, in which nothing is decided: rather the ends, where the zip's own records are
        at = data.draw(st.one_of(st.integers(0, 200), st.integers(len(raw) - 700, len(raw) - 1)))
        made = raw[:at] + data.draw(st.binary(min_size=1, max_size=4)) + (raw[at + 1 :] if kind == "bytes" else b"")
    elif kind == "member":
        name = data.draw(st.sampled_from(MEMBERS))
        new = data.draw(st.binary(max_size=40) | values.map(lambda v: json.dumps(v).encode()))
        made = packed(sealed({**parts, name: new}))
    else:
        name = RUN if kind == "setting" else data.draw(st.sampled_from([RUN, "agent.json"]))
        within = whole = json.loads(parts[name])
        if kind == "setting":
            within = whole["config"]
            section = data.draw(st.sampled_from([k for k, v in within.items() if isinstance(v, dict)] + [None]))
            within = within if section is None else within[section]
        within[data.draw(st.sampled_from(sorted(within)))] = data.draw(values)
        made = packed(sealed({**parts, name: json.dumps(whole).encode()}))
    path.write_bytes(made)
    with contextlib.suppress(EipoError):
        find_agent(path)  # what `eipo evaluate` reads: the agent, as eipo.load does, and the configuration
