"""What the tests of the report page look at in a browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

Open = Callable[..., Page]


def words(page: Page) -> set[str]:
    """What is written in the first chart."""
    return set(page.locator("#curves .plot svg").first.locator("text").all_text_contents())


def tip(page: Page, key: str = "End") -> str:
    """What the first chart says of its end, by keyboard."""
    page.locator(".plot").first.focus()
    page.keyboard.press(key)
    return page.locator(".tip").first.inner_text()
