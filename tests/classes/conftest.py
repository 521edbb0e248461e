"""Models on both heads: Prism's Gaussian one and the cosine head of a trained encoder, each with two stages behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import nodenova as nova


class Case(NamedTuple):
    model: nova.Model  # classes 0, 1 learnt from labels, 2 and 3 discovered
    graph: nova.Graph
    y: np.ndarray  # the true classes
    later: nova.NewTask  # one more class, 4
    method: object


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    labelled = nova.synthetic(nodes=300, classes=5, words=100, words_per_node=10)
    old, (new, later), _ = nova.split_stages(labelled, [0, 1], [[2, 3], [4]])
    made = {}
    for encoder, method in (("prism", nova.Prism()), ("gcn", nova.FrozenKmeans())):
        settings = {} if encoder == "prism" else {"hidden": 16, "epochs": 60}
        model = nova.discover(nova.fit(old, encoder, **settings), new, method)
        made[encoder] = Case(model, labelled.graph, labelled.y, later, method)
    return made


@pytest.fixture(params=["prism", "gcn"])
def case(request: pytest.FixtureRequest, cases: dict[str, Case]) -> Case:
    return cases[request.param]
