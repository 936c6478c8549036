"""The scores of a run that a page can show."""

from __future__ import annotations

import numpy as np

from ..runs import EPISODES, RunData
from ..scores import PAPERS, Rule, score_of

KINDS = ("paper", "task", "late")  # the first that any run has is shown at first; scores.js says what they are
LATE = 0.1  # share of the run


def scores_of(run: RunData) -> dict[str, float | None]:
    """By kind; None where there is none: runs of long ago did not keep their episodes, or no episode has ended."""
    found: dict[str, float | None] = dict.fromkeys(KINDS)
    if (run.path / EPISODES).is_file():
        for kind, rule in (("paper", PAPERS), ("task", Rule(policy="task"))):
            score = score_of(run, rule)
            found[kind] = score.score if score else None
    steps, earned = run.column("steps"), run.column("return")
    late = earned[(steps > (1 - LATE) * steps[-1]) & np.isfinite(earned)]
    found["late"] = float(late.mean()) if len(late) else None
    return found
