"""Many runs: their scores, what these say, and the paper's beside them. docs/statistics.md is the guide.

>>> from eipo import study
>>> scores, notes = study.read_scores(["runs"])
>>> study.improvement({"Maze": [420.0, 410.0]}, {"Maze": [0.0, 415.0]})
"""

from .comparison import Comparison, compare, write_comparison
from .comparison_tables import Study
from .episodes import Episodes, last_episodes, read_episodes
from .normalize import Known, normalized, reference_scores
from .paper import atari_scores, game_of, lambda_tuning, rnd_dominating_games, share_bounds
from .runs import RunData, read_run, read_runs
from .scores import Rule, Score, read_scores, read_table, write_table
from .statistics import (
    Bootstrap,
    Estimate,
    Profile,
    improvement,
    iqm,
    mean,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    share_at_least,
)
from .tables import Table

__all__ = [
    "Bootstrap", "Comparison", "Episodes", "Estimate", "Known", "Profile", "Rule", "RunData", "Score", "Study", "Table",
    "atari_scores", "compare", "game_of", "improvement", "iqm", "lambda_tuning", "last_episodes", "mean", "median",
    "normalized", "optimality_gap", "performance_profile", "probability_of_improvement", "read_episodes", "read_run",
    "read_runs", "read_scores", "read_table", "reference_scores", "rnd_dominating_games", "share_at_least",
    "share_bounds", "write_comparison", "write_table",
]  # fmt: skip
