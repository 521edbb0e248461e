"""load_graph and prepare_graph give the same graph, or the same error, on random small tables."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import nodenova as nova
from nodenova.errors import NodenovaError
from nodenova.io import frames
from nodenova.io.graph_folder import edges, store, tables
from nodenova.io.graph_folder.prepare import prepare_graph

WORDS = ["oak", "elm", "ash", "leaf", "Wald", "3", "12.0", "<b>", 'a "quote"', "é"]
COLUMNS = {
    "size": lambda rng, i: rng.choice(["", "1", "2.5", "-3e2", "1,000", "7"]),
    "kind": lambda rng, i: rng.choice(["a", "b", "c", "NaN", ""]),
    "open": lambda rng, i: rng.choice(["yes", "no", ""]),
    "text": lambda rng, i: " ".join(rng.choices(WORDS, k=rng.randrange(6))),
    "vector": lambda rng, i: f"[{rng.randrange(3)}, 0.5, {rng.random():.3f}]",
    "tags": lambda rng, i: str(rng.sample(["x", "y", "z"], rng.randrange(1, 4))),
    "row": lambda rng, i: str(i),
    "mixed": lambda rng, i: rng.choice(["1", "two", ""]),
    "constant": lambda rng, i: "same",
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables come in several pieces, and counters move to disk."""
    monkeypatch.setattr(frames, "BATCH_ROWS", 7)
    monkeypatch.setattr(tables, "STAGED_ROWS", 9)
    monkeypatch.setattr(store, "MAX_HELD", 5)
    monkeypatch.setattr(store, "BATCH", 11)
    monkeypatch.setattr(edges, "BATCH", 11)


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def random_tables(rng: random.Random, folder: Path) -> dict[str, Any]:
    """Tables of up to 40 nodes with repeated, reversed, looping, weighted and broken edges."""
    n = rng.randrange(1, 40)
    ids = [str(3 * i) if rng.random() < 0.9 else f"n{i}" for i in range(n)]
    names = rng.sample(list(COLUMNS), rng.randrange(len(COLUMNS) + 1))
    rows = [["id", "label", *names]]
    for i, node in enumerate(ids):
        label = rng.choice(["red", "blue", "green", "", "-1"])
        rows.append([node, label, *(COLUMNS[name](rng, i) for name in names)])
    if rng.random() < 0.1 and n > 1:
        rows[-1][0] = rows[1][0]  # a duplicate id
    ends = [["source", "target", "w"]]
    for _ in range(rng.randrange(4 * n)):
        a, b = rng.choice(ids), rng.choice(ids)
        a = f"{a}.0" if a.isdecimal() and rng.random() < 0.1 else a
        b = "gone" if rng.random() < 0.02 else b
        ends.append([a, b, rng.choice(["1", "0.5", "2", "0"])])
    files: dict[str, Any] = {"edges": write(folder / "edges.csv", ends)}
    if rng.random() < 0.9:
        files["nodes"] = write(folder / "nodes.csv", rows)
    options: dict[str, Any] = {
        "weight_column": rng.choice([None, "w"]),
        "min_weight": rng.choice([None, None, 0.75]),
        "weights": rng.choice([None, None, "filter"]),
        "drop_unknown_edges": rng.random() < 0.5,
        "max_words": rng.choice([3, 20_000]),
    }
    if "nodes" in files and names:
        options["features"] = rng.choice([None, rng.sample(names, rng.randrange(len(names) + 1))])
        options["text_columns"] = ["text"] if "text" in names and rng.random() < 0.5 else []
    if rng.random() < 0.3:
        options["new_nodes"] = rng.sample(ids, min(n, 3))
    return files | options


def outcome(load: Any) -> dict[str, Any]:
    """Everything that a graph holds, as plain values; or its error."""
    try:
        loaded = load()
    except NodenovaError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    graph = loaded.graph
    x = graph.x.toarray() if sp.issparse(graph.x) else np.asarray(graph.x)
    weight = None if graph.edge_weight is None else graph.edge_weight.tolist()
    return {
        "ids": graph.node_ids.tolist(),
        "edges": graph.edge_index.tolist(),
        "weights": weight,
        "x": (sp.issparse(graph.x), x.dtype, x.tobytes(), x.shape),
        "feature_names": graph.feature_names,
        "y": loaded.y.tolist(),
        "classes": loaded.class_names,
        "new": (loaded.new_ids.tolist(), loaded.new_named),
        "recipe": loaded.recipe,
        # prepare_graph also notes which columns it held in memory.
        "notes": [note for note in loaded.notes if "held in memory" not in note],
    }


@pytest.mark.parametrize("seed", range(60))
def test_both_read_the_same_graph(seed: int, tmp_path: Path) -> None:
    given = random_tables(random.Random(seed), tmp_path)
    in_memory = outcome(lambda: nova.load_graph(**given))
    on_disk = outcome(lambda: prepare_graph(tmp_path / "graph", **given))
    assert on_disk == in_memory
    assert (tmp_path / "graph").exists() == ("error" not in on_disk)
