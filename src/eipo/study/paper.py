"""The paper's tables, which ship with the package (data/), and what can be said from them.

Chen, Hong, Pajarinen, Agrawal: Redeeming Intrinsic Rewards via Constrained Optimization, NeurIPS 2022.
"""

from __future__ import annotations

import csv
import functools
import re
from importlib import resources

METHODS = {"EO": "eo", "RND": "rnd", "EN": "en", "DY": "dy", "DC": "dc", "EIPO": "eipo"}  # its names, and ours
ITERATION = 128 * 128  # steps
ITERATIONS = {"MontezumaRevenge": 6000}  # all other games: 3000


def read_data(name: str) -> list[dict[str, str]]:
    """The rows of a table that ships with the package."""
    text = (resources.files(__package__) / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@functools.cache
def _atari_scores() -> dict[str, dict[str, float]]:
    rows = read_data("atari_scores.csv")
    return {method: {row["game"]: float(row[method]) for row in rows} for method in METHODS}


def atari_scores() -> dict[str, dict[str, float]]:
    """Mean score of each method in 61 Atari games, rounded to a tenth as printed: {method: {game: score}}."""
    return {method: dict(scores) for method, scores in _atari_scores().items()}


def rnd_dominating_games() -> list[str]:
    """The 30 games that the paper takes for those where RND beats PPO (its table has Bowling the other way)."""
    return [row["game"] for row in read_data("rnd_dominating_games.csv")]


def lambda_tuning() -> dict[str, dict[str, float]]:
    """Weights of the bonus tried in Section 4.3: {game: {size of the task reward beside the bonus: lambda}}."""
    rows = read_data("lambda_tuning.csv")
    return {row.pop("game"): {size: float(lam) for size, lam in row.items()} for row in rows}


def steps_of(game: str) -> int:
    """Environment steps that the paper trained for."""
    return ITERATIONS.get(game, 3000) * ITERATION


def game_of(env: str) -> str | None:
    """The game of the paper's table that a Gymnasium id names (ALE/Venture-v5: Venture), or None."""
    found = re.fullmatch(r"(?:\w+:)?(?:ALE/)?(\w+?)(?:NoFrameskip|Deterministic)?-v\d+", env)
    return found[1] if found and found[1] in _atari_scores()["EO"] else None


def share_bounds(a: str, b: str) -> tuple[float, float]:
    """R(A, B), the share of games where the mean of A is at least that of B: its least and its greatest value.

    Printed means are rounded to a tenth, so where two are equal the table does not say which method was ahead. A's
    least share counts those games for B, its greatest counts them for A as ties.
    """
    x, y = _atari_scores()[a], _atari_scores()[b]
    ahead, tied = sum(x[g] > y[g] for g in x), sum(x[g] == y[g] for g in x)
    return ahead / len(x), (ahead + tied) / len(x)
