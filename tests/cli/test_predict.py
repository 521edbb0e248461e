"""Labels and nodes that fit no class, in predictions and exports of later files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.errors import NodenovaError

TOPICS = ("birds", "boats", "bread", "beans")
NODES = 240
KNOWN = NODES - 40  # nodes of the first file


def nodenova(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {line["node"]: line for line in csv.DictReader(file)}


def write(folder: Path, nodes: int, told: dict[int, str]) -> list[object]:
    """Tables of the first nodes of one graph, with these labels; the options that name them."""
    data = nova.synthetic(nodes=NODES, classes=4, words=120, seed=4)
    folder.mkdir()
    x = data.graph.x.toarray()
    lines = ["id,topic,text"]
    for i in range(nodes):
        words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
        lines.append(f"n{i},{told.get(i, '')},{words}")
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    inside = (data.graph.edge_index < nodes).all(axis=0)
    edges = [f"n{a},n{b}" for a, b in data.graph.edge_index[:, inside].T]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


@pytest.fixture(scope="module")
def y() -> np.ndarray:
    return nova.synthetic(nodes=NODES, classes=4, words=120, seed=4).y


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, y: np.ndarray) -> Path:
    """Three topics have labels; those of every third node are left out."""
    folder = tmp_path_factory.mktemp("own")
    told = {i: TOPICS[y[i]] for i in range(KNOWN) if y[i] < 3 and i % 3}
    files = write(folder / "data", KNOWN, told)
    columns = ["--label-column", "topic", "--text-column", "text"]
    asked = ["--num-new", 1, "--none-share", 0.1, "--out", folder / "run"]
    said = nodenova("discover", *files, *columns, *asked)
    assert "Suggested:" in said
    assert "none of the classes (so would 10% of known-class nodes by mistake)" in said
    return folder / "run"


def test_labels_of_the_run_and_of_later_files_are_kept_and_compared(
    run: Path, tmp_path: Path, y: np.ndarray
) -> None:
    later = {i: TOPICS[y[i]] for i in range(KNOWN, NODES) if y[i] < 3}
    wrong = int(np.flatnonzero(y[:KNOWN] == 3)[0])
    odd = int(np.flatnonzero(y[:KNOWN] == 3)[1])
    files = write(tmp_path / "later", NODES, later | {wrong: "birds", odd: "bees"})
    asked = ["predict", run, *files, "--label-column", "topic"]
    said = nodenova(*asked, "--out", tmp_path / "p.csv")
    assert "1 label is not a class of the model and is ignored: 'bees'" in said
    table = rows(tmp_path / "p.csv")
    first = rows(run / "predictions.csv")
    for i in range(NODES):
        line = table[f"n{i}"]
        expected = (later | {wrong: "birds"}).get(i) or first.get(f"n{i}", {}).get("label", "")
        assert line["label"] == expected
        assert (line["agrees"] == "") == (expected == "")
        assert not expected or line["name"] == expected
    assert table[f"n{wrong}"]["agrees"] == "no"
    nodenova(*asked, "--relabel", "--out", tmp_path / "r.csv", "-q")
    other = rows(tmp_path / "r.csv")[f"n{wrong}"]
    assert (other["kind"], other["label"], other["agrees"]) == ("discovered", "birds", "no")


def test_an_export_of_later_files_carries_labels(run: Path, tmp_path: Path, y: np.ndarray) -> None:
    wrong = int(np.flatnonzero(y[:KNOWN] == 3)[0])
    files = write(tmp_path / "later", KNOWN, {wrong: "birds"})
    asked = ["export", run, *files, "--label-column", "topic", "--to"]
    nodenova(*asked, "csv", "--out", tmp_path / "csv")
    line = rows(tmp_path / "csv" / "nodes.csv")[f"n{wrong}"]
    assert (line["name"], line["label"], line["agrees"]) == ("birds", "birds", "no")
    assert line["fits_none"] == "no"
    nodenova(*asked, "pyg", "--out", tmp_path / "kept.pt")
    nodenova(*asked, "pyg", "--relabel", "--none-share", 0, "--out", tmp_path / "loose.pt")
    kept, loose = (torch.load(tmp_path / f"{name}.pt") for name in ("kept", "loose"))
    assert (int(kept["pred"][wrong]), int(kept["label"][wrong])) == (0, 0)
    assert (int(loose["pred"][wrong]), int(loose["label"][wrong])) == (3, 0)
    assert (kept["label"] >= 0).sum() == sum(
        bool(r["label"]) for r in rows(run / "predictions.csv").values()
    ) + 1
    assert kept["fits_none"].dtype == torch.bool
    assert "fits_none" not in loose


def test_the_share_of_nodes_that_fit_none_is_that_of_the_run_unless_given(
    run: Path, tmp_path: Path
) -> None:
    def none(*options: object) -> int | None:
        said = nodenova("predict", run, *options, "--out", tmp_path / "p.csv")
        table = rows(tmp_path / "p.csv")
        if "fits_none" not in table["n0"]:
            assert "fit none" not in said
            return None
        count = sum(line["fits_none"] == "yes" for line in table.values())
        assert f"{count:,} of {KNOWN} nodes fit none of the classes." in said
        return count

    many = none()
    assert many == sum(r["fits_none"] == "yes" for r in rows(run / "predictions.csv").values())
    few = none("--none-share", 0.02)
    assert many is not None
    assert few is not None
    assert 0 <= few < many
    assert none("--none-share", 0) is None
    with pytest.raises(NodenovaError, match="none_share"):
        nodenova("predict", run, "--none-share", 2, "--out", tmp_path / "no.csv")
    with pytest.raises(NodenovaError, match="found by labelled nodes"):
        nodenova("predict", run / "model", *files_of(run), "--none-share", 0.1, "-q")
    assert not (tmp_path / "no.csv").exists()


def files_of(run: Path) -> list[object]:
    return ["--graph", run / "graph.npz"]


def test_classes_lists_what_is_suggested(run: Path) -> None:
    said = nodenova("classes", run)
    assert "none of the classes" in said.split("Suggested:")[1]
    found = nova.Suggestions.load(run)
    assert found.none_share == 0.1
