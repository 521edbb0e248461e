"""Rows of results: summaries over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import fmean, stdev
from typing import Any

import numpy as np

from nodenova.evaluation.metrics import COLLAPSE
from nodenova.experiments.run import Row

CELL = ("dataset", "method", "encoder", "num_old", "num_new")


def mean_std(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean and sample standard deviation over the values there are, and how many.

    A score of nothing (a class without test nodes) is None or nan and does not count; a single value has no spread.
    """
    there = [value for value in values if value is not None and isfinite(value)]
    return {
        "mean": fmean(there) if there else None,
        "std": stdev(there) if len(there) > 1 else None,
        "n": len(there),
    }


def score_of(row: Row, score: str, matching: str = "block") -> float | None:
    """A score of a finished run, whichever place of the row it stands in; None where there was nothing to measure.

    What rows of earlier versions do not say but their confusion matrix does is read off that.
    """
    if score in COLLAPSE:
        value = row[score] if score in row else COLLAPSE[score](np.array(row["confusion"]), row["num_old"])
    elif score == "new_all":  # 100 where every discovered class is used, else 0: its mean is a share of the seeds
        used, found = score_of(row, "new_used"), row["predicted_sizes"][-1]
        value = None if used is None else 100.0 * (used == found)
    else:
        value = row[score] if score in ("aa", "af") else row["scores"][matching].get(score)
    return value if value is not None and isfinite(value) else None


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Means over the seeds of one cell: {matching: {score: {mean, std, n}}}, and aa, af, seconds likewise."""
    if not rows:
        return {}
    first = rows[0]
    for row in rows:
        if any(row[key] != first[key] for key in CELL):
            raise ValueError(f"a summary is over the seeds of one cell, these rows differ in {CELL}")
    scores = {
        matching: {score: mean_std([row["scores"][matching].get(score) for row in rows]) for score in values}
        for matching, values in first["scores"].items()
    }
    return {
        **{key: first[key] for key in CELL},
        "split": first["split"],
        "visibility": first["visibility"],
        "seeds": [row["seed"] for row in rows],
        "scores": scores,
        **{score: mean_std([score_of(row, score) for row in rows]) for score in ("aa", "af", *COLLAPSE)},
        "seconds": {phase: mean_std([row["seconds"][phase] for row in rows]) for phase in first["seconds"]},
    }
