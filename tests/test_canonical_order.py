"""A table is a set: the order of rows, columns and edges changes nothing, bit for bit.

Results come back in the order of the rows; see docs/decisions/0030-canonical-order.md.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app

TOPICS = ("birds", "boats", "bread", "bells")
FIRST = 90  # nodes of the first table; the others come later
SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Tables:
    """Rows of nodes and edges as text, with their columns."""

    nodes: Sequence[dict[str, str]]
    edges: Sequence[dict[str, str]]

    def shuffled(self, seed: int) -> Tables:
        """The same set: rows, columns and the ends of edges in another order."""
        rng = np.random.default_rng(seed)

        def mixed(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
            names = rng.permutation(list(rows[0])).tolist()
            return [{name: rows[row][name] for name in names} for row in rng.permutation(len(rows))]

        turned = [
            row | {"source": row["target"], "target": row["source"]} if rng.random() < 0.5 else row
            for row in self.edges
        ]
        return Tables(mixed(self.nodes), mixed(turned))

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Data frames of pandas."""
        return pd.DataFrame(self.nodes), pd.DataFrame(self.edges)

    def networkx(self) -> nx.Graph:
        """A NetworkX graph, nodes and edges inserted in the order of the rows."""
        graph = nx.Graph()
        for row in self.nodes:
            graph.add_node(row["id"], **{name: row[name] for name in row if name != "id"})
        graph.add_edges_from((row["source"], row["target"]) for row in self.edges)
        return graph

    def write(self, folder: Path) -> list[object]:
        """Write both tables as CSV; return the options of the command line that name them."""
        folder.mkdir(parents=True)
        for name, rows in (("nodes.csv", self.nodes), ("edges.csv", self.edges)):
            with (folder / name).open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


def make_tables(last: int = 120, first: int = 0) -> Tables:
    """Nodes first..last with text, a category, a number and a label; ids are numbers and texts."""
    data = nova.synthetic(nodes=120, classes=4, words=60, seed=5)
    x, rng = np.asarray(data.graph.x), np.random.default_rng(7)
    name = [f"{i * 7 % 120}" if i % 3 else f"n{i}" for i in range(120)]
    size = rng.normal(size=120).round(3)
    nodes = [
        {
            "id": name[i],
            "label": TOPICS[data.y[i]] if data.y[i] < 2 and i % 3 else "",
            "text": " ".join(f"word{j}" for j in np.flatnonzero(x[i])),
            "place": f"p{data.y[i] if i % 2 else i % 5}",
            "size": f"{size[i]}",
        }
        for i in range(first, last)
    ]
    edges = [
        {"source": name[a], "target": name[b], "weight": f"{1 + (a * b) % 7 / 10}"}
        for a, b in data.graph.edge_index.T.tolist()
        if a < b and first <= b < last
    ]
    return Tables(nodes, edges)


TABLES = make_tables(FIRST)


def by_id(ids: Sequence[object], values: np.ndarray) -> dict[str, object]:
    return {str(node): np.asarray(value).tolist() for node, value in zip(ids, values, strict=True)}


def fit(source: object, **options: object) -> nova.NodeDiscoverer:
    return nova.NodeDiscoverer(**options).fit(source)


def results(found: nova.NodeDiscoverer, tables: Tables) -> list[dict[str, object]]:
    """Classes, probabilities and embeddings by the id of the row that they belong to."""
    ids = [row["id"] for row in tables.nodes]
    assert found.run_.predictions.node_ids.tolist() == ids
    parts = (found.labels_, found.predict_proba(), found.transform())
    return [by_id(ids, values) for values in parts]


@pytest.fixture(scope="module", params=[None, False], ids=["mixed", "strict"])
def mixed(request: pytest.FixtureRequest) -> bool | None:
    return request.param


@pytest.fixture(scope="module")
def expected(mixed: bool | None) -> list[dict[str, object]]:
    return results(fit(TABLES.frames(), mixed=mixed), TABLES)


@FEW
@given(seed=SEEDS)
def test_frames_in_any_order_give_the_same_classes(
    expected: list[dict[str, object]], mixed: bool | None, seed: int
) -> None:
    other = TABLES.shuffled(seed)
    assert results(fit(other.frames(), mixed=mixed), other) == expected


def test_a_networkx_graph_in_any_order_gives_the_same_classes() -> None:
    other = TABLES.shuffled(9)
    same = results(fit(TABLES.networkx()), TABLES)
    assert results(fit(other.networkx()), other) == same


def test_labels_beside_the_rows_follow_them() -> None:
    found, tables = [], TABLES.shuffled(10)
    nodes, edges = tables.frames()
    y = nodes.pop("label").tolist()
    for source in ((nodes, edges), nova.load_graph((nodes, edges))):
        found.append(results(nova.NodeDiscoverer().fit(source, y), tables))
    nodes, edges = TABLES.frames()
    y = nodes.pop("label").tolist()
    found.append(results(nova.NodeDiscoverer().fit((nodes, edges), y), TABLES))
    assert found[0] == found[1] == found[2]


def test_arrays_follow_the_graph_that_is_passed() -> None:
    nodes, edges = TABLES.shuffled(1).frames()
    loaded = nova.load_graph((nodes, edges))
    canonical = loaded.canonical()
    assert loaded.graph.node_ids.tolist() == nodes["id"].tolist()
    assert canonical.graph.node_ids.tolist() != nodes["id"].tolist()
    found = [nova.NodeDiscoverer().fit(each) for each in (loaded, canonical)]
    same = by_id(loaded.graph.node_ids, found[0].labels_)
    assert by_id(canonical.graph.node_ids, found[1].labels_) == same
    p = found[0].predict_proba(loaded.graph)
    assert by_id(canonical.graph.node_ids, found[0].predict_proba(canonical.graph)) == by_id(
        loaded.graph.node_ids, p
    )
    assert np.array_equal(p, found[0].predict_proba())
    assert nova.load_graph(canonical.graph).graph.node_ids is canonical.graph.node_ids
    label = ["" if c < 0 else canonical.class_names[c] for c in canonical.y]
    again = nova.NodeDiscoverer().fit(canonical.graph, label)
    assert by_id(canonical.graph.node_ids, again.labels_) == same


def test_a_later_table_in_any_order_is_predicted_alike() -> None:
    found, later = fit(TABLES.frames()), make_tables()
    other = later.shuffled(12)
    for predict in (found.predict_proba, found.transform, found.predict):
        p = by_id(later.frames()[0]["id"], predict(later.frames()))
        assert by_id(other.frames()[0]["id"], predict(other.frames())) == p


@FEW
@given(seed=SEEDS)
def test_weights_types_and_repeated_edges_in_any_order_are_the_same_graph(seed: int) -> None:
    rng = np.random.default_rng(0)
    edges = [
        row | {"weight": str(rng.random()), "kind": ("cites", "same", "by")[rng.integers(3)]}
        for row in TABLES.edges
        for _ in range(3)
    ]
    tables = replace(TABLES, edges=edges)
    order = np.random.default_rng(seed).permutation(len(edges))
    other = tables.shuffled(seed)
    other = replace(other, edges=[edges[row] for row in order])  # ends as they are
    for kind in (None, "kind"):
        options = {"weight_column": "weight", "edge_type_column": kind}
        one, two = (
            nova.load_graph(each.frames(), **options).canonical().graph for each in (tables, other)
        )
        assert np.array_equal(one.edge_index, two.edge_index)
        assert np.array_equal(one.edge_weight, two.edge_weight)
        assert (one.x != two.x).sum() == 0
        assert one.feature_names == two.feature_names
        assert one.recipe == two.recipe


def test_an_edge_list_in_any_order_gives_the_same_classes(tmp_path: Path) -> None:
    found = []
    for number, tables in enumerate((TABLES, TABLES.shuffled(3))):
        path = tmp_path / f"{number}.edgelist"
        lines = [f"{row['source']} {row['target']}\n" for row in tables.edges]
        path.write_text("".join(lines))
        loaded = nova.load_graph(path)
        label = {row["id"]: row["label"] for row in tables.nodes}
        y = [label[node] for node in loaded.graph.node_ids.tolist()]
        labels = nova.NodeDiscoverer().fit(path, y).predict_proba()
        found.append(by_id(loaded.graph.node_ids, labels))
    assert found[0] == found[1]


def test_a_vocabulary_that_is_cut_does_not_depend_on_the_order() -> None:
    for seed in range(3):
        other = TABLES.shuffled(seed)
        words = [nova.load_graph(each.frames(), max_words=20).recipe for each in (TABLES, other)]
        assert words[0] == words[1]
        assert words[0].words


def test_text_vectors_do_not_depend_on_the_order() -> None:
    calls: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return np.array([[len(text), place] for place, text in enumerate(texts)], float)

    loaded = [
        nova.load_graph(each.frames(), text_vectors=encode) for each in (TABLES, TABLES.shuffled(2))
    ]
    assert calls[0] == calls[1]
    first, second = (by_id(each.graph.node_ids, each.graph.vectors) for each in loaded)
    assert first == second


def nodenova(*arguments: object) -> None:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same_rows(path: Path, tables: Tables, other: Path) -> None:
    """The rows of a table of predictions are those of another one, in the order of `tables`."""
    rows = table(path)
    assert [row["node"] for row in rows] == [row["id"] for row in tables.nodes]
    assert {row["node"]: row for row in rows} == {row["node"]: row for row in table(other)}


COLUMNS = ("--text-column", "text", "--label-column", "label", "--weight-column", "weight")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `a` and `b` on the same tables, those of `b` in another order."""
    place = tmp_path_factory.mktemp("order")
    for name, tables in (("a", TABLES), ("b", TABLES.shuffled(11))):
        files = tables.write(place / f"{name}-tables")
        nodenova("discover", *files, *COLUMNS, "--out", place / name, "--no-report", "-q",
                 "--show", "place", "--none-share", "0.1")  # fmt: skip
    return place


class TestCommandLine:
    """discover, predict, --from and --add on tables in another order."""

    def test_discover(self, place: Path) -> None:
        shuffled = TABLES.shuffled(11)
        same_rows(place / "b" / "predictions.csv", shuffled, place / "a" / "predictions.csv")
        for name in ("classes.csv", "shown.csv", "suggestions.json", "features.json"):
            assert (place / "a" / name).read_bytes() == (place / "b" / name).read_bytes()
        a, b = nova.open_run(place / "a"), nova.open_run(place / "b")
        assert np.array_equal(a.run.probabilities, b.run.probabilities)
        assert b.graph.node_ids.tolist() == b.predictions["node"].tolist()
        assert a.labels == b.labels
        shown = {row[""]: row["place"] for row in table(place / "b" / "shown.csv")}
        assert shown == {row["id"]: row["place"] for row in TABLES.nodes}

    def test_predict(self, place: Path, tmp_path: Path) -> None:
        later = make_tables()
        shuffled = later.shuffled(4)
        for name, tables in (("a", later), ("b", shuffled)):
            files = tables.write(tmp_path / f"{name}-tables")
            nodenova("predict", place / name, *files, "-q", "--out", tmp_path / f"{name}.csv")
        same_rows(tmp_path / "b.csv", shuffled, tmp_path / "a.csv")

    def test_predict_add(self, place: Path, tmp_path: Path) -> None:
        came = make_tables(first=FIRST)
        shuffled = came.shuffled(5)
        for name, tables in (("a", came), ("b", shuffled)):
            files = tables.write(tmp_path / f"{name}-tables")
            to = tmp_path / f"{name}.csv"
            nodenova("predict", place / name, "--add", *files, "-q", "--out", to)
        same_rows(tmp_path / "b.csv", shuffled, tmp_path / "a.csv")

    def test_discover_from(self, place: Path, tmp_path: Path) -> None:
        later = make_tables()
        shuffled = later.shuffled(6)
        for name, tables in (("a", later), ("b", shuffled)):
            files = tables.write(tmp_path / f"{name}-tables")
            nodenova("discover", "--from", place / name, *files, "--out", tmp_path / name, "-q",
                     "--no-report")  # fmt: skip
        predictions = tmp_path / "a" / "predictions.csv"
        same_rows(tmp_path / "b" / "predictions.csv", shuffled, predictions)
        classes = [(tmp_path / name / "classes.csv").read_bytes() for name in "ab"]
        assert classes[0] == classes[1]

    def test_prepare(self, place: Path, tmp_path: Path) -> None:
        tables = place / "b-tables"
        files = ("--nodes", tables / "nodes.csv", "--edges", tables / "edges.csv")
        nodenova("prepare", *files, *COLUMNS, "--out", tmp_path / "g", "-q")
        nodenova("discover", "--graph", tmp_path / "g", "--out", tmp_path / "run", "-q",
                 "--no-report", "--none-share", "0.1")  # fmt: skip
        predictions = place / "a" / "predictions.csv"
        same_rows(tmp_path / "run" / "predictions.csv", TABLES.shuffled(11), predictions)
        loaded = nova.load_graph(tmp_path / "g")
        assert loaded.graph.node_ids.tolist() == [row["id"] for row in TABLES.shuffled(11).nodes]
        found = nova.NodeDiscoverer().fit(tmp_path / "g")
        assert np.array_equal(found.labels_, nova.NodeDiscoverer().fit(loaded).labels_)

    @pytest.mark.parametrize("to", ["csv", "networkx", "pyg", "embeddings"])
    def test_exports_follow_the_rows(self, place: Path, tmp_path: Path, to: str) -> None:
        run = nova.open_run(place / "b")
        ids = [row["id"] for row in TABLES.shuffled(11).nodes]
        path = tmp_path / {"networkx": "x.graphml", "embeddings": "z.npz"}.get(to, "out")
        run.export(to, path)
        z = by_id(run.run.graph.node_ids, run.run.embeddings)
        if to == "csv":
            assert [row["node"] for row in table(path / "nodes.csv")] == ids
        elif to == "networkx":
            assert list(nx.read_graphml(path).nodes) == ids
        elif to == "embeddings":
            with np.load(path) as stored:
                assert stored["node_ids"].tolist() == ids
                assert by_id(ids, stored["z"]) == z
        else:
            import torch

            parts = torch.load(path, weights_only=True)
            assert by_id(ids, parts["z"].numpy()) == z
            assert np.array_equal(parts["edge_index"].numpy(), run.graph.edge_index)
            x = by_id(run.run.graph.node_ids, run.run.graph.x.toarray())
            assert by_id(ids, parts["x"].to_dense().numpy()) == x

    def test_a_review_of_a_node_is_of_that_node(self, place: Path, tmp_path: Path) -> None:
        run = nova.open_run(place / "b")
        node = next(row["id"] for row in TABLES.nodes if row["label"] == TOPICS[0])
        before = run.labels
        run.apply([{"do": "relabel", "nodes": [node], "class": 1}])
        after = nova.open_run(place / "b").labels
        assert {each for each in after if after[each] != before[each]} == {node}
        nova.open_run(place / "b").undo()
        assert nova.open_run(place / "b").labels == before


def test_texts_beside_the_rows_are_shown_with_their_nodes(tmp_path: Path) -> None:
    tables = TABLES.shuffled(8)
    found = fit(tables.frames())
    found.report(tmp_path / "run", shown={"place": [row["place"] for row in tables.nodes]})
    shown = {row[""]: row["place"] for row in table(tmp_path / "run" / "shown.csv")}
    assert shown == {row["id"]: row["place"] for row in tables.nodes}


def test_the_order_of_arrays_is_part_of_the_input() -> None:
    data = nova.synthetic(nodes=60, classes=3, words=40)
    order = np.random.default_rng(0).permutation(60)
    graph = data.graph.renumber(order)  # named 0..59 in another order, and no table
    loaded = nova.load_graph(nova.LabelledGraph(graph, data.y[order], data.class_names))
    assert loaded.canonical() is loaded
