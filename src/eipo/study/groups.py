"""Which runs are seeds of one and the same thing, and what to call it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .figures import METHODS, colour, shades, steps_in_words
from .runs import Floats, RunData, curve

# These do not make another group, or are its name.
SAME = (
    "seed", "method_name", "compute.threads", "compute.shards", "checkpoint.minutes", "checkpoint.last", "track.live",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed."""

    method: str
    label: str  # the method, and what else tells it from the other groups
    colour: str
    runs: list[RunData]

    def curves(self, name: str) -> list[tuple[Floats, Floats]]:
        """A metric of each run over its steps, lightly smoothed."""
        return [curve(run, name) for run in self.runs]

    def has(self, name: str) -> bool:
        return any(len(x) for x, _ in self.curves(name))


def grouped(runs: Sequence[RunData]) -> list[Group]:
    """The groups of some runs, in the order in which figures list methods."""
    flat = [flatten(run.config) for run in runs]
    found: dict[tuple[str, str], list[RunData]] = {}
    for run, config, keys in zip(runs, flat, _telling(flat), strict=True):
        words = [_words(key, config[key]) for key in keys]
        found.setdefault((run.method, ", ".join(words)), []).append(run)
    order = sorted(found, key=lambda k: METHODS.index(k[0]) if k[0] in METHODS else len(METHODS))
    groups = []
    for method in dict.fromkeys(method for method, _ in order):
        variants = [key for key in order if key[0] == method]
        for key, ink in zip(variants, shades(colour(method), len(variants)), strict=True):
            members = sorted(found[key], key=lambda run: run.seed)
            groups.append(Group(method, f"{method} {key[1]}".strip(), ink, members))
    return groups


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"ppo": {"lr": 1}} -> {"ppo.lr": 1}."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _telling(flat: Sequence[dict[str, Any]]) -> list[list[str]]:
    """For each run, the settings in which it differs from a run that its method and its preset would make equal."""
    values: dict[tuple[str, Any], set[str]] = {}
    for config in flat:
        for key, value in config.items():
            values.setdefault((key, _peers(key, config)), set()).add(repr(value))
    return [[key for key in c if key not in SAME and len(values[key, _peers(key, c)]) > 1] for c in flat]


def _peers(key: str, config: dict[str, Any]) -> Any:
    """What a run must share with another for a difference in `key` to mean something."""
    if key in ("env", "preset"):
        return None
    if key.startswith("method.") or key == "bonus.name":
        return config["method_name"]
    return config["env"], config.get("preset")


def _words(key: str, value: Any) -> str:
    if key == "steps":
        return f"{steps_in_words(value)} steps"
    if key in ("env", "preset"):
        return str(value)
    return f"{key.split('.')[-1]} {value:g}" if isinstance(value, float) else f"{key.split('.')[-1]} {value}"
