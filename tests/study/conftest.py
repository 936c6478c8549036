"""A browser, and a study to look at in it, for the tests of the report page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from looking import Open
from made_up import make_run
from playwright.sync_api import Browser, Page, sync_playwright

from eipo.study.page import write_page

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests here; each has a fresh profile."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail(f"none of {', '.join(NAMES)} is installed: install one, or leave these tests out: -m 'not browser'")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """open_page(file): in a window of its own. What the console complains of, and any request, fails the test."""
    complaints: list[str] = []
    contexts = []

    def go(file: Path, address: str = "", **context: Any) -> Page:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context))
        contexts[-1].set_default_timeout(120_000)  # machines can be busy
        page = contexts[-1].new_page()
        page.on("console", lambda m: complaints.append(m.text))
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:")) or complaints.append(r.url))
        page.goto(f"file://{file}{address}")
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two worlds, three methods, three seeds, one run not finished; and its page."""
    root = tmp_path_factory.mktemp("study")
    for env in ("eipo/Maze-v0", "CartPole-v1"):
        for method in ("eipo", "en", "eo"):
            for seed in range(3):
                done = 25 if (env, method, seed) == ("CartPole-v1", "en", 2) else None
                name = f"{env.split('/')[-1]}-{method}-{seed}"
                make_run(root / "runs" / name, method, seed, env=env, iterations=40, done=done, visits="Maze" in env)
    write_page([root / "runs"], root / "report.html")
    return root
