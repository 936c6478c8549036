"""Who reads the page how: by keyboard, in the dark, on a phone, on paper, from a saved figure; and its arithmetic."""

from __future__ import annotations

import re
import xml.dom.minidom
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from looking import Open, tip, words
from made_up import ITERATION, make_run
from playwright.sync_api import Browser

from eipo.study.figures import average
from eipo.study.page import HERE, write_page
from eipo.study.page.colours import contrast
from eipo.study.runs import curve, read_runs
from eipo.study.statistics import improvement

pytestmark = pytest.mark.browser


def test_keyboard_and_names(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html")
    assert tip(page, "Home").startswith("32,000 environment steps") or "0 environment steps" in tip(page, "Home")
    page.keyboard.press("ArrowRight")
    first = page.locator(".tip").first.inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator(".tip").first.inner_text() != first
    page.keyboard.press("Escape")
    assert page.locator(".tip").first.is_hidden()
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, svg[role=img], [tabindex='0']")]
        .filter((n) => !(n.getAttribute("aria-label") || n.labels?.[0]?.innerText || n.innerText || "").trim())
        .map((n) => n.outerHTML.slice(0, 90))"""
    )
    assert unnamed == []
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((n) => n.id)")
    assert len(ids) == len(set(ids))
    page.locator("#choose-over").focus()
    page.keyboard.press("i")  # a select goes by the first letter
    assert "iterations" in words(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(study: Path, open_page: Open, scheme: str) -> None:
    page = open_page(study / "report.html", color_scheme=scheme)
    pairs = page.evaluate(
        """() => ["body", ".quiet", ".tile span", ".chip", ".save", ".late", "footer li", ".legend li"].map((name) => {
        let node = document.querySelector(name), ink = getComputedStyle(node).color;
        for (; node; node = node.parentElement) {
          const paper = getComputedStyle(node).backgroundColor;
          if (paper !== "rgba(0, 0, 0, 0)") return [name, ink, paper];
        }
        return [name, ink, "rgb(0, 0, 0)"]; })"""
    )

    def hexed(rgb: str) -> str:
        return "#" + "".join(f"{int(v):02x}" for v in re.findall(r"\d+", rgb)[:3])

    assert not [(name, ink, paper) for name, ink, paper in pairs if contrast(hexed(ink), hexed(paper)) < 4.5]
    assert (scheme == "dark") == (pairs[0][2] == "rgb(20, 22, 28)")
    page.select_option("#choose-theme", "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_phone(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html", viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.locator("#choose-over").is_hidden()
    page.tap("#controls summary")
    page.select_option("#choose-over", "time")
    assert "training time (s)" in words(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    ends, next_row = page.evaluate(
        """() => [".heat b", ".heat .key"].map((name) => [...document.querySelectorAll(name)]
        .map((n) => n.getBoundingClientRect())).map((boxes, i) => i
        ? Math.min(...boxes.map((b) => b.top)) : Math.max(...boxes.map((b) => b.bottom)))"""
    )
    assert next_row >= ends  # the scale's numbers, and what stands below them


def test_paper(study: Path, open_page: Open) -> None:
    page = open_page(study / "report.html", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("#controls").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    width = page.locator("#curves .plot svg").first.get_attribute("width")
    assert width is not None
    assert int(width) < 360  # two beside each other on A4
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#curves .plot svg").first.get_attribute("width") != width
    assert len(page.pdf(format="A4")) > 20_000


def test_figures_are_saved(study: Path, open_page: Open, tmp_path: Path) -> None:
    page = open_page(study / "report.html")
    for kind, figure in (("SVG", "#curves"), ("PNG", "#curves"), ("SVG", "#maps"), ("PNG", "#maps")):
        with page.expect_download() as download:
            page.locator(f"{figure} .save", has_text=kind).first.click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        assert file.suffix == f".{kind.lower()}"
        if kind == "SVG":
            drawing = xml.dom.minidom.parse(str(file))
            assert len(drawing.getElementsByTagName("path")) > 3
            assert "var(" not in file.read_text()
        else:
            image = matplotlib.image.imread(file)
            assert min(image.shape[:2]) > 200
            assert len(np.unique(np.round(image[..., :3] * 255) @ [1, 256, 65536])) > 12


def test_its_arithmetic_is_that_of_the_figures(study: Path, browser: Browser) -> None:
    """Smoothing as runs.curve has it; the mean as figures.average has it; quantiles as NumPy has them."""
    runs = [run for run in read_runs([study / "runs"]) if run.path.name.startswith("Maze-v0-eipo")]
    page = browser.new_page()
    lists = [{"x": x.tolist(), "y": y.tolist()} for x, y in (curve(run, "return") for run in runs)]
    raw = [{"steps": run.column("steps").tolist(), "y": run.column("return").tolist()} for run in runs]
    page.add_script_tag(content=f"const D = {{}}, S = {{}};\n{(HERE / 'numbers.js').read_text()}")
    width = max(0.02 * runs[0].config["steps"], 4 * ITERATION)
    for one, by_python in zip(raw, lists, strict=True):
        smooth = page.evaluate(
            "([x, y, w]) => [...runningMean(x, runningMean(x, y, w), w)]", [one["steps"], one["y"], width]
        )
        np.testing.assert_allclose(smooth, by_python["y"])
    lists[0] = {key: values[:25] for key, values in lists[0].items()}  # one that has not come as far
    band = page.evaluate("(lines) => together(lines, {centre: 'mean', band: 'error', points: 33})", lists)
    x, centre, _, _ = average([(np.array(c["x"]), np.array(c["y"])) for c in lists], points=33)
    np.testing.assert_allclose(band["x"], x)
    np.testing.assert_allclose(band["y"], centre)
    values = np.random.default_rng(0).normal(size=11)
    for q in (0.0, 0.025, 0.5, 0.9, 1.0):
        assert page.evaluate("([v, q]) => quantile(ascending(v), q)", [values.tolist(), q]) == pytest.approx(
            np.quantile(values, q)
        )
    # 11 // 4 = 2 are cut off at either end.
    assert page.evaluate("(v) => CENTRES.iqm(v)", values.tolist()) == pytest.approx(np.sort(values)[2:-2].mean())
    ends = page.evaluate("(v) => interval(v, 'mean', 'interval')", values.tolist())
    drawn = np.random.default_rng(1).choice(values, (20_000, 11)).mean(1)
    np.testing.assert_allclose(
        ends, np.quantile(drawn, [0.025, 0.975]), atol=0.1
    )  # their Monte Carlo error: about 0.03
    page.close()


@pytest.mark.parametrize("strict", [True, False])
def test_its_probability_of_improvement_is_that_of_eipo_study(browser: Browser, strict: bool) -> None:
    """On random scores with many ties, and seeds and tasks that are not the same in number."""
    rng = np.random.default_rng(5)
    x = {task: rng.integers(0, 5, size).tolist() for task, size in (("a", 5), ("b", 3), ("c", 4), ("only x", 2))}
    y = {task: rng.integers(0, 4, size).tolist() for task, size in (("only y", 2), ("c", 6), ("b", 2), ("a", 5))}
    common = ("a", "b", "c")
    expected = improvement({t: x[t] for t in common}, {t: y[t] for t in common}, strict)
    page = browser.new_page()
    scripts = "\n".join((HERE / f"{name}.js").read_text() for name in ("numbers", "scores"))
    page.add_script_tag(content=f"const D = {{}}, S = {{}};\n{scripts}")
    found = page.evaluate(
        "([x, y, tie]) => improvement(new Map(Object.entries(x)), new Map(Object.entries(y)), tie, 4000)",
        [x, y, 0.5 if strict else 1],
    )
    page.close()
    assert found["worlds"] == 3
    assert found["value"] == pytest.approx(expected.value)
    assert [found["low"], found["high"]] == pytest.approx([expected.low, expected.high], abs=0.02)  # Monte Carlo
    assert 0.1 < expected.value < 0.95


def test_a_run_with_nothing_but_steps(tmp_path: Path, open_page: Open) -> None:
    path = make_run(tmp_path / "r", "eo", iterations=1, visits=False)
    (path / "metrics.jsonl").write_text('{"iteration": 1, "steps": 32000}\n')
    (path / "episodes.csv").unlink()
    (out,) = write_page([path], tmp_path / "r.html")
    page = open_page(out)
    assert "No picked run has this metric here." in page.inner_text("#curves")
    assert "No picked run has such a score." in page.inner_text("#scores")
