"""The same cells as text, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from eipo.study.statistics import Estimate
from eipo.study.tables import Spread, Table, number

TABLE = Table(
    "Scores & more",
    ["task_1", "eo", "P > 0.5"],
    [
        ["A|B", Spread(1234.5, 6.78, 3), Estimate(0.654, 0.62, 0.6749)],
        ["C_D", Spread(2.0, math.nan, 1), Estimate(0.25, math.nan, math.nan)],
        ["E", None, None],
    ],
    frozenset({(0, 1)}),
)


def test_text() -> None:
    assert TABLE.text().splitlines() == [
        "Scores & more",
        "task_1            eo            P > 0.5",
        "A|B     1234.5 ± 6.8  0.65 [0.62, 0.67]",
        "C_D             2.00               0.25",
        "E                  -                  -",
    ]


def test_csv_has_every_number_in_full() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert rows[0] == {
        "task_1": "A|B", "eo": "1234.5", "eo_std": "6.78", "eo_seeds": "3",
        "P > 0.5": "0.654", "P > 0.5_low": "0.62", "P > 0.5_high": "0.6749",
    }  # fmt: skip
    assert (rows[1]["eo_std"], rows[1]["eo_seeds"], rows[1]["P > 0.5_low"]) == ("", "1", "")
    assert set(rows[2].values()) == {"E", ""}


def test_markdown() -> None:
    assert TABLE.markdown().splitlines() == [
        "**Scores & more**",
        "",
        "| task_1 | eo | P > 0.5 |",
        "|---|---:|---:|",
        r"| A\|B | **1234.5 ± 6.8** | 0.65 [0.62, 0.67] |",
        "| C_D | 2.00 | 0.25 |",
        "| E | - | - |",
    ]


def test_latex() -> None:
    assert TABLE.latex().splitlines() == [
        "% Scores & more",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"task\_1 & eo & P $>$ 0.5 \\",
        r"\midrule",
        r"A|B & \textbf{1234.5 $\pm$ 6.8} & 0.65 [0.62, 0.67] \\",
        r"C\_D & 2.00 & 0.25 \\",
        r"E & - & - \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize("width", [30, 40, 200])
def test_a_terminal_loses_nothing(width: int) -> None:
    console = Console(width=width, color_system=None)
    with console.capture() as shown:
        TABLE.show(console)
    lines = shown.get().splitlines()
    assert all(len(line) <= width for line in lines)
    for text in ("1234.5 ± 6.8", "0.65 [0.62, 0.67]", "C_D", "P > 0.5"):
        assert text in shown.get()
    assert sum("A|B" in line for line in lines) == (1 if width == 200 else 2)  # each part has its row names


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0.00"), (-0.001, "-0.001"), (-0.00001, "0.000"), (0.05, "0.050"), (0.5, "0.50"), (99.96, "100.0"),
     (9999.6, "10000"), (-12243.3, "-12243"), (149710.8, "149711"), (math.inf, "inf")],
)  # fmt: skip
def test_numbers(x: float, text: str) -> None:
    assert number(x) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_near_what_it_stands_for(x: float) -> None:
    assert float(number(x)) == pytest.approx(x, rel=0.01, abs=0.0051)
