"""The files of a checkpoint: whole, or known to be damaged; never half believed."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eipo import checkpoint
from eipo.checkpoint import ARRAY, MANIFEST, STATE, TENSOR, TENSORS, Checkpoints, flatten, read, unflatten, write
from eipo.errors import EipoError

STATES = {
    "weights": {"a.b": torch.arange(6.0).reshape(2, 3), "empty": torch.zeros(0), "none": torch.tensor(3).char()},
    "arrays": [np.array([[True, False]]), np.array(3.5), np.arange(3, dtype=np.uint64)],
    "numbers": [1, -(2**127), 0.1, 1e-320, True, None, "text", float("inf")],
    "nested": {"x": [{"y": []}, {}]},
    "half": torch.tensor([1.5], dtype=torch.bfloat16),
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path / "x", 3, STATES)
    assert same(STATES, read(tmp_path / "x"))


numbers = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none() | st.text()
keys = st.text().filter(lambda k: not k.startswith("$"))
trees = st.recursive(
    numbers, lambda of: st.lists(of, max_size=4) | st.dictionaries(keys, of, max_size=4), max_leaves=20
)


@settings(deadline=None, max_examples=50)
@given(trees)
def test_any_plain_state_comes_back(tree: Any) -> None:
    tensors: dict[str, torch.Tensor] = {}
    assert same(tree, unflatten(json.loads(json.dumps(flatten(tree, "", tensors))), tensors))


def test_what_is_kept_does_not_change_with_what_it_was_made_of() -> None:
    tensors: dict[str, torch.Tensor] = {}
    weight, array = torch.zeros(2), np.zeros(2)
    flatten([weight, array], "", tensors)
    weight += 1
    array += 1
    assert all((t == 0).all() for t in tensors.values())


@pytest.mark.parametrize("odd", [object(), {1: 2}, {"$x": 1}, {1, 2}, np.array([None]), print])
def test_what_a_checkpoint_cannot_hold_is_named(odd: Any) -> None:
    with pytest.raises(EipoError, match="cannot hold training/bonus, a "):
        flatten({"training": {"bonus": odd}}, "", {})


def test_the_last_few_are_kept_and_leftovers_removed(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, 3)
    for i in (1, 2, 10, 2, 30):
        kept.save(i, {"i": i})
    assert [p.name for p in kept.all()] == ["00000002.1", "00000010", "00000030"]
    (tmp_path / "checkpoints" / ".00000031.77").mkdir()
    kept.save(31, {"i": 31})
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["00000010", "00000030", "00000031"]
    assert kept.newest().state == {"i": 31}


# Damage. Whatever happens to the newest, it is named, and the one before it is taken.


@pytest.fixture
def two(tmp_path: Path) -> Path:
    for i in (1, 2):
        Checkpoints(tmp_path, 5).save(i, {"i": i, "w": torch.full((50,), float(i)), "a": np.arange(20)})
    return tmp_path


def assert_the_older_is_taken(run: Path, names: str) -> None:
    with pytest.warns(UserWarning, match=names) as warned:
        found = Checkpoints(run, 5).newest()
    assert found.state["i"] == 1
    assert len(warned) == 1
    assert "00000001, the one before it" in str(warned[0].message)


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_any_byte_that_has_flipped_is_seen(name: str, two: Path) -> None:
    path = two / "checkpoints" / "00000002" / name
    good = path.read_bytes()
    rng = random.Random(0)
    for at in [0, 7, 8, len(good) - 2, *(rng.randrange(len(good) - 1) for _ in range(40))]:
        bad = bytearray(good)
        bad[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(bad))
        try:
            state = read(path.parent)
        except EipoError:
            assert_the_older_is_taken(two, "00000002")
        else:  # in the manifest's iteration, or a blank that has become another one
            assert name == MANIFEST
            assert state["i"] == 2


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_truncation_at_each_tenth_an_empty_file_a_missing_one(name: str, two: Path) -> None:
    path = two / "checkpoints" / "00000002" / name
    good = path.read_bytes()
    for tenth in range(10):
        path.write_bytes(good[: len(good) * tenth // 10])
        assert_the_older_is_taken(two, "00000002")
    path.unlink()
    assert_the_older_is_taken(two, f"{name} is missing")
    path.mkdir()
    assert_the_older_is_taken(two, "00000002")


def test_files_of_another_checkpoint(two: Path) -> None:
    shutil.copy(two / "checkpoints" / "00000001" / TENSORS, two / "checkpoints" / "00000002" / TENSORS)
    assert_the_older_is_taken(two, "checksum")


def test_all_damaged(two: Path) -> None:
    for path in Checkpoints(two, 5).all():
        (path / STATE).write_bytes(b"")
    with pytest.raises(EipoError, match=r"holds no checkpoint that can be read: .*00000002.*; .*00000001") as e:
        Checkpoints(two, 5).newest()
    assert "\n" not in str(e.value)


def test_a_newer_format_is_refused_by_name_and_nothing_else_is_taken(two: Path) -> None:
    path = two / "checkpoints" / "00000002" / MANIFEST
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(EipoError, match=r"manifest.json has format 2, this eipo reads up to 1: upgrade eipo"):
        Checkpoints(two, 5).newest()


def sealed(directory: Path, state: bytes, tensors: bytes) -> None:
    """Files under a manifest that says that they are right."""
    import hashlib

    directory.mkdir(exist_ok=True)
    parts = {STATE: state, TENSORS: tensors}
    about = {n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in parts.items()}
    for name, data in parts.items():
        (directory / name).write_bytes(data)
    (directory / MANIFEST).write_text(json.dumps({"format": 1, "iteration": 1, "files": about}))


garbage = st.one_of(
    trees,
    st.sampled_from([[], {}, 1, {TENSOR: "w"}, {TENSOR: []}, {ARRAY: 3}, {ARRAY: "no"}, {TENSOR: "w", "x": 1}]),
).map(lambda tree: json.dumps(tree).encode())  # fmt: skip


GOOD: dict[str, torch.Tensor] = {}
PLAIN = json.dumps(flatten({"w": torch.zeros(3), "i": 1}, "", GOOD)).encode()
WEIGHTS = checkpoint.save(GOOD)


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.data())
def test_fuzzing_raises_the_one_error(in_memory: Path, data: st.DataObject) -> None:
    """Any bytes in any of the three files, with checksums that fit, or without."""
    kind = data.draw(st.sampled_from(["state", "tensors", "header", "manifest", "cut"]))
    plain, weights = PLAIN, WEIGHTS
    if kind == "state":
        plain = data.draw(garbage | st.binary(max_size=60))
    elif kind == "tensors":
        weights = data.draw(st.binary(max_size=60))
    elif kind == "header":
        header = data.draw(garbage)
        size = data.draw(st.sampled_from([len(header), 2**63, 2**64 - 1, 10**8 + 1, 0]))
        weights = size.to_bytes(8, "little") + header + WEIGHTS[-12:]
    elif kind == "cut":
        at = data.draw(st.integers(0, len(WEIGHTS) - 1))
        weights = WEIGHTS[:at] + data.draw(st.binary(max_size=3)) + WEIGHTS[at + 1 :]
    sealed(in_memory, plain, weights)
    if kind == "manifest":
        (in_memory / MANIFEST).write_bytes(data.draw(garbage | st.binary(max_size=60)))
    with contextlib.suppress(EipoError):
        read(in_memory)
