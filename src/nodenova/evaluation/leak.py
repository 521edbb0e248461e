"""Does a method see labels that it must not see? Scramble them and look whether anything changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nodenova.data.answers import Labelled
from nodenova.data.splits import split, with_split
from nodenova.discovery import discover
from nodenova.fitting import fit
from nodenova.methods import Method
from nodenova.model import Model


def scrambled(labelled: Labelled, old: Sequence[int], seed: int = 0) -> Labelled:
    """The same graph and old labels, with the labels of the new nodes dealt out anew among the new nodes."""
    rng = np.random.default_rng([seed, 77])
    new = np.flatnonzero((labelled.y >= 0) & ~np.isin(labelled.y, list(old)))
    y = labelled.y.copy()
    y[new] = y[rng.permutation(new)]
    return replace(labelled, y=y)


def find_leak(method: Method, labelled: Labelled, old: Sequence[int], encoder: str = "gcn", epochs: int = 20) -> str | None:
    """None if the method gives bit-identical predictions whatever the new nodes' labels are, else what gave it away."""
    labelled = with_split(labelled)

    def outcome(answers: Labelled) -> Model:
        first, new, _ = split(answers, old)
        settings: dict[str, Any] = {} if encoder == "prism" else {"epochs": epochs}
        return discover(fit(first, encoder, **settings), new, method)

    a, b = outcome(labelled), outcome(scrambled(labelled, old))
    for what in ("predict_proba", "embed"):
        ours, theirs = getattr(a, what)(labelled.graph), getattr(b, what)(labelled.graph)
        if not np.array_equal(ours, theirs):
            nodes = int((ours != theirs).any(axis=1).sum())
            return f"{what} changed on {nodes} of {len(ours)} nodes when the labels of new nodes were scrambled"
    return None
