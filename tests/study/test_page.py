"""What the page is told of the runs, without a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from made_up import ITERATION, LEVEL, make_run

from eipo import cli
from eipo.errors import EipoError
from eipo.study.figures import COLOURS, OTHER
from eipo.study.page import page, thin, write_page
from eipo.study.page.colours import DARK, LEAST, LIGHT, contrast, legible, luminance
from eipo.study.page.data import _natural, tell
from eipo.study.page.notes import notes_of
from eipo.study.page.places import Places
from eipo.study.page.scores import scores_of
from eipo.study.runs import read_run, read_runs


def parse(text: str) -> np.ndarray:
    """What numbers.js makes of a series."""
    if text.startswith("="):
        value, count = text[1:].split(" ")
        return np.full(int(count), float(value))
    return np.array([float(word) if word else np.nan for word in text.split(" ")])


def data_of(html: str) -> dict[str, Any]:
    """The runs in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found
    return dict(json.loads(found[1]))


def told(path: Path) -> dict[str, Any]:
    """What a page of the runs below `path` is told, after it has been text."""
    return data_of(page(tell(read_runs([path]))))


def test_numbers_as_text() -> None:
    for values in ([1.0, np.nan, -0.00012345, 3e7, 0.0], [2.5] * 40, [np.nan], [7.0]):
        np.testing.assert_allclose(parse(thin.text(np.array(values))), values, rtol=5e-4)
    assert thin.text(np.full(300, 0.5)) == "=0.5 300"
    assert thin.text(np.array([123456789, 5]), 12) == "123456789 5"
    assert thin.text(np.array([3.1234e7, 2e-5])) == "3.123e7 2e-5"


def test_bins_by_hand(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "r", iterations=10))
    assert thin.bins(run, 10).tolist() == list(range(10))
    # 10 iterations in 4 parts of 2.5 iterations: 1 and 2; 3 to 5; 6 and 7; 8 to 10.
    assert thin.bins(run, 4).tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    values = np.array([1, 3, np.nan, 5, 6, np.nan, np.nan, 1, 2, 6.0])
    np.testing.assert_allclose(thin.binned(values, thin.bins(run, 4)), [2, 5.5, np.nan, 3])


def test_an_unfinished_seed_has_the_bins_of_the_others(tmp_path: Path) -> None:
    whole, half = (read_run(make_run(tmp_path / str(d), iterations=100, done=d)) for d in (None, 50))
    assert thin.bins(half, 40).tolist() == thin.bins(whole, 40)[:50].tolist()


def test_a_page_has_room_for_many_runs() -> None:
    assert thin.points(5, 30) == thin.MOST
    assert thin.points(300, 30) * 300 * 30 <= thin.VALUES
    assert thin.points(100_000, 30) == thin.FEWEST


def test_curves_are_those_of_the_run(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "r", "eipo", iterations=30))
    (one,) = told(tmp_path)["runs"]
    for name in ("return", "return_E", "gap", "alpha"):
        np.testing.assert_allclose(parse(one["y"][name]), run.column(name), rtol=5e-4)
    assert "return_mixed" not in one["y"]  # null throughout
    assert parse(one["y"]["stage"]).tolist() == [0, 1] * 15
    # 32,000 steps at 20,000 a second: 1.6 s an iteration.
    np.testing.assert_allclose(parse(one["seconds"]), 1.6 * np.arange(1, 31), rtol=1e-4)
    assert (one["time"], one["speed"], one["done"], one["per_point"]) == (48.0, 20_000.0, 30 * ITERATION, 1)


def test_a_method_means_the_same_in_every_world(tmp_path: Path) -> None:
    for env, lams in (("A-v0", (1.0, 10.0)), ("B-v0", (10.0,)), ("C-v0", (1.0, 10.0))):
        for lam in lams:
            make_run(tmp_path / env / str(lam), "eipo", env=env, iterations=3, settings={"method.lam": lam})
        make_run(tmp_path / env / "eo", "eo", env=env, iterations=3)
    page = told(tmp_path)
    assert [v["label"] for v in page["variants"]] == ["eipo", "eipo lam 1", "eipo lam 10", "eo"]
    assert len({v["colour"] for v in page["variants"]}) == 4
    assert [(page["envs"][r["env"]]["id"], r["variant"]) for r in page["runs"] if r["variant"] == 1] == [
        ("A-v0", 1), ("C-v0", 1),
    ]  # fmt: skip
    assert page["keys"] == ["method.rule", "method.lam"]
    assert sorted(["en lam 10", "en lam 2", "en", "en lam 1e-3"], key=_natural) == [
        "en", "en lam 1e-3", "en lam 2", "en lam 10",
    ]  # fmt: skip


def test_settings_that_differ(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "en", 0, iterations=3, settings={"ppo.lr": float("inf")})
    make_run(tmp_path / "b", "en", 1, iterations=3, settings={"ppo.clip": 0.3})
    page = told(tmp_path)
    assert page["keys"] == ["ppo.lr", "ppo.clip"]
    assert [page["settings"][r["setting"]] for r in page["runs"]] == [
        {"ppo.lr": "inf"}, {"ppo.lr": 0.0001, "ppo.clip": 0.3},
    ]  # fmt: skip


def test_visits_are_those_of_the_run(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "r", "eipo", iterations=3))
    page = told(tmp_path)
    visits, (board,) = page["runs"][0]["visits"], page["boards"]
    assert run.visits is not None
    assert len(board["cells"]) == 394 + sum("kind" in cell for cell in board["cells"])
    counts = sum(parse(text) for part in visits["parts"] for text in part)
    assert counts.sum() == run.visits.counts.sum()
    # The start is where the most are (see made_up.write_visits).
    most = board["cells"][int(np.argmax(counts))]
    assert (most["row"], most["column"]) == (board["start"]["row"], board["start"]["column"])
    first = parse(visits["parts"][0][visits["policies"].index("EI")])
    assert first.sum() == run.visits.counts[0, 1].sum()


def test_maps_of_many_runs_keep_the_first_seeds(tmp_path: Path) -> None:
    for seed in range(4):
        make_run(tmp_path / str(seed), "en", seed, iterations=2)
    from eipo.study.groups import grouped

    groups = grouped(read_runs([tmp_path]))
    one = Places(groups).values // 4
    places = Places(groups, room=2 * one)
    assert (places.seeds, places.values) == (2, 2 * one)
    assert [places.visits(run) is not None for run in groups[0].runs] == [True, True, False, False]
    assert Places(groups, room=1).seeds == 1


def test_notes(tmp_path: Path) -> None:
    assert notes_of(read_run(make_run(tmp_path / "a", "eipo", iterations=6))) == []
    assert notes_of(read_run(make_run(tmp_path / "b", "eipo", iterations=6, done=3))) == [
        "Not finished: 96 k of 0.192 M steps."
    ]
    path = make_run(tmp_path / "d", "eo", iterations=1)
    (path / "metrics.jsonl").write_text('{"iteration": 1, "steps": 32000, "return": null, "lam": 1.0}\n')
    assert notes_of(read_run(path)) == ["No episode has ended, so there is no return."]


def test_text_of_runs_cannot_leave_its_element(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--"
    make_run(tmp_path / "<script>alert(2)<", "eo", env=evil, iterations=2, visits=False)
    html = page(tell(read_runs([tmp_path])))
    assert html.count("<script") == 2
    assert "alert(1)</script>" not in html
    assert data_of(html)["envs"][0]["id"] == evil
    assert data_of(html)["title"] == f"eo on {evil}"


def test_braces_in_the_data_are_no_places_to_fill(tmp_path: Path) -> None:
    make_run(tmp_path / "r", "eo", env="{style}{script}{data}", iterations=2, visits=False)
    assert told(tmp_path)["envs"][0]["id"] == "{style}{script}{data}"


def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    make_run(tmp_path / "r", "eipo")
    first, again = (write_page([tmp_path / "r"], tmp_path / name / "r.html")[0] for name in ("a", "b"))
    assert first.read_bytes() == again.read_bytes()


def test_pictures_beside_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for env in ("A/x-v0", "A-x-v0"):
        make_run(tmp_path / "runs" / env, "eo", env=env, iterations=3, visits=False)
    out = tmp_path / "out" / "r.html"
    assert cli.main(["report", str(tmp_path / "runs"), "-o", str(out), "--figures"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [f"report: {out.parent}/{name}" for name in ("r.html", "r-A-x-v0.png", "r-A-x-v0-2.png")]
    assert {p.name for p in out.parent.iterdir()} == {
        "r.html", "r-A-x-v0.png", "r-A-x-v0.svg", "r-A-x-v0-2.png", "r-A-x-v0-2.svg",
    }  # fmt: skip
    assert matplotlib.image.imread(out.parent / "r-A-x-v0.png").shape[1] == 1600


def test_what_cannot_be_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "begun", done=0)
    with pytest.raises(EipoError, match="no iteration is finished yet"):
        write_page([tmp_path / "begun"], tmp_path / "out.html")
    make_run(tmp_path / "r", "eo", iterations=2)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EipoError, match=r"/file(/out.html)? cannot be written"):
        write_page([tmp_path / "r"], tmp_path / "file" / "out.html")
    assert cli.main(["report", str(tmp_path / "r"), "-o", str(tmp_path / "dir"), "--figures"]) == 2
    assert "--figures go beside a page" in capsys.readouterr().err
    assert "1 run without a finished iteration is left out." in told(tmp_path)["facts"]


@pytest.mark.parametrize("ink", [*COLOURS.values(), *OTHER, "#ffffff", "#000000"])
def test_lines_stand_out_from_light_and_dark_paper(ink: str) -> None:
    for paper in (LIGHT, DARK):
        assert contrast(legible(ink, paper), paper) >= LEAST
    if contrast(ink, LIGHT) >= LEAST:
        assert legible(ink, LIGHT) == ink.lower()


def test_contrast_by_hand() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    # (0x77 / 255 + 0.055) / 1.055 to the power of 2.4 is 0.1845; 1.05 / 0.2345 = 4.478, as WCAG's examples have it.
    assert luminance("#777777") == pytest.approx(0.1845, abs=1e-4)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


def test_three_hundred_runs(tmp_path: Path) -> None:
    """Of 150 iterations and 33 metrics each: below 20 s and 10 MB."""
    rng = np.random.default_rng(0)
    lines = {}
    for method in list(LEVEL)[:6]:
        path = make_run(tmp_path / "runs" / f"{method}-0-0", method, env="eipo/Maze-v0", iterations=150)
        rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        more = rng.normal(size=(150, 24)).round(12)
        lines[method] = "".join(
            json.dumps(row | {f"metric_{k}": v for k, v in enumerate(values)}) + "\n"
            for row, values in zip(rows, more.tolist(), strict=True)
        )
        (path / "metrics.jsonl").write_text(lines[method])
        for j in range(1, 50):
            world, seed = divmod(j, 5)
            env = f"World{world}-v0" if world else "eipo/Maze-v0"
            other = make_run(
                tmp_path / "runs" / f"{method}-{world}-{seed}", method, seed, env=env, iterations=150, done=0
            )
            (other / "metrics.jsonl").write_text(lines[method])
    begin = time.process_time()  # not by the clock, which goes on while others have the cores
    (out,) = write_page([tmp_path / "runs"], tmp_path / "report.html")
    assert time.process_time() - begin < 20  # about 2 s
    assert out.stat().st_size < 10_000_000
    assert len(data_of(out.read_text())["runs"]) == 300


def test_a_page_needs_neither_torch_nor_pyplot() -> None:
    code = "import sys, eipo.study.page; sys.exit(any(m in sys.modules for m in ('torch', 'matplotlib.pyplot')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_scores(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", "eipo", iterations=20)
    run = read_run(path)
    rows = [line.split(",") for line in (path / "episodes.csv").read_text().splitlines()[1:]]
    found = scores_of(run)
    assert found["paper"] == np.median([float(row[3]) for row in rows[-100:]])
    assert found["task"] == np.median([float(row[3]) for row in rows if row[2] == "E"][-100:])
    assert found["late"] == run.column("return")[-2:].mean()  # the last tenth of 20 iterations
    assert told(tmp_path)["score"] == "paper"
    (path / "episodes.csv").unlink()
    assert scores_of(run) == {"paper": None, "task": None, "late": found["late"]}
    assert told(tmp_path)["score"] == "late"
