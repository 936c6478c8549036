"""Agents as files: find one in a run, export it as one file, and read such a file without trusting it."""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save

from . import __version__, compute
from .agent import DESCRIPTION, WEIGHTS, TrainedAgent, build, load
from .archive import CARD, FORMAT, MANIFEST, RUN, read_archive
from .checkpoint import UNREADABLE, Checkpoints, first_line
from .config import Config
from .errors import EipoError
from .files import replace
from .methods import make_method
from .past import last_metrics
from .presets import make_config
from .recorded import config_of, differences, read_config
from .scores import MEASURES, summary
from .tracking import CONFIG, EPISODES, METRICS

LAST = 100  # training episodes whose scores the card shows


@dataclass(frozen=True)
class FoundAgent:
    """A trained agent, and the run that it comes from."""

    agent: TrainedAgent
    config: Config
    iteration: int
    alpha: float | None


def find_agent(path: Path) -> FoundAgent:
    """The agent of an exported file, of a finished run, or of the newest checkpoint of one that is not finished."""
    if path.is_file():
        agent, run = read_archive(path)
        return FoundAgent(agent, config_of(run["config"], path), int(run["iteration"]), run["alpha"])
    if not (path / CONFIG).is_file():
        raise EipoError(f"{path} is no run: {CONFIG} is missing")
    config = config_of(read_config(path / CONFIG)["config"], path / CONFIG)
    if (path / DESCRIPTION).is_file():
        last = last_metrics(path / METRICS)
        return FoundAgent(load(path), config, int(last.get("iteration", 0)), last.get("alpha"))
    found = Checkpoints(path, 1).newest()
    try:
        state = found.state["training"]
        config = config_of(found.state["config"], found.path)
        method = make_method(config.method, config.iterations)
        description = {
            "format": 1,
            "net": asdict(config.net),
            "precision": compute.precision_of(config.compute),
            "stack": config.envs.stack,
            "policies": list(method.policies),
            "critics": list(method.critics),
            **found.state["spaces"],
        }
        agent = build(description, save(state["agent"]), str(found.path))
        return FoundAgent(agent, config, int(state["iteration"]), state["method"].get("alpha"))
    except UNREADABLE as e:
        raise EipoError(f"{found.path} does not fit: {first_line(e)}") from e


def export(run: str | Path, path: str | Path) -> Path:
    """Write the agent of a run as one file: weights, what is needed to build it again, and a card for people."""
    source, target = Path(run), Path(path)
    if source.is_file():
        raise EipoError(f"{source} is a file: export takes a run directory")
    found = find_agent(source)
    agent = found.agent
    recorded = read_config(source / CONFIG)
    about = {
        "format": FORMAT,
        "eipo": __version__,
        "config": asdict(found.config),
        "iteration": found.iteration,
        "alpha": found.alpha,
        "versions": recorded.get("versions"),
        "command": recorded.get("command"),
        "training": {p: summary(s) | {"episodes": len(s)} for p, s in training_scores(source).items()},
        "evaluations": [_evaluation(f) for f in sorted(source.glob("evaluation-*.json"))],
    }
    parts = {
        WEIGHTS: save({k: v.contiguous() for k, v in agent.net.state_dict().items()}),
        DESCRIPTION: _json(agent.description),
        RUN: _json(about),
        CARD: card(target.name, found, about).encode(),
    }
    parts[MANIFEST] = _json({"format": FORMAT, "files": {n: _seal(data) for n, data in parts.items()}})
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)  # no times: same run, same bytes
    target.parent.mkdir(parents=True, exist_ok=True)
    replace(target, box.getvalue())
    return target


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _seal(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _evaluation(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text())
        return {k: v for k, v in read.items() if k not in ("scores", "lengths")}
    except (OSError, ValueError, AttributeError) as e:
        raise EipoError(f"{path} cannot be read: {first_line(e)}") from e


def training_scores(run: Path) -> dict[str, list[float]]:
    """Scores of each policy's last training episodes, from episodes.csv: iteration, steps, policy, score, length."""
    scores: dict[str, list[float]] = {}
    with open(run / EPISODES) as rows:
        next(rows, None)
        for row in rows:
            _, _, policy, score, _ = row.split(",")
            scores.setdefault(policy, []).append(float(score))
    return {p: s[-LAST:] for p, s in scores.items()}


def command_of(c: Config) -> str:
    """The command that trains this again."""
    names = ["--method", c.method_name, "--preset", c.preset, "--seed", str(c.seed), "--steps", str(c.steps)]
    usual = make_config(c.env, method=c.method_name, preset=c.preset, steps=c.steps)
    changed = differences(asdict(usual), {k: v for k, v in asdict(c).items() if isinstance(v, dict)})
    options = {**usual.envs.options, **c.envs.options} if "envs.options" in changed else {}
    pairs = [f"{k}={json.dumps(new)}" for k, (_, new) in changed.items() if k != "envs.options"]
    pairs += [f"envs.options.{k}={v}" for k, v in options.items() if usual.envs.options.get(k) != v]
    return shlex.join(["eipo", "train", c.env, *names, *(["--set", *pairs] if pairs else [])])


def card(name: str, found: FoundAgent, about: dict[str, Any]) -> str:
    """The model card."""
    c = found.config

    def row(what: str, s: dict[str, Any]) -> str:
        cells = [f"{s[m]:.4g} ({low:.4g} to {high:.4g})" for m in MEASURES for low, high in [s[f"{m}_interval"]]]
        return f"| {what} | {s['episodes']} | {' | '.join(cells)} |"

    rows = [row(f"last training episodes, {p}", s) for p, s in about["training"].items()]
    for e in about["evaluations"]:
        rows.append(row(f"evaluation, {e['policy']}" + (", likeliest actions" if e["deterministic"] else ""), e))
    lines = [
        f"# {c.method_name} on {c.env}",
        "",
        f"An agent trained by eipo {about['eipo']}: {c.method_name}, preset {c.preset or 'none'}, seed {c.seed}, "
        f"{found.iteration * c.steps_per_iteration} environment steps"
        + (f", alpha {found.alpha:.4g} at the end." if found.alpha is not None else "."),
        f"Policies: {', '.join(found.agent.policies)} (E: task, EI: task and bonus).",
        "",
        "| scores | episodes | mean (95 %) | median (95 %) | interquartile mean (95 %) |",
        "|---|---|---|---|---|",
        *rows,
        "",
        "Made by",
        "",
        f"    {command_of(c)}",
        "",
        "Use it:",
        "",
        f"    agent = eipo.load({name!r})",
        "    action, state = agent.act(observation, state=None)",
        "",
    ]
    return "\n".join(lines)
