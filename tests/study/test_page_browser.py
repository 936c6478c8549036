"""The page in headless Chromium: it draws without an error, its controls do what they say, nothing of a run is code."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from looking import Open, tip, words
from made_up import make_run
from playwright.sync_api import Page

from eipo.study.page import write_page
from eipo.study.runs import read_run, read_runs
from eipo.study.scores import PAPERS, Rule, score_of

pytestmark = pytest.mark.browser
SECTIONS = ("curves", "scores", "improvement", "notes", "alpha", "maps", "speed", "settings", "runs")


def count(page: Page, selector: str) -> int:
    return page.locator(selector).count()


def pixels(page: Page, selector: str) -> list[int]:
    """How many different colours each element shows."""
    shot = matplotlib.image.imread(io.BytesIO(page.screenshot(full_page=True)))
    image, counts = np.round(shot[..., :3] * 255) @ [1, 256, 65536], []  # a colour is one number
    for box in [each.bounding_box() for each in page.locator(selector).all()]:
        assert box is not None
        x, y, width, height = (int(box[k]) for k in ("x", "y", "width", "height"))
        counts.append(len(np.unique(image[y : y + height, x : x + width])))
    return counts


def paths(page: Page, selector: str) -> list[str]:
    """What lines are drawn."""
    found = page.locator(selector).evaluate_all("nodes => nodes.map((n) => n.getAttribute('d'))")
    return [str(d) for d in found]


def test_everything_is_drawn(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    assert page.title() == "eipo, en and eo on 2 worlds"
    for section in SECTIONS:
        assert page.locator(f"#{section}").is_visible(), section
        assert len(page.locator(f"#{section}-body").inner_html()) > 100, section
    assert count(page, "#curves .line[d]") == 6
    assert count(page, "#alpha figure") == 6
    assert count(page, "#maps figure") == 3
    assert count(page, "#runs tbody tr") == 18
    figures = pixels(page, "#curves svg[role=img], #alpha svg[role=img], #maps svg[role=img], #speed svg[role=img]")
    assert len(figures) == 2 + 6 + 3 + 2
    assert min(figures) > 12
    assert min(pixels(page, "#settings table, #runs table")) > 12
    assert "Not finished: 0.8 M of 1.28 M steps." in page.inner_text("#notes-body")
    assert "1 run not finished" in page.inner_text("#curves-body")
    assert "1 run not finished" in page.inner_text("#scores-about")


def test_text_of_runs_is_text(tmp_path: Path, open_page: Open) -> None:
    evil = '"\'></script><script>document.title="hacked"</script><img src=x onerror=document.title="hacked">'
    name = "<img src=x onerror=document.title='hacked'>"
    for i in range(2):
        make_run(
            tmp_path / f"{name}{i}",
            "eipo",
            env=f"{evil}{i}",
            iterations=4,
            visits=False,
            settings={"ppo.x": evil + str(i)},
        )
    (out,) = write_page([tmp_path], tmp_path / "out" / "r.html")
    page = open_page(out)
    for chip in ("variants-0", "variants-0", "envs-0", "envs-0"):
        page.click(f"[data-chip={chip}]")
    page.fill("#filter", "img")
    page.wait_for_timeout(50)
    assert page.title() == "eipo on 2 worlds"
    assert count(page, "img") == 0
    assert evil + "0" in page.inner_text("#settings")
    assert evil + "1" in page.inner_text("#runs")
    assert name + "0" in page.inner_text("#runs")


def test_axes(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    drawn: list[str] = []

    def choose(key: str, value: str) -> set[str]:
        nonlocal drawn
        page.select_option(f"#choose-{key}", value)
        before, drawn = drawn, [*paths(page, "#curves .line[d]"), *words(page)]
        assert set(drawn) != set(before), (key, value)
        return words(page)

    assert {"0", "1 M", "environment steps"} <= words(page)
    assert {"20", "40", "iterations"} <= (choose("over", "iteration"))
    assert {"20", "60", "training time (s)"} <= (choose("over", "time"))  # 40 iterations of 1.6 s
    assert {"10", "0.1"} <= (choose("y", "log"))
    assert {"2", "5", "10", "50"} <= (choose("x", "log"))
    choose("smooth", "0")
    choose("smooth", "10")  # of 40 iterations; 2 % would be the least there is, 5 iterations
    choose("centre", "median")
    assert "raw reward" in page.inner_text("#curves-about")
    choose("metric", "alpha")
    assert page.inner_text("#curves-title") == "Alpha, the weight of the constraint"
    assert page.get_by_text("No picked run has this metric here.").count() == 0  # eipo has it in both worlds
    assert page.url.partition("#")[2] == "metric=alpha&over=time&x=log&y=log&centre=median&smooth=10"
    page.click("#reset")
    assert page.url.partition("#")[2] == ""
    assert page.input_value("#choose-over") == "steps"


def test_an_address_that_says_nonsense(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html", "#over=moons&metric=x&y=%3Cb%3E&no-runs=a.99&against=77&part=9&score=")
    assert page.input_value("#choose-over") == "steps"
    assert count(page, "#curves .line[d]") == 6
    assert count(page, "#maps figure") == 3


def test_bands_and_seeds(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    bands = {}
    for band in ("interval", "error", "range", "none"):
        page.select_option("#choose-band", band)
        bands[band] = paths(page, "#curves .band")[-1]
    assert bands["none"] == ""
    assert bands["error"] != bands["range"]
    # One seed is drawn three times in 1 of 27 resamples, which is more than 2.5 %: of three seeds, both are the same.
    assert bands["interval"] == bands["range"]
    assert count(page, "#curves .thin") == 0
    page.select_option("#choose-seeds", "on")
    assert count(page, "#curves .thin") == 18


def test_runs_are_picked(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    chip = page.locator("#variant-chips .chip", has_text="en")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert count(page, "#curves .line[d]") == 4
    assert count(page, "#maps figure") == 2
    assert count(page, "#settings thead th") == 1 + 4
    assert count(page, "tr.out") == 6
    page.click("#env-chips .chip >> text=CartPole")
    assert count(page, "#curves figure") == 1
    again = open_page(study / "report.html", "#" + page.url.partition("#")[2])  # the address keeps it
    assert count(again, "#curves .line[d]") == 2
    again.locator("#variant-chips .chip", has_text="eo").click(modifiers=["Shift"])
    assert "Maze-eo" not in again.inner_text("#curves")
    assert again.locator("#curves .end").all_text_contents() == ["eo"]
    again.click("#env-chips .chip[aria-pressed=true]")
    assert "No run is picked." in again.inner_text("#curves")


def test_the_mean_is_that_of_the_picked_seeds(study: Path, open_page: Open) -> None:
    runs = {run.path.name: run for run in read_runs([study / "runs"])}
    page = open_page(study / "report.html", "#smooth=0&no-variants=1.2&no-envs=0")
    last = [runs[f"Maze-v0-eipo-{seed}"].column("return")[-1] for seed in range(3)]

    def said() -> float:
        found = re.search(r"eipo ([\d.]+)", tip(page))
        assert found
        return float(found[1])

    assert said() == pytest.approx(np.mean(last), rel=2e-3)
    box = page.get_by_label("Show Maze-v0-eipo-1")
    box.uncheck()
    assert said() == pytest.approx(np.mean([last[0], last[2]]), rel=2e-3)
    assert page.inner_text("#runs-count") == "2 of 18 shown"
    page.get_by_label("Show Maze-v0-eipo-1").check()
    assert page.inner_text("#runs-count") == "3 of 18 shown"


def test_scores_and_improvement(study: Path, open_page: Open) -> None:
    runs = [read_run(study / "runs" / f"Maze-v0-eipo-{seed}") for seed in range(3)]
    page = open_page(study / "report.html", "#no-envs=0")
    cell = page.locator("#scores tbody td").first
    for kind, rule in (("paper", PAPERS), ("task", Rule(policy="task"))):
        page.select_option("#choose-score", kind)
        scores = [score.score for run in runs if (score := score_of(run, rule))]
        assert len(scores) == 3
        assert float(cell.inner_text().split(" ")[0]) == pytest.approx(np.mean(scores), rel=2e-3), kind
    late = np.mean([run.column("return")[-4:].mean() for run in runs])  # the last tenth of 40 iterations
    page.select_option("#choose-score", "late")
    assert float(cell.inner_text().split(" ")[0]) == pytest.approx(late, rel=2e-3)

    def heading() -> str:
        return page.locator("#improvement figcaption b").inner_text()

    assert heading() == "P(eipo > ...)"
    assert page.locator("#improvement tbody tr").first.inner_text().split() == [
        "eipo",
        "–",
        *["1.00", "[1.00,", "1.00]"] * 2,
    ]
    page.select_option("#choose-against", label="eo")
    page.select_option("#choose-ties", "whole")
    assert heading() == "P(eo ≥ ...)"
    page.locator("#variant-chips .chip", has_text="eo").click()
    assert heading() == "P(eipo ≥ ...)"
    assert count(page, "#improvement tbody tr") == 2
    page.locator("#variant-chips .chip", has_text="en").click()
    assert "Pick two methods at least." in page.inner_text("#improvement")


def test_the_table_of_runs(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    names = page.locator("#runs tbody th")
    page.click("#sort-3")  # by seed
    assert names.all_inner_texts()[:6] == [
        f"{e}-{m}-0" for e in ("CartPole-v1", "Maze-v0") for m in ("eipo", "en", "eo")
    ]
    page.click("#sort-3")
    assert names.first.inner_text().endswith("-2")
    assert page.locator("th[aria-sort=descending]").inner_text() == "seed ↓"
    page.fill("#filter", "unfinished en")
    assert names.all_inner_texts() == ["CartPole-v1-en-2"]
    assert "0.8 M of 1.28 M" in page.inner_text("#runs tbody").replace("800 k", "0.8 M")
    page.fill("#filter", "maze seed 1")
    page.click("#runs-none")
    assert page.inner_text("#runs-count") == "15 of 18 shown; 3 in this list"
    page.click("#runs-all")
    assert page.inner_text("#runs-count") == "18 of 18 shown; 3 in this list"


def test_maps(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    page.select_option("#choose-maps", "each")
    assert count(page, "#maps figure") == 9
    page.select_option("#choose-part", "0")
    page.select_option("#choose-policy", "E")
    visits = read_run(study / "runs" / "Maze-v0-eo-0").visits
    assert visits is not None
    entered = int((visits.counts[0, visits.policies.index("E")] > 0).sum())  # the first of ten slices
    assert 10 < entered < 394
    says = page.locator("#maps figure", has_text="eo, seed 0").locator(".says").inner_text()
    assert says == f"entered {entered} of 394 cells."
    page.select_option("#choose-part", "each")
    assert count(page, "#maps figure") == 27
