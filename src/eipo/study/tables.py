"""Tables as text, CSV, Markdown and LaTeX, from the same cells."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from .statistics import Estimate


@dataclass(frozen=True)
class Spread:
    """The seeds of a method on a task."""

    mean: float
    std: float  # of the seeds, with n - 1; NaN for one
    seeds: int


Cell: TypeAlias = str | int | float | Estimate | Spread | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under column names. The first column names the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)  # (row, column) of cells to stress

    def text(self) -> str:
        """Aligned columns."""
        cells = [list(self.columns), *([as_text(c) for c in row] for row in self.rows)]
        wide = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, wide, strict=True)))
            for row in cells
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    def csv(self) -> str:
        """Numbers in full. An estimate has columns for its ends, a spread for its deviation and number of seeds."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        kinds = [next((type(row[i]) for row in self.rows if row[i] is not None), str) for i in range(len(self.columns))]
        names = [n + end for n, kind in zip(self.columns, kinds, strict=True) for end in _PARTS.get(kind, ("",))]
        writer.writerow(names)
        for row in self.rows:
            writer.writerow([v for cell, kind in zip(row, kinds, strict=True) for v in _parts(cell, kind)])
        return out.getvalue()

    def markdown(self) -> str:
        """A GitHub table under its title in bold."""
        head = f"| {' | '.join(_escaped(c, '|') for c in self.columns)} |"
        rule = "|".join(["", "---", *["---:"] * (len(self.columns) - 1), ""])
        lines = [
            f"| {' | '.join(self._cell(r, i, '**{}**', '|') for i in range(len(row)))} |"
            for r, row in enumerate(self.rows)
        ]
        return "\n".join([f"**{self.title}**", "", head, rule, *lines, ""])

    def latex(self) -> str:
        """A tabular, for \\usepackage{booktabs}."""
        special = "&%$#_{}"
        lines = [
            " & ".join(self._cell(r, i, r"\textbf{{{}}}", special).replace("±", r"$\pm$") for i in range(len(row)))
            + r" \\"
            for r, row in enumerate(self.rows)
        ]
        head = " & ".join(_escaped(c, special) for c in self.columns).replace(">=", r"$\geq$").replace(">", "$>$")
        return "\n".join([
            f"% {self.title}", rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}", r"\toprule", head + r" \\",
            r"\midrule", *lines, r"\bottomrule", r"\end{tabular}", "",
        ])  # fmt: skip

    def _cell(self, row: int, column: int, stress: str, special: str) -> str:
        text = _escaped(as_text(self.rows[row][column]), special)
        return stress.format(text) if (row, column) in self.bold else text

    def show(self, console: Console) -> None:
        """Print it. Where it is wider than the terminal, the columns follow one another in parts."""
        cells = [[as_text(c) for c in row] for row in self.rows]
        wide = [max(map(len, [name, *(row[i] for row in cells)])) + 2 for i, name in enumerate(self.columns)]
        rest, title = list(range(1, len(self.columns))), self.title
        while rest:
            now, used = [0], wide[0]
            while rest and (len(now) == 1 or used + wide[rest[0]] <= console.width):
                used += wide[rest[0]]
                now.append(rest.pop(0))
            part = RichTable(box=None, padding=(0, 2, 0, 0))
            for i in now:
                part.add_column(Text(self.columns[i], style="dim"), justify="left" if i == 0 else "right", no_wrap=True)
            for r, row in enumerate(cells):
                part.add_row(*(Text(row[i], style="bold" if (r, i) in self.bold else "") for i in now))
            console.print(Text(title, style="bold"))
            console.print(part)
            console.print()
            title = f"{self.title} (continued)"


_PARTS: dict[type, tuple[str, ...]] = {Estimate: ("", "_low", "_high"), Spread: ("", "_std", "_seeds")}


def _parts(cell: Cell, kind: type) -> list[str | int | float]:
    if isinstance(cell, Estimate):
        found: list[float] = [cell.value, cell.low, cell.high]
    elif isinstance(cell, Spread):
        found = [cell.mean, cell.std, cell.seeds]
    elif cell is None:
        return [""] * len(_PARTS.get(kind, ("",)))
    else:
        return [cell]
    return ["" if math.isnan(v) else v for v in found]


def as_text(cell: Cell) -> str:
    """A cell as people read it: about four digits are enough."""
    if cell is None:
        return "-"
    if isinstance(cell, Estimate):
        if math.isnan(cell.low):
            return number(cell.value)
        value, low, high = numbers(cell.value, cell.low, cell.high)
        return f"{value} [{low}, {high}]"
    if isinstance(cell, Spread):
        return number(cell.mean) if math.isnan(cell.std) else " ± ".join(numbers(cell.mean, cell.std))
    return number(cell) if isinstance(cell, float) else str(cell)


def number(x: float) -> str:
    return numbers(x)[0]


def numbers(*together: float) -> list[str]:
    """With as many digits after the point as the largest needs: two, three if it is very small, none if it is large."""
    most = max(map(abs, together))
    digits = 3 if 0 < most < 0.095 else 2 if most < 99.95 else 1 if most < 9999.5 else 0
    return [f"{round(x, digits) + 0.0:.{digits}f}" for x in together]  # + 0.0: no minus before a zero


def _escaped(text: str, special: str) -> str:
    return "".join("\\" + c if c in special else c for c in text)
