"""A small reviewed model whose names all try to be markup."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nodenova as nova
from nodenova.report.story import Story, tell
from nodenova.storage import weights_digest

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="session")
def hostile() -> tuple[nova.Model, nova.Labelled]:
    """A model that found two classes, and the graph: nodes, features and classes have names that try to be markup."""
    plain = nova.synthetic(nodes=240, classes=5, words=80, words_per_node=8, homophily=0.45, topic_share=0.25)
    ids = np.array([HOSTILE, "</script><img src=x onerror=alert(2)>", *(f"node & {i}" for i in range(2, 240))])
    words = tuple(f"<b>word {i}</b>" for i in range(80))
    names = ("<i>one</i>", "two & 'more' \"quoted\"", "three", "four", "five")
    labelled = replace(plain, class_names=names, graph=replace(plain.graph, node_ids=ids, feature_names=words))
    old, new, _ = nova.split(labelled, [0, 1])
    return nova.discover(nova.fit(old, "prism"), new, nova.Prism()), labelled


@pytest.fixture(scope="session")
def story(hostile: tuple[nova.Model, nova.Labelled]) -> Story:
    model, labelled = hostile
    return tell(
        model,
        labelled.graph,
        title=f"A {HOSTILE}",
        model_hash=weights_digest(model),
        answers=(labelled.y, labelled.class_names),
        facts={"Data": "</dl><script>alert(3)</script>"},
        versions={"numpy": "<u>1</u>"},
    )
