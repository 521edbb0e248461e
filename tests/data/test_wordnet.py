"""The WordNet graph that ships, and the script that made it, on a few synsets of our own."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import nodenova as nova
from nodenova.io.dataset_table import DATASETS
from nodenova.io.datasets import load_dataset

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "src/nodenova/data/shipped"
MAKER = ROOT / "tools/make_wordnet.py"


@pytest.fixture(scope="module")
def wordnet() -> nova.LabelledGraph:
    return load_dataset("wordnet")


def test_its_counts_are_those_it_is_listed_with(wordnet) -> None:
    listed = DATASETS["wordnet"]
    graph = wordnet.graph
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (
        listed.nodes,
        listed.edges,
        listed.features,
    )
    assert wordnet.num_classes == listed.classes == 10
    assert wordnet.class_names[listed.num_old :] == ("plant", "food", "location")
    assert np.bincount(wordnet.y).min() >= 990
    assert not wordnet.has_split


def test_it_is_words_that_people_can_read(wordnet) -> None:
    graph, names = wordnet.graph, wordnet.graph.node_ids.tolist()
    assert sp.issparse(graph.x)
    assert {"dog", "rose", "cheese", "Paris"} <= set(names)
    assert all(re.fullmatch("[a-z]{3,}", word) for word in graph.feature_names)
    assert set(np.unique(graph.x.data)) == {
        1.0
    }  # who has which word, no order: no gloss can be read off it
    assert wordnet.class_names[wordnet.y[names.index("dog")]] == "animal"
    assert names == sorted(
        names, key=lambda name: re.sub(r" \(\d+\)$", "", name).lower()
    )  # an order by class would be a leak


def test_relations_stay_mostly_within_a_class(wordnet) -> None:
    a, b = wordnet.y[wordnet.graph.edge_index]
    assert (a == b).mean() > 0.9
    assert (wordnet.graph.adjacency.sum(axis=1) == 0).mean() < 0.03


def test_it_is_the_file_its_source_note_names_and_its_licence_is_beside_it() -> None:
    (recorded,) = re.findall(
        r"# wordnet\.npz\n.*?\b([0-9a-f]{64})\b", (SHIPPED / "SOURCE.md").read_text(), re.DOTALL
    )
    content = (SHIPPED / "wordnet.npz").read_bytes()
    assert hashlib.sha256(content).hexdigest() == recorded
    assert len(content) < 1_500_000
    licence = (SHIPPED / "WORDNET-LICENSE").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert "LICENSEE agrees to preserve same" in licence


def test_it_needs_no_data_root_even_where_one_is_set(tmp_path: Path) -> None:
    assert load_dataset("wordnet", tmp_path).graph.num_nodes == 9997
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_prism_finds_plants_food_and_places(wordnet) -> None:
    old, new, exam = nova.split(wordnet, range(7))
    model = nova.discover(nova.fit(old), new)
    graded = nova.grade(model, exam)
    assert graded.scores()["h"] > 75
    pairs = zip(model.class_info(wordnet.graph), graded.matched(), strict=True)
    called = {wordnet.class_names[true]: info.auto_name for info, true in pairs}
    assert "plant" in called["plant"]
    assert "food" in called["food"]


# The files of WordNet in small: offset, lexicographer file, part of speech, words, relations |
# gloss; examples.
NOUNS = """  1 a licence
00000001 05 n 01 animal 0 002 ~ 00000002 n 0000 ~ 00000003 n 0000 | a living thing that can move
00000002 05 n 02 dog 0 domestic_dog 1 002 @ 00000001 n 0000 ;c 00000005 n 0000 | \
a living thing that barks; "a dog ran"
00000003 05 n 01 Rover 0 001 @i 00000001 n 0000 | a living thing; usually a dog
00000004 20 n 01 dog 1 000 | a living plant that barks never
00000005 09 n 01 zoology 0 000 | the study of thing and thing
"""


@pytest.fixture
def made(tmp_path: Path):
    spec = importlib.util.spec_from_file_location("make_wordnet", MAKER)
    maker = importlib.util.module_from_spec(spec)
    sys.modules["make_wordnet"] = maker  # where its dataclass looks for its types
    spec.loader.exec_module(maker)
    for part in ("verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text("  1 a licence\n")
    (tmp_path / "data.noun").write_text(NOUNS)
    (tmp_path / "cntlist.rev").write_text(
        "dog%1:05:00:: 1 42\ndomestic_dog%1:05:01:: 1 3\ndog%1:20:01:: 2 1\n"
    )
    yield maker, maker.read_synsets(tmp_path)
    del sys.modules["make_wordnet"]


def test_the_script_reads_wordnets_files(made) -> None:
    _, synsets = made
    dog = synsets["n", "00000002"]
    assert (dog.word, dog.kind, dog.times_met) == ("dog", "noun.animal", 45)
    assert dog.relations == (("@", ("n", "00000001")), (";c", ("n", "00000005")))
    assert dog.gloss_words == ("living", "thing", "that", "barks")  # without the example
    assert synsets["n", "00000004"].times_met == 1
    assert len(synsets) == 5


def test_the_script_takes_the_familiar_and_what_is_above_it(made) -> None:
    maker, synsets = made
    assert maker.familiar(synsets, "noun.animal", 2) == {("n", "00000001"), ("n", "00000002")}
    assert len(maker.familiar(synsets, "noun.animal", 10)) == 3
    assert (
        maker.familiar(synsets, "noun.animal", 1) == set()
    )  # a node never comes without its parents


def test_the_script_makes_a_graph_that_loads(made, tmp_path: Path) -> None:
    maker, synsets = made
    arrays = maker.arrays(synsets, ("noun.animal", "noun.plant", "noun.cognition"))
    for name in ("a.npz", "b.npz"):
        np.savez_compressed(tmp_path / name, **arrays)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    labelled = nova.load_graph(tmp_path / "a.npz")
    graph = labelled.graph
    assert graph.node_ids.tolist() == [
        "animal",
        "dog",
        "dog (2)",
        "Rover",
        "zoology",
    ]  # the more familiar dog first
    assert labelled.y.tolist() == [0, 0, 1, 0, 2]
    assert graph.feature_names == ("living", "thing")  # in three glosses or more, stop words out
    assert np.asarray(graph.x.sum(axis=0)).tolist() == [4, 4]  # a bag: a word counts once a node
    assert graph.adjacency.toarray().sum() == 2 * 3
