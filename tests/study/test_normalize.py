"""Scores on one scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eipo.errors import EipoError
from eipo.study import paper
from eipo.study.normalize import Known, known_of, normalized, reference_scores


def test_by_hand() -> None:
    scores = {"a": [10.0, 30.0], "b": [5.0], "c": [1.0], "d": [0.0]}
    zero, one = {"a": 10.0, "b": -20.0, "c": 0.0, "d": 3.0}, {"a": 20.0, "b": 30.0, "d": 3.0}
    found = normalized(scores, zero, one)
    assert set(found) == {"a", "b"}  # of c the 1 is not known, in d it is not above the 0
    assert found["a"].tolist() == [0.0, 2.0]
    assert found["b"] == pytest.approx([0.5])


def test_the_table_of_the_package() -> None:
    known = reference_scores()
    assert known["Pong"] == Known(-20.7, 14.6)
    assert known_of("ALE/Pong-v5", known) == known["Pong"]
    assert known_of("nobody/Knows-v0", known) is None
    with_human = [g for g in paper.atari_scores()["EO"] if g in known and known[g].human is not None]
    assert len(with_human) == 54
    assert set(paper.atari_scores()["EO"]) - set(known) == {"Adventure", "ElevatorAction", "JourneyEscape"}
    assert all(np.isfinite(k.random) for k in known.values())


def test_a_users_table_comes_first(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("task,random\nMine-v0,1.5\nPong,-21\n")
    known = reference_scores(tmp_path / "r.csv")
    assert known["Mine-v0"] == Known(1.5, None)
    assert known["Pong"] == Known(-21.0, None)
    assert known["Venture"] == Known(0.0, 1187.5)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        ("", "needs the columns task,random"),
        ("task,score\nA,1\n", "needs the columns task,random"),
        ("task,random\nA,1\nB,much\n", "line 3: could not convert string to float: 'much'"),
        ("task,random\nA\n", "line 2:"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / "r.csv").write_text(content)
    with pytest.raises(EipoError, match=says):
        reference_scores(tmp_path / "r.csv")
