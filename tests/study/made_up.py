"""Run directories as the tracker writes them, with invented curves: quick to make, and rich enough to draw."""

from __future__ import annotations

import csv
import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from eipo.envs.maze.board import BOARD, SIZE, WALL, distances

ITERATION = 32_000
TWO = ("eipo", "dc", "hepo")  # methods with two policies
LEVEL = {"eo": 0.0, "rnd": 20.0, "en": 60.0, "dy": 150.0, "dc": 90.0, "hepo": 300.0, "eipo": 415.0}


def benchmark(name: str) -> ModuleType:
    """A script of benchmarks/ as a module."""
    folder = str(Path(__file__).resolve().parents[2] / "benchmarks")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def rows(file: Path) -> list[dict[str, str]]:
    """A table."""
    with open(file, newline="") as f:
        return list(csv.DictReader(f))


def make_run(
    path: Path,
    method: str = "eipo",
    seed: int = 0,
    *,
    env: str = "eipo/Maze-v0",
    iterations: int = 60,
    done: int | None = None,
    visits: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """A run of `iterations`, of which `done` have been made (all: it is finished)."""
    path.mkdir(parents=True)
    config: dict[str, Any] = {
        "env": env, "steps": iterations * ITERATION, "seed": seed, "method_name": method, "preset": "maze-grid",
        "method": {"rule": method, "lam": 1.0}, "ppo": {"lr": 1e-4}, "envs": {"num": 64, "steps": 500, "options": {}},
    }  # fmt: skip
    for key, value in (settings or {}).items():
        section, name = key.split(".")
        config[section][name] = value
    about = {"format": 1, "config": config, "versions": {"eipo": "0.1.0"}, "git": {"commit": "0" * 40, "dirty": False}}
    (path / "config.json").write_text(json.dumps(about))
    rng = np.random.default_rng([seed, sum(map(ord, method))])
    rows = metrics(method, iterations, rng)[:done]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_episodes(path, rows)
    if done is None or done >= iterations:
        if visits:
            write_visits(path, method, rng)
        (path / "agent.safetensors").write_bytes(b"")
        (path / "agent.json").write_text("{}")
    return path


def metrics(method: str, iterations: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A curve that rises once, and for eipo stages that alternate."""
    middle, alpha, rows = rng.uniform(0.25, 0.5), 0.5, []
    for i in range(iterations):
        acted = "E" if method == "eo" or (method == "eipo" and i % 2) else "EI"
        height = LEVEL[method] / (1 + np.exp(-25 * (i / iterations - middle)))
        score = float(height * rng.uniform(0.9, 1.0) * (0.8 if method == "eipo" and acted == "EI" else 1.0))
        row: dict[str, Any] = {
            "iteration": i + 1, "steps": (i + 1) * ITERATION, "acted": acted, "episodes": 64, "return": score,
            "return_E": score if acted == "E" else None, "return_EI": score if acted == "EI" else None,
            "return_I": None, "return_mixed": None, "steps_per_second": 20_000.0,
        }  # fmt: skip
        if method == "hepo":  # half of the episodes are those of the reference policy
            row |= {"acted": "EI and I", "return": 0.75 * score, "return_I": 0.5 * score, "alpha": -0.001 * i}
        if method == "eipo":
            gap = float(rng.normal(-0.004, 0.004)) if acted == "E" else None
            alpha = max(0.0, alpha - 0.005 * float(np.clip(gap or 0.0, -0.05, 0.05)))
            row |= {"stage": "max" if acted == "E" else "min", "gap": gap, "alpha": alpha, "switches": i}
        rows.append(row)
    return rows


def write_episodes(path: Path, rows: list[dict[str, Any]], each: int = 8) -> None:
    """Episodes whose mean in each iteration is the metrics' return."""
    lines = [
        f"{row['iteration']},{row['steps']},{row['acted']},{row['return'] + 0.5 * (k - (each - 1) / 2)!r},500\n"
        for row in rows
        for k in range(each)
    ]
    (path / "episodes.csv").write_text("iteration,steps,policy,score,length\n" + "".join(lines))


def write_visits(path: Path, method: str, rng: np.random.Generator) -> None:
    """Fewer the farther from the start: methods differ in how far they come."""
    away = distances(BOARD)
    reach = {"eo": 2.0, "rnd": 5.0, "en": 6.0, "dy": 8.0, "dc": 7.0, "hepo": 9.0, "eipo": 12.0}[method]
    mean = np.where(away >= 0, 40_000 * np.exp(-away / reach), 0.0)
    policies = ["EI", "I"] if method == "hepo" else ["E", "EI"] if method in TWO else ["E" if method == "eo" else "EI"]
    counts = rng.poisson(mean, (10, len(policies), SIZE * SIZE)).astype(np.int64)
    assert not counts[..., BOARD == WALL].any()
    save_file(
        {"visits": counts, "board": np.ascontiguousarray(BOARD.reshape(SIZE, SIZE))},
        path / "visits.safetensors",
        metadata={"policies": json.dumps(policies)},
    )
