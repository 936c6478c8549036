"""`eipo list`: what there is to choose from, made from the typed configuration."""

from __future__ import annotations

import dataclasses
import json
import textwrap
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import gymnasium
from tyro.conf import Positional, arg

from ..config import BONUSES, OWN_BONUSES, Config, settings
from ..presets import METHODS, PRESETS, Preset

OWN_ENVS = tuple(name for name in gymnasium.registry if name.startswith("eipo/"))


@dataclass(frozen=True)
class List:
    """Show methods, bonuses, presets and environments, or all settings."""

    what: Positional[
        Annotated[Literal["all", "settings"], arg(help="settings: every key of --set with type, default and help")]
    ] = "all"

    def __call__(self) -> None:
        print(settings_text() if self.what == "settings" else names_text())


def names_text() -> str:
    """What there is to choose from."""
    default_for = {name: ", ".join(p.for_envs) or None for name, p in PRESETS.items()}
    presets = [
        (name, p.doc + (f" (default for {default_for[name]})" if default_for[name] else ""))
        for name, p in PRESETS.items()
    ]
    return "\n\n".join(
        [
            _table("methods (--method)", [(name, m.doc) for name, m in METHODS.items()]),
            _table("bonuses (--bonus)", [*BONUSES.items(), *OWN_BONUSES.items()]),
            _table("presets (--preset)", presets),
            _table(
                "environments (ENV)",
                [(name, "") for name in OWN_ENVS]
                + [
                    ("any Gymnasium id", "as CartPole-v1; its package must be installed"),
                    ("ALE/NAME-v5", "Atari: ALE/Breakout-v5 and the others (pip install 'eipo[atari]')"),
                    ("module:Name-v0", "imports `module` first, which registers your own environment"),
                ],
            ),
            "settings (--set): see `eipo list settings`",
        ]
    )


def settings_text() -> str:
    """Every key of --set, from the typed configuration."""
    defaults = Config(env="", steps=0)
    rows = []
    for key, (kind, doc) in settings().items():
        section, name = key.split(".")
        value = getattr(getattr(defaults, section), name)
        others = [f"{n}: {_text(v)}" for n, v in _elsewhere(section, name) if v != value]
        default = f"default {_text(value)}" + (f" ({', '.join(others)})" if others else "")
        rows.append((key, f"{doc}. {_kind(kind)}; {default}"))
    return _table("settings (--set KEY=VALUE); defaults, and where a preset or method has another", rows)


def _elsewhere(section: str, name: str) -> Iterator[tuple[str, Any]]:
    """The value of a setting in each method or preset that has a say in it."""
    if section == "method":
        yield from ((n, getattr(m.method, name)) for n, m in METHODS.items())
    elif section in {f.name for f in dataclasses.fields(Preset)}:
        yield from ((n, getattr(getattr(p, section), name)) for n, p in PRESETS.items())


def _kind(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return " | ".join(typing.get_args(kind))
    return {"dict": "any", "bool": "true | false"}.get(name := (typing.get_origin(kind) or kind).__name__, name)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={_text(v)}" for k, v in value.items()) or "none"
    return json.dumps(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    """Two columns, the second wrapped."""
    wide = max(len(name) for name, _ in rows)
    lines = [title]
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(30, 112 - wide), break_on_hyphens=False) or [""]
        lines.append(f"  {name:<{wide}}  {wrapped[0]}".rstrip())
        lines += [f"  {'':<{wide}}  {more}" for more in wrapped[1:]]
    return "\n".join(lines)
