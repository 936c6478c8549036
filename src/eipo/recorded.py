"""A run's configuration as its files have it."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checkpoint import UNREADABLE, first_line, refuse_newer
from .config import Config
from .errors import EipoError


def read_config(path: Path) -> dict[str, Any]:
    """A run's config.json."""
    try:
        recorded = json.loads(path.read_text())
        refuse_newer(path, recorded["format"], 1)
        if not isinstance(recorded["config"], dict):
            raise ValueError("config is no dictionary")
    except UNREADABLE as e:
        raise EipoError(f"{path} cannot be read: {first_line(e)}") from e
    return recorded


def config_of(data: Mapping[str, Any], path: Path) -> Config:
    """A configuration from its dictionary. What an earlier version did not know has its default."""
    try:
        return typing.cast(Config, _build(Config, data, ""))
    except (TypeError, ValueError, AttributeError) as e:
        raise EipoError(f"{path}: {e}") from e


def _build(cls: Any, data: Mapping[str, Any], prefix: str) -> Any:
    hints = typing.get_type_hints(cls)
    if extra := data.keys() - hints.keys():
        raise ValueError(f"{prefix}{min(extra)} is no setting of this version of eipo")
    values = {}
    for name, value in data.items():
        kind = hints[name]
        if dataclasses.is_dataclass(kind):
            values[name] = _build(kind, value, f"{prefix}{name}.")
        elif _is(value, kind):
            values[name] = value
        else:
            raise ValueError(f"{prefix}{name} is {ascii(value)[:80]}, which is none of its values")
    return cls(**values)


def _is(value: Any, kind: Any) -> bool:
    """Whether a setting's type allows a value that stood in JSON, which a stranger may have written."""
    if typing.get_origin(kind) is typing.Literal:
        return value in typing.get_args(kind)
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is int and isinstance(value, float):
        return value.is_integer()  # earlier versions kept steps=4e6 as it was given
    return isinstance(value, int | float if kind is float else typing.get_origin(kind) or kind)


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """{setting: (value before, value now)}, of those that differ. Absent before: it had its default."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, new in now.items():
        old = before.get(name, new)
        if isinstance(new, dict) and isinstance(old, dict) and name != "options":
            found |= differences(old, new, f"{prefix}{name}.")
        elif json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True):
            found[prefix + name] = (old, new)
    return found
