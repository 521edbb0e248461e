"""Arguments of another type than the signature has are refused by one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nodenova as nova
from nodenova.errors import NodenovaError, brief
from nodenova.settings import check_arguments

ODD = (
    None, "a", b"a", -1, 2**70, 0.5, 1j, float("nan"), (), {"a": 1}, object(), int, len,
    np.zeros(3), np.array("a"), np.zeros((2, 2)), pd.DataFrame({"a": [1, 2]}),
    np.datetime64("2000"),
)  # fmt: skip
LABELLED = nova.synthetic(nodes=60, classes=3, words=30, seed=0)
OLD, NEW, EXAM = nova.split(LABELLED, [0, 1])
MODEL = nova.fit(OLD, "gcn", epochs=1, hidden=4)
QUICK: dict[str, Any] = {"epochs": 1, "hidden": 4}

CALLS: dict[str, Callable[[Any], object]] = {
    "split": lambda odd: nova.split(odd, [0]),
    "split old": lambda odd: nova.split(LABELLED, odd),
    "split seed": lambda odd: nova.split(LABELLED, [0, 1], seed=odd),
    "split per_class": lambda odd: nova.split(LABELLED, [0, 1], per_class=odd),
    "split setting": lambda odd: nova.split(LABELLED, [0, 1], setting=odd),
    "fit": lambda odd: nova.fit(odd),
    "fit encoder": lambda odd: nova.fit(OLD, odd, **QUICK),
    "fit seed": lambda odd: nova.fit(OLD, "gcn", seed=odd, **QUICK),
    "fit device": lambda odd: nova.fit(OLD, "gcn", device=odd, **QUICK),
    "fit threads": lambda odd: nova.fit(OLD, "gcn", threads=odd, **QUICK),
    "discover": lambda odd: nova.discover(odd, NEW),
    "discover task": lambda odd: nova.discover(MODEL, odd),
    "discover before": lambda odd: nova.discover(MODEL, NEW, nova.NeverNew(), before=odd),
    "count": lambda odd: nova.count_new(MODEL, odd),
    "grade": lambda odd: nova.grade(MODEL, odd),
    "predict": lambda odd: MODEL.predict(odd),
    "embed": lambda odd: MODEL.embed(odd),
    "task": lambda odd: nova.NewTask(odd, np.array([0]), 1),
    "task ids": lambda odd: nova.NewTask(LABELLED.graph, odd, 1),
    "task num_new": lambda odd: nova.NewTask(LABELLED.graph, np.array([0, 1]), odd),
    "labelled": lambda odd: nova.LabelledGraph(odd, np.zeros(3, int), ("a",)),
    "tasks": lambda odd: nova.tasks_from_labels(odd),
    "load_dataset": lambda odd: nova.load_dataset(odd),
    "class_info": lambda odd: nova.class_info(odd),
    "suggest": lambda odd: nova.suggest(MODEL, odd),
    "recipe": lambda odd: nova.load_graph(nodes="a.csv", edges="b.csv", recipe=odd),
    "random_state": lambda odd: nova.NodeDiscoverer(num_new=1, random_state=odd).fit(odd),
    "mixed": lambda odd: nova.NodeDiscoverer(num_new=1, mixed=odd).fit(np.eye(3), odd),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_refused_by_one_sentence(name: str) -> None:
    sentences = []
    for odd in ODD:
        try:
            CALLS[name](odd)
        except (NodenovaError, TypeError) as error:
            sentences.append(str(error))
    assert len(sentences) >= len(ODD) / 2
    assert [text for text in sentences if len(text) > 400 or len(text.splitlines()) != 1] == []


def test_the_sentence_names_the_argument() -> None:
    with pytest.raises(NodenovaError, match="task must be NewTask, it is a value of type"):
        nova.discover(MODEL, np.zeros(3))  # type: ignore[arg-type]


def test_numbers_of_numpy_and_any_iterable_fit() -> None:
    def draw(count: int, share: float, names: tuple[str, ...], on: bool, word: str | None) -> None:
        values = locals()
        check_arguments(draw, values)

    check_arguments(test_numbers_of_numpy_and_any_iterable_fit, {})
    names: Any = ["a"]
    draw(np.int64(1), np.float32(0.5), names, np.True_, None)  # type: ignore[arg-type]
    draw(True, 1, ("a",), False, "b")
    with pytest.raises(NodenovaError, match=r"word must be str \| None, it is 3"):
        draw(1, 1, (), True, 3)  # type: ignore[arg-type]


def test_a_class_is_named_in_a_message() -> None:
    assert brief(int) == "the class int"


@pytest.mark.parametrize("path", ["x" * 300, "a\0b", "\ud800"])
def test_what_is_no_path_is_refused(path: str) -> None:
    for use in (nova.load_model, nova.open_run, nova.load_graph, MODEL.save):
        with pytest.raises(NodenovaError, match="is no path"):
            use(path)  # type: ignore[operator]


@pytest.mark.parametrize(
    "settings", [{"lr": -1.0}, {"weight_decay": -1.0}, {"hidden": np.zeros(3)}, {"epochs": "a"}]
)
def test_impossible_settings_of_fit_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(NodenovaError, match="must be"):
        nova.fit(OLD, "gcn", **{**QUICK, **settings})


def test_a_message_is_one_short_line() -> None:
    text = str(NodenovaError("a folder\ncalled " + "x" * 10_000 + ": give another"))
    assert text.startswith("a folder called xxx")
    assert text.endswith("xxx: give another")
    assert len(text) == 400


def test_arrays_as_lists_of_columns_and_paths_of_any_length() -> None:
    nodes = pd.DataFrame({"id": [1, 2, 3], "a": [1.0, 2.0, np.inf], "b": [1, 2, 3]})
    edges = pd.DataFrame({"source": [1], "target": [2]})
    loaded = nova.load_graph(nodes=nodes[["id", "b"]], edges=edges, features=np.array(["b"]))
    assert loaded.graph.feature_names == ("b",)
    for options in ({"source": "a" * 5000}, {"nodes": nodes, "text_vectors": "b/" * 3000}):
        with pytest.raises(nova.NodenovaError):
            nova.load_graph(**options)
