"""Reading the episodes of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eipo.errors import EipoError
from eipo.study.episodes import last_episodes, read_episodes

HEADER = "iteration,steps,policy,score,length\n"


def write(path: Path, count: int, tail: str = "") -> Path:
    """`count` episodes: number k has score k / 4, three of four by E, ten an iteration of 100 steps."""
    rows = [
        f"{k // 10 + 1},{(k // 10 + 1) * 100},{'EI' if k % 4 == 3 else 'E'},{k / 4},{k % 7 + 1}\n" for k in range(count)
    ]
    (path / "episodes.csv").write_text(HEADER + "".join(rows) + tail)
    return path


def test_all_of_them(tmp_path: Path) -> None:
    e = read_episodes(write(tmp_path, 25))
    assert len(e) == 25
    assert e.score.tolist() == [k / 4 for k in range(25)]
    assert e.iteration.tolist() == [1] * 10 + [2] * 10 + [3] * 5
    assert e.steps.tolist() == [100] * 10 + [200] * 10 + [300] * 5
    assert e.length[:8].tolist() == [1, 2, 3, 4, 5, 6, 7, 1]
    assert e.policy[:4].tolist() == ["E", "E", "E", "EI"]


def test_none_yet(tmp_path: Path) -> None:
    assert len(read_episodes(write(tmp_path, 0))) == 0
    assert len(last_episodes(tmp_path, 100)) == 0


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    assert len(read_episodes(write(tmp_path, 3, "1,100,E,12"))) == 3


def test_the_last_by_policy_and_step(tmp_path: Path) -> None:
    write(tmp_path, 25)
    assert (4 * last_episodes(tmp_path, 3).score).tolist() == [22, 23, 24]
    assert (4 * last_episodes(tmp_path, 3, policy="EI").score).tolist() == [15, 19, 23]
    assert (4 * last_episodes(tmp_path, 3, upto=299).score).tolist() == [17, 18, 19]
    assert (4 * last_episodes(tmp_path, 3, policy="EI", upto=200).score).tolist() == [11, 15, 19]
    assert (4 * last_episodes(tmp_path, 100, policy="EI").score).tolist() == [3, 7, 11, 15, 19, 23]
    assert len(last_episodes(tmp_path, 3, policy="mixed")) == 0


@pytest.mark.parametrize("block", [16, 100, 1000, 1 << 16])
def test_reading_from_the_end_gives_what_reading_all_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    every = read_episodes(write(tmp_path, 300, "31,3100,E"))
    monkeypatch.setattr("eipo.study.episodes.BLOCK", block)
    for count in (1, 7, 100, 1000):
        for policy in (None, "EI"):
            for upto in (None, 1500):
                keep = np.ones(300, bool) if policy is None else every.policy == policy
                keep &= every.steps <= (upto or 10**9)
                expected = np.flatnonzero(keep)[-count:]
                found = last_episodes(tmp_path, count, policy, upto)
                assert found.score.tolist() == every.score[expected].tolist()
                assert found.policy.tolist() == every.policy[expected].tolist()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "does not begin with iteration,steps,policy,score,length"),
        ("step,score\n1,2\n", "does not begin with"),
        (HEADER + "1,100,E,12\n", "is damaged: a line has not five values"),
        (HEADER + "1,100,E,much,3\n", "is damaged: could not convert"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "episodes.csv").write_text(content)
    with pytest.raises(EipoError, match=says) as error:
        read_episodes(tmp_path)
    assert "\n" not in str(error.value)


def test_a_run_from_before(tmp_path: Path) -> None:
    with pytest.raises(EipoError, match=r"has no episodes.csv"):
        last_episodes(tmp_path, 100)
