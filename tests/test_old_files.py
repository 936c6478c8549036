"""What earlier versions have written is read. A fixture here is never written again (tests/fixtures/make.py)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import eipo
from eipo.checkpoint import FORMAT, Checkpoints
from eipo.errors import EipoError

FIXTURES = Path(__file__).parent / "fixtures"
FORMATS = sorted(FIXTURES.glob("format-*"))


def test_there_is_a_fixture_of_every_format() -> None:
    assert [p.name for p in FORMATS] == [f"format-{n}" for n in range(1, FORMAT + 1)]


@pytest.mark.parametrize("made", FORMATS, ids=lambda p: p.name)
def test_a_run_goes_on(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "run", tmp_path / "run")
    before = Checkpoints(tmp_path / "run", 1).newest().state["training"]
    assert before["iteration"] == 4
    weights = {k: v.clone() for k, v in before["agent"].items()}
    same = eipo.resume(tmp_path / "run")  # it was finished: nothing is learned
    assert all(torch.equal(weights[k], v) for k, v in same.agent.net.state_dict().items())
    more = eipo.resume(tmp_path / "run", steps=40 * 6)
    assert [m["iteration"] for m in more.metrics] == [1, 2, 3, 4, 5, 6]
    assert more.metrics[4]["alpha"] == pytest.approx(before["method"]["alpha"], abs=1e-2)


@pytest.mark.parametrize("made", FORMATS, ids=lambda p: p.name)
def test_agents_are_read_from_runs_and_exported_files(made: Path) -> None:
    obs = np.zeros((1, 5, 5), np.uint8)
    actions = []
    for path in (made / "run", made / "agent.zip"):
        agent = eipo.load(path)
        agent.seed(0)
        actions.append([agent.act(obs, policy=p)[0].tolist() for p in ("E", "EI")])
    assert actions[0] == actions[1]


@pytest.mark.parametrize("name", ["checkpoints/00000004/manifest.json", "config.json", "agent.json"])
def test_a_newer_format_is_refused_by_name(name: str, tmp_path: Path) -> None:
    shutil.copytree(FORMATS[-1] / "run", tmp_path / "run")
    path = tmp_path / "run" / name
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    read = eipo.load if name == "agent.json" else eipo.resume
    with pytest.raises(EipoError, match="has format 99, this eipo reads up to 1: upgrade eipo"):
        read(tmp_path / "run")
