"""A study: which runs a TOML file asks for, where each lies, how far it has come. Needs neither torch nor Ray."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ..config import Config, check
from ..errors import EipoError, unknown
from ..presets import make_config
from .groups import flatten
from .runs import AGENT, CONFIG, METRICS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

READY = resources.files("eipo.study") / "ready"


@dataclass(frozen=True)
class Task:
    """An environment with its budget."""

    name: str
    env: str
    steps: int
    preset: str | None
    settings: dict[str, Any]
    of_method: dict[str, dict[str, Any]]  # what is set in one method here alone


@dataclass(frozen=True)
class Variant:
    """A method with what this study sets in it."""

    name: str
    method: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Study:
    """What a study file says."""

    name: str
    doc: str
    tasks: tuple[Task, ...]
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Planned:
    """A run that a study asks for."""

    task: str
    variant: str
    config: Config
    out: Path

    @property
    def name(self) -> str:
        return f"{self.task}/{self.out.name}"


def ready() -> dict[str, str]:
    """The studies that come with the package: what each is."""
    names = sorted(f.name.removesuffix(".toml") for f in READY.iterdir() if f.name.endswith(".toml"))
    return {name: read_study(name).doc for name in names}


def read_study(name: str) -> Study:
    """A ready study by its name, or a TOML file by its path."""
    if name.endswith(".toml"):
        try:
            content = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise EipoError(f"{name} cannot be read: {getattr(e, 'strerror', None) or e}") from e
        return parse(content, Path(name).stem, name)
    file = READY / f"{name}.toml"
    if not file.is_file():
        raise unknown("study", name, [f.name.removesuffix(".toml") for f in READY.iterdir() if ".toml" in f.name])
    return parse(file.read_text(encoding="utf-8"), name, f"{name}.toml")


def parse(content: str, name: str, where: str) -> Study:
    """A study from the text of its file."""
    try:
        table = tomllib.loads(content)
    except tomllib.TOMLDecodeError as e:
        raise EipoError(f"{where} is not TOML: {e}") from e
    top = _fields(
        table, where, methods=list, seeds=list, tasks=list, doc=(str, ""), settings=(dict, {}), grid=(dict, {})
    )
    shared = flatten(top["settings"])
    seeds = tuple(top["seeds"])
    if not seeds or not all(type(s) is int and s >= 0 for s in seeds):
        raise EipoError(f"{where}: seeds are whole numbers from 0 on, as seeds = [0, 1, 2]")
    tasks = tuple(_task(t, f"{where}, task {i}", shared) for i, t in enumerate(top["tasks"], 1))
    grid = _grid(top["grid"], where)
    variants = tuple(v for i, m in enumerate(top["methods"], 1) for v in _variants(m, f"{where}, method {i}", grid))
    _refuse_names(where, tasks, [v.name for v in variants])
    return Study(name, top["doc"], tasks, variants, seeds)


def _refuse_names(where: str, tasks: Sequence[Task], methods: Sequence[str]) -> None:
    """Names decide where a run lies, so each is there once."""
    for kind, names in (("task", [t.name for t in tasks]), ("method", methods)):
        if not names:
            raise EipoError(f"{where} names no {kind}")
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise EipoError(f"{where}: two {kind}s are called {twice[0]!r}; give one of them another `name`")
    for task in tasks:
        for name in task.of_method:
            if name not in methods:
                raise EipoError(f"{where}, {task.name}: {unknown('method', name, methods)}")


def _fields(table: Any, where: str, **fields: Any) -> dict[str, Any]:
    """A table with typed fields; a field given as (type, default) may be left out."""
    if not isinstance(table, dict):
        raise EipoError(f"{where}: expected a table, got {table!r}")
    for key in table:
        if key not in fields:
            raise EipoError(f"{where}: {unknown('key', key, fields)}")
    found = {}
    for key, spec in fields.items():
        kind, *default = spec if isinstance(spec, tuple) else (spec,)
        if key not in table and not default:
            raise EipoError(f"{where}: {key} is missing")
        found[key] = value = table.get(key, *default)
        if key in table and type(value) is not kind:
            raise EipoError(f"{where}: {key} = {value!r}; expected {TYPES[kind]}")
    return found


TYPES = {list: "a list", dict: "a table", str: "text", int: "a whole number", bool: "true or false"}


def _task(table: Any, where: str, shared: Mapping[str, Any]) -> Task:
    if isinstance(table, dict) and isinstance(table.get("steps"), float) and table["steps"].is_integer():
        table = table | {"steps": int(table["steps"])}  # 2e6 is a float in TOML
    t = _fields(
        table, where, env=str, steps=int, name=(str, ""), preset=(str, None), settings=(dict, {}), methods=(dict, {})
    )
    of_method = {m: flatten(_fields({m: own}, where, **{m: dict})[m]) for m, own in t["methods"].items()}
    name = t["name"] or re.sub(r"-v\d+$", "", t["env"].rpartition("/")[2].rpartition(":")[2])
    return Task(_path(name), t["env"], t["steps"], t["preset"], {**shared, **flatten(t["settings"])}, of_method)


def _variants(entry: Any, where: str, grid: Sequence[dict[str, Any]]) -> list[Variant]:
    """A method alone, or at each point of the grid."""
    table = {"method": entry} if isinstance(entry, str) else entry
    m = _fields(table, where, method=str, name=(str, ""), settings=(dict, {}), grid=(bool, True))
    name, own = m["name"] or m["method"], flatten(m["settings"])
    if not grid or not m["grid"]:
        return [Variant(_path(name), m["method"], own)]
    return [
        Variant(_path("-".join([name, *(f"{k.split('.')[-1]}={_short(v)}" for k, v in point.items())])), m["method"],
                {**own, **point})
        for point in grid
    ]  # fmt: skip


def _grid(table: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Every combination of the values that the grid lists."""
    flat = flatten(table)
    for key, values in flat.items():
        if not isinstance(values, list) or not values:
            raise EipoError(f'{where}: grid lists the values of each setting, as "{key}" = [0.1, 1]')
    return [dict(zip(flat, point, strict=True)) for point in itertools.product(*flat.values())] if flat else []


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _path(name: str) -> str:
    """As a directory's name."""
    return re.sub(r"[^\w.=+-]+", "-", name)


def chosen(study: Study, tasks: Iterable[str], methods: Iterable[str], seeds: Iterable[int]) -> Study:
    """The part of a study that is named; nothing named is all."""
    for kind, wanted, known in (
        ("task", tasks, [t.name for t in study.tasks]),
        ("method", methods, [v.name for v in study.variants]),
    ):
        for name in wanted:
            if name not in known:
                raise unknown(f"{kind} of {study.name}", name, known)
    tasks, methods = tuple(tasks) or [t.name for t in study.tasks], tuple(methods) or [v.name for v in study.variants]
    return dataclasses.replace(
        study,
        tasks=tuple(t for t in study.tasks if t.name in tasks),
        variants=tuple(v for v in study.variants if v.name in methods),
        seeds=tuple(seeds) or study.seeds,
    )


def plan(study: Study, out: Path) -> list[Planned]:
    """All runs, seeds outermost: what is there after any time compares methods and tasks evenly."""
    runs = []
    for seed, task, variant in itertools.product(study.seeds, study.tasks, study.variants):
        config = make_config(
            task.env, method=variant.method, preset=task.preset, steps=task.steps, seed=seed,
            settings={**task.settings, **variant.settings, **task.of_method.get(variant.name, {})},
        )  # fmt: skip
        try:
            check(config)
        except EipoError as e:
            raise EipoError(f"{study.name}, {task.name}, {variant.name}: {e}") from e
        runs.append(Planned(task.name, variant.name, config, out / task.name / f"{variant.name}-{seed}"))
    return runs


def progress(run: Planned) -> float:
    """How far a run has come: 1 where it is complete, 0 where it has not begun."""
    if all((run.out / name).is_file() for name in AGENT):
        return 1.0
    try:
        lines = (run.out / METRICS).read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0.0
    return min(lines / run.config.iterations, 0.999)


def refuse_another(run: Planned) -> None:
    """Refuse a directory in which something else lies than this run."""
    if not run.out.exists() or (run.out.is_dir() and not any(run.out.iterdir())):
        return
    try:
        found = flatten(json.loads((run.out / CONFIG).read_text(encoding="utf-8"))["config"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise EipoError(f"{run.out} is in the way, and is not a run; move it, or choose another --out") from e
    wanted = _plain(run.config)
    # A setting that came after the run was made had then the value that is now its default.
    before = _plain(Config(env="", steps=0)) | found
    other = [
        k
        for k in wanted
        if wanted[k] != before.get(k) and not k.startswith(("compute.", "checkpoint.", "track.", "envs.options."))
    ]
    other += [k for k in wanted | found if k.startswith("envs.options.") and wanted.get(k) != found.get(k)]
    if other:
        raise EipoError(f"{run.out} was made with another {', '.join(other)}: choose another --out, or remove it")


def _plain(config: Config) -> dict[str, Any]:
    return flatten(json.loads(json.dumps(dataclasses.asdict(config))))


def status_text(study: Study, runs: Sequence[Planned]) -> str:
    """What is complete and what is left, task by task."""
    done = [(run, progress(run)) for run in runs]
    names = [v.name for v in study.variants]
    wide = max(len(t.name) for t in study.tasks) + 2
    columns = [max(len(n), 2 * len(str(len(study.seeds))) + 1) + 2 for n in names]
    lines = [" " * wide + "".join(f"{n:>{w}}" for n, w in zip(names, columns, strict=True))]
    for task in study.tasks:
        cells = []
        for name, width in zip(names, columns, strict=True):
            mine = [p for run, p in done if run.task == task.name and run.variant == name]
            cells.append(f"{f'{sum(p == 1.0 for p in mine)}/{len(mine)}':>{width}}")
        lines.append(f"{task.name:<{wide}}{''.join(cells)}")
    complete = sum(p == 1.0 for _, p in done)
    begun = [f"{run.name} {p:.0%}" for run, p in done if 0.0 < p < 1.0]
    steps = sum(run.config.steps * (1.0 - p) for run, p in done)
    lines.append(f"{complete} of {len(runs)} runs complete, {len(begun)} begun; {steps / 1e6:.3g} M steps left")
    lines += [f"  begun: {', '.join(begun)}"] if begun else []
    return "\n".join(lines)
