"""Checkpoints: the state of a run in files that are whole or not there. Nothing is ever unpickled.

A checkpoint is a directory `checkpoints/00000120` of three files: tensors as safetensors, the rest as JSON, and a
manifest with the size and the checksum of both, which is written last. It is made aside, flushed, and renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from .errors import EipoError
from .files import flush_directory, write_flushed

FORMAT = 1
DIRECTORY = "checkpoints"
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
NAME = re.compile(r"(\d{8,})(?:\.(\d+))?")  # the iteration; another of the same iteration has a number more
TENSOR, ARRAY = "$tensor", "$array"  # what stands in the JSON in the place of a tensor, of a NumPy array


class Newer(EipoError):
    """Written by a later version: no other checkpoint may be taken in its place."""


def flatten(tree: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """`tree` as plain values; its tensors go into `tensors`, by their path."""
    if isinstance(tree, Tensor):
        tensors[path] = tree.detach().to("cpu", copy=True).contiguous()
        return {TENSOR: path}
    if isinstance(tree, np.ndarray) and tree.dtype != object:
        tensors[path] = torch.from_numpy(np.array(tree, order="C"))
        return {ARRAY: path}
    if isinstance(tree, Mapping) and all(isinstance(k, str) and not k.startswith("$") for k in tree):
        return {k: flatten(v, f"{path}/{k}", tensors) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return [flatten(v, f"{path}/{i}", tensors) for i, v in enumerate(tree)]
    if isinstance(tree, np.generic):
        return tree.item()
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise EipoError(
        f"a checkpoint cannot hold {path.lstrip('/')}, a {type(tree).__name__}: state is tensors, arrays, numbers, "
        "texts, lists, and dictionaries by text"
    )


def unflatten(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """What `flatten` was given; tuples have become lists."""
    if isinstance(tree, dict):
        if len(tree) == 1 and TENSOR in tree:
            return tensors[tree[TENSOR]]
        if len(tree) == 1 and ARRAY in tree:
            return tensors[tree[ARRAY]].numpy()
        return {k: unflatten(v, tensors) for k, v in tree.items()}
    if isinstance(tree, list):
        return [unflatten(v, tensors) for v in tree]
    return tree


def write(directory: Path, iteration: int, state: Any) -> None:
    """A checkpoint as a new directory, flushed; the manifest last."""
    tensors: dict[str, Tensor] = {}
    plain = flatten(state, "", tensors)
    parts = {TENSORS: save(tensors), STATE: json.dumps(plain).encode()}
    directory.mkdir()
    for name, data in parts.items():
        write_flushed(directory / name, data)
    files = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in parts.items()}
    manifest = {"format": FORMAT, "iteration": iteration, "files": files}
    write_flushed(directory / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    flush_directory(directory)


def read(directory: Path) -> Any:
    """The state of one checkpoint; EipoError where anything is not as it was written."""
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        refuse_newer(directory / MANIFEST, manifest["format"], FORMAT)
        if manifest["files"].keys() != {TENSORS, STATE}:
            raise EipoError(f"{directory / MANIFEST} lists other files than {TENSORS} and {STATE}")
        parts = {name: _intact(directory / name, about) for name, about in manifest["files"].items()}
        return unflatten(json.loads(parts[STATE]), load(parts[TENSORS]))
    except FileNotFoundError as e:
        raise EipoError(f"{directory}: {Path(e.filename).name} is missing") from e
    except UNREADABLE as e:
        raise EipoError(f"{directory} cannot be read: {first_line(e)}") from e


# What Python, torch and safetensors raise where a file does not hold what it should.
UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, OverflowError, MemoryError,
    SafetensorError,
)  # fmt: skip


def first_line(e: BaseException) -> str:
    return (str(e).splitlines() or [""])[0][:200] or type(e).__name__


def refuse_newer(path: Path, found: Any, known: int) -> None:
    """A format of a later version is refused by name."""
    if type(found) is not int or found < 1:
        raise EipoError(f"{path}: {found!r} is no format")
    if found > known:
        raise Newer(f"{path} has format {found}, this eipo reads up to {known}: upgrade eipo")


def _intact(path: Path, about: Mapping[str, Any]) -> bytes:
    """A file's bytes, which are what the manifest says they are."""
    data = path.read_bytes()
    if len(data) != about["bytes"]:
        raise EipoError(f"{path} has {len(data)} bytes instead of {about['bytes']}")
    if hashlib.sha256(data).hexdigest() != about["sha256"]:
        raise EipoError(f"{path} is damaged: its checksum is another")
    return data


@dataclass(frozen=True)
class Found:
    """A checkpoint that was read."""

    path: Path
    state: Any


class Checkpoints:
    """The checkpoints of a run, of which the last few are kept."""

    def __init__(self, run: Path, last: int) -> None:
        self.directory, self.last = run / DIRECTORY, last

    def all(self) -> list[Path]:
        """From the oldest to the newest."""
        return sorted((p for p in _entries(self.directory) if NAME.fullmatch(p.name)), key=_serial)

    def iteration(self) -> int | None:
        """Of the newest."""
        there = self.all()
        return _serial(there[-1])[0] if there else None

    def save(self, iteration: int, state: Any) -> Path:
        """Write one more, then remove what is too old. A failure leaves those that are there."""
        self.directory.mkdir(exist_ok=True)
        self._sweep()
        taken = [number for at, number in map(_serial, self.all()) if at == iteration]
        path = self.directory / (f"{iteration:08}" + (f".{max(taken) + 1}" if taken else ""))
        aside = self.directory / f".{path.name}.{os.getpid()}"
        try:
            write(aside, iteration, state)
            aside.rename(path)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        flush_directory(self.directory)
        for old in self.all()[: -self.last]:
            (old / MANIFEST).unlink(missing_ok=True)  # first: what is half removed is no checkpoint
            shutil.rmtree(old, ignore_errors=True)
        return path

    def newest(self) -> Found:
        """The newest that can be read. Each damaged one is named in a warning."""
        problems = []
        for path in reversed(self.all()):
            try:
                state = read(path)
            except Newer:
                raise
            except EipoError as e:
                problems.append(str(e))
                continue
            for problem in problems:
                warnings.warn(f"{problem}; taking {path.name}, the one before it", stacklevel=2)
            return Found(path, state)
        if problems:
            raise EipoError(f"{self.directory} holds no checkpoint that can be read: {'; '.join(problems)}")
        raise EipoError(f"{self.directory.parent} holds no checkpoint: there is nothing to go on from")

    def go_on_from(self, found: Found) -> None:
        """The run goes on from here: what could not be read is put out of the way, so that it is not tried again."""
        for path in self.all():
            if _serial(path) > _serial(found.path):
                path.rename(path.with_name(f"unreadable-{path.name}"))

    def _sweep(self) -> None:
        """Remove what writers that were killed have left. Nobody else writes here: the run is locked."""
        for path in _entries(self.directory):
            if path.name.startswith("."):
                shutil.rmtree(path, ignore_errors=True)


def _serial(path: Path) -> tuple[int, int]:
    """Iteration, and which one of that iteration."""
    match = NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1]), int(match[2] or 0)


def _entries(directory: Path) -> Iterable[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return list(directory.iterdir())
    return []
