"""What the documentation names must exist, and its examples must run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import eipo
from eipo import cli, tracking
from eipo.config import settings
from eipo.presets import PRESETS, make_config

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(p for glob in ("*.md", "docs/**/*.md", "results/*.md") for p in ROOT.glob(glob))
TINY = {
    "envs.num": 4, "envs.steps": 25, "ppo.epochs": 1, "ppo.minibatches": 2, "net.dense": 8, "net.width": 8,
    "bonus.features": 8, "compute.threads": 1, "compute.shards": 1,
}  # fmt: skip


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def code(page: str) -> list[str]:
    """What stands between backticks on one line."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text(page), flags=re.S))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text(page), re.S)


def is_there(name: str) -> bool:
    """Whether eipo.NAME is a module, or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["eipo", *parts[:n]]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_equations_names_tests_that_exist() -> None:
    named = [re.fullmatch(r"([\w/]+\.py)::(\w+)", word) for word in code("docs/equations.md") if "::" in word]
    assert len(named) > 60
    missing = [m[0] for m in named if m is None or f"\ndef {m[2]}(" not in text(f"tests/{m[1]}")]
    assert not missing


def test_statistics_names_what_exists() -> None:
    words = code("docs/statistics.md")
    tests = [re.fullmatch(r"([\w/]+\.py)::(\w+)", word) for word in words if "::" in word]
    assert len(tests) > 10
    assert not [m[0] for m in tests if m is None or f"\ndef {m[2]}(" not in text(f"tests/{m[1]}")]
    functions = [w for w in words if re.fullmatch(r"study\.\w+", w)]
    assert len(functions) > 12
    assert not [w for w in functions if not is_there(w)]


def test_equations_names_functions_and_settings_that_exist() -> None:
    named = [w for w in code("docs/equations.md") if re.fullmatch(r"[a-z_]+(\.\w+)+(=\w+)?", w)]
    named = [w for w in named if not w.endswith((".py", ".md"))]
    assert len(named) > 60
    assert not [w for w in named if not is_there(w) and w.partition("=")[0] not in settings()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_settings_exist(page: Path) -> None:
    """Those of --set, those in Python, and those in backticks."""
    content = page.read_text(encoding="utf-8")
    sections = "|".join({key.partition(".")[0] for key in settings()})
    keys = {pair.partition("=")[0] for run in re.findall(r"--set((?: +[\w.]+=\S+)+)", content) for pair in run.split()}
    keys |= set(re.findall(rf'"((?:{sections})\.[\w.]+)"', content))
    keys |= {w for w in code(str(page.relative_to(ROOT))) if re.fullmatch(rf"(?:{sections})\.\w+", w)}
    wrong = {k for k in keys if k not in settings() and not k.startswith("envs.options.") and not is_there(k)}
    assert not {k for k in wrong if not k.endswith((".py", ".md"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    links = [a or b for a, b in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", content)]
    for link in links:
        target, _, anchor = link.partition("#")
        if (
            re.match(r"\w+:", link) or (page.parent / target).resolve().parent == ROOT / "results"
        ):  # results come with the study
            continue
        file = page.parent / target if target else page
        assert file.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}, link


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_are_understood(page: Path) -> None:
    for block in blocks(str(page.relative_to(ROOT)), "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["eipo"] or "--help" in words or "--version" in words:
                continue
            command = cli.parse(words[1:])
            if isinstance(command, cli.Train) and command.resume is None:
                pairs = [pair for group in command.set for pair in group]
                make_config(command.env, method=command.method or "eipo", preset=command.preset, steps=command.steps,
                            settings=pairs)  # fmt: skip


def first_column(page: str, heading: str) -> list[str]:
    """The names in the first column of the tables under a heading."""
    section = re.split(rf"^## {re.escape(heading)}$", text(page), flags=re.M)[1]
    rows = re.findall(r"^\| ([^|]+) \|", re.split(r"^## ", section, flags=re.M)[0], re.M)
    return [name for row in rows for name in re.findall(r"`(\w[\w.]*)`", row)]


def test_every_metric_is_documented_and_every_documented_metric_exists() -> None:
    written: set[str] = set()
    for method in ("eipo", "dc", "hepo"):
        run = eipo.train(
            "eipo/Maze-v0", method=method, steps=300,
            settings=TINY | {"evaluation.every": 3, "evaluation.episodes": 1}
            | {"eipo": {"method.switch": "alternate"}, "dc": {"ppo.clip_apart": True}}.get(method, {}),
        )  # fmt: skip
        written |= {key for line in run.metrics for key in line}
    assert sorted(first_column("docs/metrics.md", "metrics.jsonl")) == sorted(written)


def test_the_fields_of_config_json_are_documented() -> None:
    about = tracking.provenance(make_config("eipo/Maze-v0", steps=32000))
    assert sorted(first_column("docs/metrics.md", "config.json")) == sorted(about)


def test_every_dependency_is_explained() -> None:
    """tomllib is not in Python 3.10."""
    project = text("pyproject.toml")
    lists = re.findall(r"^dependencies = \[.*?^\]|^\[project.optional-dependencies\].*?^\[", project, re.M | re.S)
    assert len(lists) == 2
    names = {name for one in lists for name in re.findall(r'"([\w-]+)', re.sub("#.*", "", one))} - {"eipo"}
    assert len(names) > 20
    assert sorted(names) == sorted(set(re.findall(r"^\| `([\w-]+)` \|", text("docs/dependencies.md"), re.M)))


def test_the_table_of_presets_is_right() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", text("docs/methods/index.md"), re.M)
    assert len(rows) > 15
    for key, cells in rows:
        section, name = key.split(".")
        expected = [getattr(getattr(p, section), name) for p in PRESETS.values()]
        found = [cell.strip() for cell in cells.split("|")][: len(expected)]
        assert found == [f"{v:g}" if isinstance(v, float) else json.dumps(v).strip('"') for v in expected], key


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/bonuses.md"])
def test_python_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand, but with small networks and few steps."""
    train = eipo.train

    def short(env: str, **arguments: Any) -> Any:
        more = dict(arguments.pop("settings", {}))
        return train(env, **arguments | {"steps": 200, "settings": more | TINY})

    monkeypatch.setattr(eipo, "train", short, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found = blocks(page, "python")
    assert found
    names: dict[str, Any] = {}
    for block in found:
        if name := re.match(r"# (\w+)\.py\n", block):  # a file of its own
            (tmp_path / f"{name[1]}.py").write_text(block)
        else:
            exec(compile(block, page, "exec"), names)
