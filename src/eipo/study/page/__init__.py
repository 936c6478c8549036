"""The report as one web page that needs no network. Its parts lie beside this file; data.py tells it the runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...errors import EipoError
from ..report import draw
from ..runs import RunData, read_runs
from .colours import rules
from .data import tell

HERE = Path(__file__).parent
SCRIPTS = (
    "base",
    "numbers",
    "chart",
    "dots",
    "curves",
    "scores",
    "maps",
    "tables",
    "main",
)  # in this order they are one script


def write_page(paths: Sequence[Path], out: Path, figures: bool = False) -> list[Path]:
    """Write the runs among `paths` (run directories, or directories that hold some) as one page.

    With `figures`, a picture of each world beside it, as PNG and SVG. Returns the page's path and the pictures' PNGs.
    """
    runs = read_runs(paths)
    if not any(len(run) for run in runs):
        raise EipoError(f"{runs[0].path}: no iteration is finished yet, so there is nothing to show")
    text = page(tell(runs))
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        return [out, *(_pictures(runs, out) if figures else [])]
    except OSError as e:
        raise EipoError(f"{e.filename or out} cannot be written: {e.strerror}") from e


def _pictures(runs: Sequence[RunData], page: Path) -> Iterable[Path]:
    """PAGE-WORLD.png and .svg of each world."""
    stems: dict[str, str] = {}  # worlds whose names differ only in what a file's name cannot have get numbers
    for env in dict.fromkeys(run.env for run in runs if len(run)):
        stem = f"{page.stem}-{re.sub(r'[^A-Za-z0-9_.]+', '-', env).strip('-.')}"
        stems[env] = stem if stem not in stems.values() else f"{stem}-{len(stems) + 1}"
        yield draw([run for run in runs if run.env == env and len(run)], page.with_name(stems[env]))


def page(told: dict[str, Any]) -> str:
    """The page. A browser runs its script and no other, and loads nothing: the policy names the script by its hash."""
    style = _part("style.css") + rules(told["variants"])
    script = "(() => {\n" + "".join(_part(f"{name}.js") for name in SCRIPTS) + "})();\n"
    # In a script element only "<" can end it or open a comment; in JSON it stands in strings alone.
    data = json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "data": data, "script": script}
    return re.sub(r"\{(policy|style|data|script)\}", lambda m: parts[m[1]], _part("page.html"))


def _part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
