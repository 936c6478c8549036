"""What a page is told: the runs as one dictionary that is written into it as JSON, and read by base.js."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..figures import BEST, METHODS, colour, shades
from ..groups import Group, flatten, grouped
from ..runs import Floats, RunData
from . import thin
from .colours import heat
from .notes import notes_of
from .places import Places
from .scores import KINDS, scores_of
from .words import MAIN, facts_of, metric, tiles_of, title_of

NOT_SETTINGS = ("env", "seed", "method_name")  # they have columns of their own


def tell(runs: Sequence[RunData]) -> dict[str, Any]:
    """Everything on the page. Runs without a finished iteration are left out, and the page says so."""
    started = [run for run in runs if len(run)]
    envs = list(dict.fromkeys(run.env for run in started))
    groups = [(e, group) for e, env in enumerate(envs) for group in grouped([r for r in started if r.env == env])]
    variants = variants_of([group for _, group in groups])
    places = Places([group for _, group in groups])
    names = metrics_of(started)
    series = thin.VALUES - places.values
    kept = [name for name in names if name in MAIN] if len(names) * len(started) * thin.FEWEST > series else names
    most = thin.points(len(started), len(kept), series)
    labels = [v["label"] for v in variants]
    writer = _Writer(_short_names(started), kept, most, places, settings_of(started))
    told = [writer.run(run, e, labels.index(group.label)) for e, group in groups for run in group.runs]
    return {
        "title": title_of(started),
        "tiles": tiles_of(started, groups),
        "facts": facts_of(runs, names, kept, places),
        "envs": [{"id": env, "best": BEST.get(env)} for env in envs],
        "variants": variants,
        "metrics": [metric(name) for name in sorted(kept, key=lambda n: MAIN.index(n) if n in MAIN else len(MAIN))],
        "runs": told,
        "grids": writer.grids,
        "keys": writer.keys,
        "settings": writer.settings,
        "boards": places.boards,
        "heat": heat(),
        "score": next((kind for kind in KINDS if any(run["scores"][kind] is not None for run in told)), KINDS[0]),
    }


def variants_of(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Methods with the settings that tell them apart: a label means the same, and has one colour, in every world."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        found.setdefault(group.method, {})[group.label] = None
    out = []
    for method in sorted(found, key=lambda m: METHODS.index(m) if m in METHODS else len(METHODS)):
        labels = sorted(found[method], key=_natural)
        for i, (label, ink) in enumerate(zip(labels, shades(colour(method), len(labels)), strict=True)):
            out.append({"label": label, "method": method, "colour": ink, "dash": i})
    return out


def _natural(label: str) -> list[tuple[bool, float, str]]:
    """lam 0.5 before lam 10."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", label)
    return [(bool(i % 2), float(part) if i % 2 else 0.0, "" if i % 2 else part) for i, part in enumerate(parts)]


def metrics_of(runs: Sequence[RunData]) -> list[str]:
    """The metrics that have a value somewhere, in the order in which runs write them."""
    names = dict.fromkeys(name for run in runs for name in run.numbers)
    return [n for n in names if n not in ("steps", "iteration") and any(_has(run, n) for run in runs)]


def _has(run: RunData, name: str) -> bool:
    return bool(np.isfinite(run.column(name)).any())


def settings_of(runs: Sequence[RunData]) -> list[dict[str, Any]]:
    """For each run the settings that are not the same in all of them; a key that a run has not is left out."""
    flat = [{k: v for k, v in flatten(run.config).items() if k not in NOT_SETTINGS} for run in runs]
    values: dict[str, set[str]] = {}
    for settings in flat:
        for key in settings:
            values.setdefault(key, set())
    for key, seen in values.items():
        seen.update(repr(settings.get(key)) for settings in flat)
    return [{k: _plain(v) for k, v in settings.items() if len(values[k]) > 1} for settings in flat]


def _plain(value: Any) -> Any:
    """What JSON has no word for, as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _short_names(runs: Sequence[RunData]) -> dict[int, str]:
    """Paths without what all of them share."""
    paths = [run.path.resolve() for run in runs]
    above = os.path.commonpath([path.parent for path in paths])
    return {id(run): path.relative_to(above).as_posix() for run, path in zip(runs, paths, strict=True)}


class _Writer:
    """Writes runs one after the other, and what they share once."""

    def __init__(
        self, names: dict[int, str], metrics: list[str], most: int, places: Places, differing: list[dict[str, Any]]
    ) -> None:
        self.names, self.metrics, self.most, self.places = names, metrics, most, places
        self.grids: list[dict[str, str]] = []
        self.settings: list[dict[str, Any]] = []
        self.keys = list(dict.fromkeys(key for settings in differing for key in settings))
        self._differing = dict(zip(names, differing, strict=True))
        self._numbers: dict[str, int] = {}  # of a grid or of settings, by what they are

    def run(self, run: RunData, env: int, variant: int) -> dict[str, Any]:
        to = thin.bins(run, self.most)
        seconds = np.cumsum(np.diff(run.column("steps"), prepend=0.0) / run.column("steps_per_second"))
        speed = run.column("steps_per_second")
        y = {name: thin.text(thin.binned(run.column(name), to)) for name in self.metrics if _has(run, name)}
        if "stage" in run.texts:
            stages = run.texts["stage"]
            y["stage"] = thin.text(thin.binned(np.array([float(s == "max") if s else np.nan for s in stages]), to))
        return {
            "name": self.names[id(run)], "env": env, "variant": variant, "seed": run.seed,
            "steps": run.config["steps"], "done": int(run.column("steps")[-1]), "finished": run.finished,
            "time": _number(seconds[-1]), "speed": _number(np.nanmedian(speed)) if np.isfinite(speed).any() else None,
            "per_point": int(np.bincount(to).max()),
            "grid": self._once(self.grids, {"steps": thin.text(thin.binned(run.column("steps"), to), 12),
                                            "iteration": thin.text(thin.binned(run.column("iteration"), to), 12)}),
            "seconds": thin.text(thin.binned(seconds, to), 5),
            "y": y, "stage": "stage" in y,
            "setting": self._once(self.settings, self._differing[id(run)]),
            "visits": self.places.visits(run),
            "scores": scores_of(run),
            "notes": notes_of(run),
        }  # fmt: skip

    def _once(self, where: list[Any], what: dict[str, Any]) -> int:
        key = f"{id(where)} {json.dumps(what, sort_keys=True, default=str)}"
        if key not in self._numbers:
            where.append(what)
            self._numbers[key] = len(where) - 1
        return self._numbers[key]


def _number(value: float | Floats) -> float | None:
    """A number with 5 digits; None where there is none."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
