"""The colours of a page's variants: those of the figures, made legible on light and on dark paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import matplotlib.colors as mcolors
import numpy as np

LIGHT, DARK = "#ffffff", "#14161c"  # the paper, as in style.css
LEAST = 3.0  # contrast of a line against its paper (WCAG 2.2, 1.4.11)


def luminance(ink: str) -> float:
    """Relative luminance (WCAG)."""
    rgb = np.array(mcolors.to_rgb(ink))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    """From 1 (the same) to 21 (black on white)."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def legible(ink: str, paper: str) -> str:
    """`ink`, moved as little as needed towards black or white until it stands out from the paper."""
    end = np.zeros(3) if luminance(paper) > 0.5 else np.ones(3)
    rgb = np.array(mcolors.to_rgb(ink))
    for share in np.linspace(0, 1, 41):
        moved = mcolors.to_hex(tuple(rgb + (end - rgb) * share))
        if contrast(moved, paper) >= LEAST:
            break
    return moved


def rules(variants: Sequence[dict[str, Any]]) -> str:
    """A class for each variant: .v0, .v1, ..."""
    lines = [
        f".v{i} {{ --c: light-dark({legible(v['colour'], LIGHT)}, {legible(v['colour'], DARK)}); }}"
        for i, v in enumerate(variants)
    ]
    return "\n".join(lines) + "\n"


def heat(steps: int = 40) -> list[str]:
    """The colours of visits, as in maps.py: inferno without its darkest part, which would look like wall."""
    return [mcolors.to_hex(c) for c in matplotlib.colormaps["inferno"](np.linspace(0.22, 0.98, steps))]
