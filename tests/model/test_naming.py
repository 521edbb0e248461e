"""Automatic names: words first, nothing that only a machine says."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import nodenova as nova
from nodenova.model.info import characteristic

GROUPS = np.repeat([0, 1], 40)


def names_of(columns: dict[str, np.ndarray]) -> list[str]:
    x = sp.csr_array(np.stack(list(columns.values()), axis=1).astype(np.float32))
    edges = np.zeros((2, 0), dtype=np.int64)
    graph = nova.Graph.of(x, edges, feature_names=tuple(columns))
    return characteristic(graph, GROUPS, 2, 10)[1]


def mostly(group: int, seed: int) -> np.ndarray:
    """A word that most nodes of a group have, and few others."""
    rng = np.random.default_rng(seed)
    return np.where(group == GROUPS, rng.random(80) < 0.8, rng.random(80) < 0.1)


def test_words_go_before_categories_and_these_before_numbers() -> None:
    first = names_of(
        {
            "installed_size>=555": GROUPS == 0,
            "maintainer=other": GROUPS == 0,
            "maintainer=Debian Multimedia": mostly(0, 1),
            "for": GROUPS == 0,
            "audio": mostly(0, 2),
            "x": mostly(1, 3),
        }
    )[0]
    assert first == "audio, Debian Multimedia, high installed_size"


def test_parts_of_vectors_are_named_only_where_there_is_nothing_else() -> None:
    noise = np.random.default_rng(0).normal(size=(3, 80))
    parts = {f"emb[{i}]": 9.0 * (GROUPS == 0) + noise[i] for i in range(3)}
    both = names_of({**parts, "audio": mostly(0, 2)})
    assert both[0] == "audio"
    assert names_of(parts)[0].startswith("high emb[")
