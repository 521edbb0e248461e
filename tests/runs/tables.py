"""Small tables with ids, labels, texts, typed and weighted edges, in files of unusual columns."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app

NODES, SPRING = 120, 90
TOPICS = ("birds", "boats", "bread")
# How the tables must be read; a run remembers it.
COLUMNS = [
    "--id-column", "key", "--label-column", "topic", "--text-column", "text",
    "--source-column", "a", "--target-column", "b", "--weight-column", "w",
    "--edge-type-column", "kind",
]  # fmt: skip


def write_tables(
    folder: Path, first: int = 0, last: int = NODES, without: Collection[str] = ()
) -> Path:
    """Write nodes.csv and edges.csv of nodes first..last, with edges to all nodes before."""
    data = nova.synthetic(nodes=NODES, classes=3, words=60, seed=3)
    folder.mkdir(parents=True, exist_ok=True)
    x, y = np.asarray(data.graph.x), data.y.copy()
    wrong = np.flatnonzero((y < 2) & (np.arange(NODES) % 3 > 0))[0]
    y[wrong] = 1 - y[wrong]  # a label that the model disagrees with
    nodes = [
        {
            "key": f"n{i}",
            "topic": TOPICS[y[i]] if y[i] < 2 and i % 3 else "",
            "text": " ".join(f"word{j}" for j in np.flatnonzero(x[i])),
        }
        for i in range(first, last)
    ]
    edges = [
        {"a": f"n{a}", "b": f"n{b}", "w": 1 + (a + b) % 3, "kind": ("cites", "same")[(a * b) % 2]}
        for a, b in data.graph.edge_index.T.tolist()
        if a < b and first <= b < last
    ]
    for name, rows in (("nodes.csv", nodes), ("edges.csv", edges)):
        names = [column for column in rows[0] if column not in without]
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    return folder


def files(folder: Path) -> list[object]:
    """The options that name the tables of a folder."""
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


def tables(folder: Path) -> dict[str, Path]:
    """The arguments that name the tables of a folder."""
    return {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv"}


def nodenova(*arguments: object, code: int = 0) -> str:
    """Run a command in this process and return what it printed."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def discover_spring(folder: Path) -> Path:
    """A run on the first nodes."""
    data = write_tables(folder / "spring", last=SPRING)
    found = ["--num-new", 1, "--set", "n_resamples=0", "-q", "--out", folder / "run"]
    nodenova("discover", *files(data), *COLUMNS, *found)
    return folder / "run"
