"""`eipo compare`: from runs to tables, files and a figure."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from made_up import LEVEL, make_run

from eipo.cli import main
from eipo.errors import EipoError
from eipo.study.comparison import compare, write_comparison
from eipo.study.comparison_tables import Study
from eipo.study.scores import read_table
from eipo.study.statistics import Bootstrap, Estimate
from eipo.study.tables import Spread

FEW = Bootstrap(resamples=100)
HEAD = "task,method,seed,steps,score\n"
PONG, VENTURE = "ALE/Pong-v5", "ALE/Venture-v5"


def table(path: Path, scores: dict[str, dict[str, list[float]]], steps: int = 49_152_000) -> Path:
    """{task: {method: scores of its seeds}} as a CSV."""
    rows = [
        f"{task},{method},{seed},{steps},{x}\n"
        for task, methods in scores.items() for method, xs in methods.items() for seed, x in enumerate(xs)
    ]  # fmt: skip
    path.write_text(HEAD + "".join(rows))
    return path


@pytest.fixture
def games(tmp_path: Path) -> Path:
    return table(
        tmp_path / "games.csv",
        {
            PONG: {"eo": [20.0, 20.0], "en": [20.0, 21.0], "eipo": [21.0, 21.0]},
            VENTURE: {"eo": [100.0, 300.0], "en": [1200.0, 1000.0], "eipo": [900.0, 1100.0]},
        },
    )


def cell(comparison_table: object, row: str, column: str) -> object:
    t = comparison_table
    found = next(r for r in t.rows if r[0] == row)  # type: ignore[attr-defined]
    return found[list(t.columns).index(column)]  # type: ignore[attr-defined]


def test_the_numbers_by_hand(games: Path) -> None:
    tables = compare([games], how=FEW).tables
    assert cell(tables["scores"], VENTURE, "eo") == Spread(200.0, pytest.approx(np.sqrt(20000)), 2)
    p = cell(tables["improvement"], "eipo", "en")
    assert isinstance(p, Estimate)
    assert p.value == pytest.approx((0.75 + 0.25) / 2)  # Pong 21 21 against 20 21; Venture 900 1100 against 1200 1000
    back = cell(tables["improvement"], "en", "eipo")
    assert isinstance(back, Estimate)
    assert (back.low, back.high) == pytest.approx((1 - p.high, 1 - p.low))
    weak = cell(tables["at_least"], "eipo", "en")
    assert isinstance(weak, Estimate)
    assert weak.value == pytest.approx((1.0 + 0.25) / 2)
    share = cell(tables["shares"], "eipo", "en")
    assert isinstance(share, Estimate)
    assert share.value == 0.5
    assert cell(tables["by_task"], VENTURE, "en") == 0.25
    std = pytest.approx(np.sqrt(20000))
    (lost,) = tables["losses"].rows
    assert lost[:4] == [VENTURE, Spread(1000.0, std, 2), "en", Spread(1100.0, std, 2)]
    assert isinstance(lost[4], Estimate)
    assert (lost[4].value, lost[4].low, lost[4].high) == (0.25, 0.0, 1.0)  # a draw may be 900 twice, or 1100 and 1000
    assert cell(tables["against"], "en", "tasks") == 2
    assert cell(tables["against"], "en", "P(eipo > B)") == p
    assert cell(tables["against"], "en", "P(eipo >= B)") == weak
    assert cell(tables["against"], "en", "R(eipo, B)") == share
    # Random scores are -20.7 and 0; eo earns 20 and 200. Means: 41.2 / 40.7 and 1100 / 200 for en.
    aggregate = cell(tables["aggregates"], "en", "mean")
    assert isinstance(aggregate, Estimate)
    assert aggregate.value == pytest.approx(((20.5 + 20.7) / (20 + 20.7) + 1100 / 200) / 2)
    assert tables["aggregates"].title.startswith("Normalized scores (reference eo), 2 tasks")


@pytest.mark.parametrize(("scale", "venture"), [("human", 200 / 1187.5), ("best", 200 / 1100), ("reference", 1.0)])
def test_scales(games: Path, scale: str, venture: float) -> None:
    normalized = compare([games], scale=scale, how=FEW).normalized
    assert normalized["eo"][VENTURE].mean() == pytest.approx(venture)
    assert set(normalized["eo"]) == {PONG, VENTURE}


def test_multiples_of_the_random_score(games: Path) -> None:
    found = compare([games], scale="random", how=FEW)
    assert set(found.normalized["eo"]) == {PONG}  # Venture's random score is 0
    assert found.normalized["eo"][PONG].mean() == pytest.approx((20 + 20.7) / 20.7)
    assert found.notes == [
        f"not in the normalized scores, for what counts as 1 is not above the random score: {VENTURE}"
    ]


def test_what_cannot_be_normalized_is_said(tmp_path: Path) -> None:
    scores = {"Mine-v0": {"eo": [1.0, 2.0], "eipo": [2.0, 3.0]}, PONG: {"eo": [-21.0, -21.0], "eipo": [3.0, 4.0]}}
    found = compare([table(tmp_path / "t.csv", scores)], how=FEW)
    assert "aggregates" not in found.tables
    assert found.notes == [
        f"not in the normalized scores, for what counts as 1 is not above the random score: {PONG}",
        "not in the normalized scores, for no random score is known; give it by --random FILE: Mine-v0",
    ]
    (tmp_path / "random.csv").write_text("task,random\nMine-v0,0.5\n")
    found = compare([tmp_path / "t.csv"], random=tmp_path / "random.csv", how=FEW)
    assert found.normalized["eipo"]["Mine-v0"].tolist() == [1.5, 2.5]  # over (1.5 - 0.5)
    found = compare([tmp_path / "t.csv"], reference="en", how=FEW)
    assert found.notes == ["no normalized scores, for en is not there; name a --reference, or another --scale"]


def test_methods_that_have_not_been_everywhere(tmp_path: Path) -> None:
    scores = {"A": {"eo": [1.0], "eipo": [2.0]}, "B": {"eo": [3.0], "en": [5.0]}}
    found = compare([table(tmp_path / "t.csv", scores)], how=FEW)
    assert cell(found.tables["scores"], "A", "en") is None
    assert cell(found.tables["improvement"], "en", "eipo") is None
    alone = cell(found.tables["improvement"], "en", "eo")
    assert isinstance(alone, Estimate)
    assert alone.value == 1.0
    assert np.isnan([alone.low, alone.high]).all()
    assert [row[0] for row in found.tables["by_task"].rows] == ["A"]
    assert found.notes[-1] == (
        "one seed only, so intervals do not know how seeds differ: eipo on A, en on B, eo on A, eo on B"
    )


def test_other_budgets_are_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEAD + "A,eo,0,1000,1\nA,eipo,0,2000,1\nB,eo,0,1000,1\nB,eipo,0,1010,1\n")
    notes = compare([tmp_path / "t.csv"], how=FEW).notes
    assert "A: runs have from 1000 to 2000 steps; compare alike with --steps" in notes
    assert not any(n.startswith("B:") for n in notes)


def test_beside_the_paper(games: Path, tmp_path: Path) -> None:
    found = compare([games], with_paper=True, how=FEW)
    assert cell(found.tables["paper"], "Venture", "paper EIPO") == 1146.3
    assert cell(found.tables["paper"], "Venture", "eipo") == Spread(1000.0, pytest.approx(np.sqrt(20000)), 2)
    shares = found.tables["paper_shares"]
    # eipo's 21 is above every 20.9; its 1000 is above the paper's 102.1 of EO alone.
    assert list(next(r for r in shares.rows if r[0] == "eipo")) == ["eipo", 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 2]
    short = table(tmp_path / "short.csv", {PONG: {"eo": [20.0, 20.0]}}, steps=1000)
    notes = compare([short], with_paper=True, how=FEW).notes
    assert notes == [f"{PONG}: trained for up to 1000 steps, the paper for 49152000"]


def test_runs_beside_the_paper(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "v", "eipo", env="ALE/Venture-v5", iterations=30, visits=False)
    make_run(tmp_path / "runs" / "c", "eipo", env="CartPole-v1", iterations=30, visits=False)
    found = compare([tmp_path / "runs"], with_paper=True, how=FEW)
    assert [row[0] for row in found.tables["paper"].rows] == ["Venture"]
    own, score = cell(found.tables["paper"], "Venture", "eipo"), cell(found.tables["scores"], "ALE/Venture-v5", "eipo")
    assert isinstance(own, Spread)
    assert isinstance(score, Spread)
    assert own.mean == score.mean > 300
    assert "ALE/Venture-v5: trained for up to 960000 steps, the paper for 49152000" in found.notes


def test_the_papers_own_tables() -> None:
    tables = compare([], with_paper=True).tables
    assert len(tables["paper_scores"].rows) == 61
    share = cell(tables["paper_shares"], "EIPO", "EO")
    assert share == Estimate(48 / 61, 44 / 61, 48 / 61)


def test_runs_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for method in LEVEL:
        for seed in range(2):
            make_run(tmp_path / "runs" / f"{method}-{seed}", method, seed, iterations=30, visits=False)
    assert (
        main(["compare", str(tmp_path / "runs"), "--scale", "best", "-o", str(tmp_path / "out"), "--resamples", "50"])
        == 0
    )
    out = capsys.readouterr().out
    assert "Scores: mean ± standard deviation over 2 seeds" in out
    assert "P(row > column)" in out
    assert "…" not in out  # nothing is cut off where there is no terminal
    files = {p.name for p in (tmp_path / "out").iterdir()}
    assert {
        "scores.csv",
        "improvement.csv",
        "shares.csv",
        "seeds.csv",
        "compare.md",
        "compare.tex",
        "compare.png",
    } <= files
    image = matplotlib.image.imread(tmp_path / "out" / "compare.png")
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 50
    with open(tmp_path / "out" / "improvement.csv") as f:
        rows = {row[">"]: row for row in csv.DictReader(f)}
    assert float(rows["eipo"]["eo"]) == 1.0
    # The table of seeds says the same again.
    assert len(read_table(tmp_path / "out" / "seeds.csv")[0]) == 2 * len(LEVEL)
    again = compare([tmp_path / "out" / "seeds.csv"], scale="best", how=Bootstrap(50))
    shutil.rmtree(tmp_path / "runs")
    assert (tmp_path / "out" / "improvement.csv").read_text() == again.tables["improvement"].csv()


def test_the_figure_with_normalized_scores(games: Path, tmp_path: Path) -> None:
    files = write_comparison(compare([games], how=FEW), tmp_path / "out")
    assert tmp_path / "out" / "compare.svg" in files
    assert all(f.stat().st_size for f in files)
    assert matplotlib.image.imread(tmp_path / "out" / "compare.png").shape[0] > 800


def test_one_method_alone(tmp_path: Path) -> None:
    found = compare([table(tmp_path / "t.csv", {"A": {"eo": [1.0, 2.0]}})], how=FEW)
    assert set(found.tables) == {"scores"}
    assert not list(tmp_path.glob("out/*.png"))
    assert len(write_comparison(found, tmp_path / "out")) == 5  # scores twice, Markdown, LaTeX, seeds


def test_the_focus(games: Path) -> None:
    assert compare([games], how=FEW).focus == "eipo"
    assert "P(en > column)" in compare([games], focus="en", how=FEW).tables["by_task"].title
    with pytest.raises(EipoError, match="unknown method 'epo'; did you mean 'eipo'"):
        compare([games], focus="epo", how=FEW)


def test_study_keeps_the_papers_order(games: Path) -> None:
    study = Study.of(read_table(games)[0])
    assert study.methods == ["eo", "en", "eipo"]
    assert study.tasks == [PONG, VENTURE]
    assert study.means["eo"][VENTURE] == 200.0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "name at least one run"),
        (["nowhere"], "nowhere does not exist"),
        (["."], ". holds no run"),
        (["t.csv", "--paper"], "none of the paper's 61 Atari games is among A"),
        (["t.csv", "--focus", "x"], "unknown method 'x'"),
        (["t.csv", "--last", "0"], "--last 0: must be at least 1"),
        (["t.csv", "--random", "none.csv"], "none.csv cannot be read"),
        (["t.csv", "--scale", "ppo"], "'ppo'"),
        (["empty.csv"], "holds no score"),
        (["t.csv", "-o", "t.csv"], "t.csv"),
        (["run"], "in none of the 1 runs has an episode ended"),
        (["old"], "old has no episodes.csv"),
    ],
)
def test_bad_input(
    argv: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if argv != ["."]:
        make_run(tmp_path / "run", done=0)
        make_run(tmp_path / "old", iterations=3)
        (tmp_path / "old" / "episodes.csv").unlink()
    table(tmp_path / "t.csv", {"A": {"eo": [1.0], "eipo": [2.0]}})
    (tmp_path / "empty.csv").write_text(HEAD)
    assert main(["compare", *argv]) == 2
    err = capsys.readouterr().err
    assert err.startswith("eipo: error: ")
    assert err.count("\n") == 1
    assert says in err
