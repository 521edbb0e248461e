"""Names that go with the next release still work, and say what they are called now."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import nodenova as nova
from nodenova.cli import in_todays_words
from nodenova.methods.registry import get_method


@pytest.fixture(scope="module")
def tasks() -> tuple:
    return nova.split(nova.synthetic(nodes=120, classes=4, words=60, seed=0), [0, 1])


@pytest.mark.parametrize(("old", "new"), nova._OLD_NAMES.items())
def test_a_public_name_that_was_changed_is_the_same_thing(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"nodenova.{old} is called nodenova.{new} now"):
        assert getattr(nova, old) is getattr(nova, new)
    assert old not in dir(nova)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Labeled"):
        nova.Labeled  # noqa: B018


def test_attributes_of_a_model_that_were_renamed(tasks) -> None:
    model = nova.fit(tasks[0])
    for old, new in (("sizes", "classes_per_stage"), ("columns", "column_class_ids")):
        with pytest.warns(DeprecationWarning, match=f"Model.{old} is called Model.{new} now"):
            assert getattr(model, old) == getattr(model, new)
    with pytest.warns(DeprecationWarning, match="Model.prototypes is called Model.memory now"):
        assert len(model.prototypes) == 2
    graph = tasks[0].graph
    with pytest.warns(DeprecationWarning, match="Graph.around is called Graph.k_hop_subgraph now"):
        part, places = graph.around(np.array([3]), 1)
    again, same = graph.k_hop_subgraph(np.array([3]), 1)
    assert part.num_nodes == again.num_nodes
    assert np.array_equal(places, same)


def test_arguments_that_were_renamed(tasks) -> None:
    model, graph = nova.fit(tasks[0]), tasks[0].graph
    with pytest.warns(DeprecationWarning, match="unsure_below.* is called min_confidence now"):
        assert np.array_equal(
            model.predict(graph, unsure_below=0.9), model.predict(graph, min_confidence=0.9)
        )
    with pytest.warns(DeprecationWarning, match="unsure_below"):
        assert model.class_info(graph, unsure_below=0.9) == model.class_info(
            graph, min_confidence=0.9
        )
    with pytest.warns(DeprecationWarning, match="unsure_below is called min_confidence now"):
        assert nova.NodeDiscoverer(unsure_below=0.3).min_confidence == 0.3


def test_the_words_of_split_that_were_renamed() -> None:
    labelled = nova.synthetic(nodes=120, classes=4, words=60, seed=0)
    with pytest.warns(DeprecationWarning, match=r"split\(visibility=...\) is called setting now"):
        old, _, _ = nova.split(labelled, [0, 1], visibility="inductive")
    with pytest.warns(DeprecationWarning, match="setting=induced is called setting=inductive now"):
        same, _, _ = nova.split(labelled, [0, 1], setting="induced")
    assert old.graph.num_nodes == same.graph.num_nodes < 120


@pytest.mark.parametrize(
    ("name", "settings", "now"),
    [
        ("taught", {"student": "sage"}, nova.DistilledGNN(encoder="sage")),
        (
            "ncl",
            {"joint": "strict", "neighbours": "3"},
            nova.NCL(new_rows="untrained", neighbors=3),
        ),
        ("frozen_kmeans", {"joint": "strict"}, nova.FrozenKMeans(new_rows="untrained")),
        ("prism", {"groupings": "2", "relearn": "false"}, nova.Prism(n_resamples=2, refit=False)),
    ],
)
def test_methods_and_settings_that_were_renamed(name: str, settings: dict, now: object) -> None:
    with pytest.warns(DeprecationWarning, match="is called"):
        assert get_method(name, settings) == now


def test_options_that_were_renamed(capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "run",
        "--unsure-below",
        "0.5",
        "--visibility",
        "induced",
        "--visibility=induced",
        "--seed",
        "1",
    ]
    assert in_todays_words(given) == [
        *(
            "run",
            "--min-confidence",
            "0.5",
            "--setting",
            "inductive",
            "--setting=inductive",
            "--seed",
            "1",
        )
    ]
    said = capsys.readouterr().err
    assert "--unsure-below is called --min-confidence now" in said
    assert said.count("--visibility is called --setting now") == 2
    assert in_todays_words(["a", "--name", "induced", "--x=induced"]) == [
        "a",
        "--name",
        "induced",
        "--x=induced",
    ]


def test_an_old_option_runs(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    from nodenova.cli import main

    path = str(tmp_path / "missing")
    monkeypatch.setattr(
        sys, "argv", ["nodenova", "predict", path, "--unsure-below", "0.9", "--out", "x.csv"]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2  # the folder is missing; the option was understood
