"""What a user gets wrong: one sentence that names it, exit code 2, and nothing written."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch_geometric.datasets import Planetoid

import nodenova as nova
from nodenova import cli
from nodenova.bench.registry import ALL_METHODS
from nodenova.io.dataset_table import DATASETS

Arrays = dict[str, np.ndarray]


def arrays() -> Arrays:
    data = nova.synthetic(nodes=120, classes=4, words=60)
    x = data.graph.x if isinstance(data.graph.x, np.ndarray) else data.graph.x.toarray()
    return {"x": x, "edge_index": data.graph.edge_index, "y": data.y}


def write(path: Path, content: Arrays) -> str:
    np.savez(path, **content)
    return str(path)


def refused(monkeypatch, capsys, tmp_path: Path, *arguments: str, code: int = 2) -> str:
    """The one line that a command said, which must fail cleanly and write nothing."""
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    monkeypatch.setattr(sys, "argv", ["nodenova", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr()
    assert stop.value.code == code
    assert said.out == ""
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before, (
        "something was written"
    )
    *progress, last = said.err.strip().splitlines()
    assert last.startswith("error: ")
    assert not any("error" in line or "Traceback" in line for line in progress), said.err
    return last


def edge_to_nowhere(content: Arrays) -> None:
    content["edge_index"] = np.append(content["edge_index"], [[3], [500]], axis=1)


def not_a_number(content: Arrays) -> None:
    content["x"] = content["x"].copy()
    content["x"][7, 2] = np.nan


def lonely_class(content: Arrays) -> None:
    content["y"] = np.where(content["y"] == 3, 2, content["y"])
    content["y"][5] = 3


BROKEN: dict[str, tuple[Callable[[Arrays], object], str]] = {
    "no edges": (lambda c: c.pop("edge_index"), "my.npz: edge_index is missing"),
    "edge to nowhere": (
        edge_to_nowhere,
        "my.npz: 1 edge names a node not in the graph (nodes are 0..119), first: 3 -> 500",
    ),
    "nan": (
        not_a_number,
        "my.npz: x has 1 entries that are not finite numbers, first: node 7, feature 2 is nan",
    ),
    "class of one node": (
        lonely_class,
        "my.npz: class '3' has 1 labelled node; each class needs at least 2",
    ),
    "no labels": (lambda c: c.pop("y"), "--num-old is 2, but my.npz has 0 classes"),
    "labels too short": (
        lambda c: c.update(y=c["y"][:-1]),
        "my.npz: y has shape (119,), but x has 120 nodes",
    ),
    "text as labels": (
        lambda c: c.update(y=np.array(["a"] * 120)),
        "my.npz: y must hold whole numbers",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file(monkeypatch, capsys, tmp_path, kind):
    breaking, expected = BROKEN[kind]
    content = arrays()
    breaking(content)
    path = write(tmp_path / "my.npz", content)
    out = ["--out", str(tmp_path / "run"), "--json", str(tmp_path / "rows.json")]
    assert expected in refused(
        monkeypatch, capsys, tmp_path, "run", "--graph", path, "--num-old", "2", *out
    )


def test_a_missing_file(monkeypatch, capsys, tmp_path):
    said = refused(
        monkeypatch,
        capsys,
        tmp_path,
        "run",
        "--graph",
        str(tmp_path / "gone.npz"),
        "--num-old",
        "2",
    )
    assert "gone.npz: no such file" in said


OPTIONS = {
    "too many old classes": (["--num-old", "4"], "--num-old is 4, but my.npz has 4 classes"),
    "no old class": (["--num-old", "0"], "--num-old is 0, but my.npz has 4 classes"),
    "neither old nor num-old": (
        [],
        "choose the old classes with --num-old N or --old 0,2,5",
    ),
    "old class that is not there": (
        ["--old", "0,9"],
        "my.npz: class 9 is not there, classes are 0..3",
    ),
    "old as words": (["--old", "a,b"], "--old takes whole numbers"),
    "no new class wanted": (
        ["--num-old", "2", "--num-new", "0"],
        "num_new must be at least 1, it is 0",
    ),
    "method": (
        ["--num-old", "2", "--method", "swrod"],
        f"unknown method 'swrod'; known: {', '.join(sorted(ALL_METHODS))}",
    ),
    "encoder": (
        ["--num-old", "2", "--encoder", "gnc"],
        "unknown encoder 'gnc'; known: gat, gcn, prism, sage",
    ),
    "setting": (
        ["--num-old", "2", "--method", "sword", "--set", "etta=1"],
        "unknown setting of sword 'etta'; known: alpha1",
    ),
    "value of a setting": (
        ["--num-old", "2", "--method", "sword", "--set", "epochs=many"],
        "epochs must be int (like 600), it is 'many'",
    ),
    "setting without value": (
        ["--num-old", "2", "--set", "epochs"],
        "--set takes name=value, not 'epochs'",
    ),
    "layers": (
        ["--num-old", "2", "--method", "sword", "--layers", "65"],
        "layers must lie in 1..64, it is 65",
    ),
    "dropout": (
        ["--num-old", "2", "--method", "sword", "--dropout", "1"],
        "dropout must be at least 0 and below 1",
    ),
    "seeds": (
        ["--num-old", "2", "--seeds", "x"],
        "--seeds takes whole numbers like 3 or 4,7, not 'x'",
    ),
    "no seed": (["--num-old", "2", "--seeds", "0"], "--seeds must be at least 1"),
    "visible nodes": (
        ["--num-old", "2", "--setting", "all"],
        "setting must be one of transductive, inductive",
    ),
    "device": (["--num-old", "2", "--device", "tpu9"], "device 'tpu9' cannot be used here"),
    "settings of training for what is not trained": (
        ["--num-old", "2", "--hidden", "8"],
        "hidden: only for encoders that are trained",
    ),
    "a method that trains on an encoder that does not": (
        ["--num-old", "2", "--method", "sword", "--encoder", "prism"],
        "sword needs an encoder that can be trained: fit with gcn, gat or sage, not prism",
    ),
    "epochs": (
        ["--num-old", "2", "--method", "sword", "--fit-epochs", "0"],
        "epochs must be at least 1, it is 0",
    ),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_wrong_option(monkeypatch, capsys, tmp_path, kind):
    options, expected = OPTIONS[kind]
    path = write(tmp_path / "my.npz", arrays())
    said = refused(
        monkeypatch,
        capsys,
        tmp_path,
        "run",
        "--graph",
        path,
        *options,
        "--out",
        str(tmp_path / "run"),
    )
    assert expected in said


def test_dataset_and_graph_exclude_each_other(monkeypatch, capsys, tmp_path):
    assert "either --dataset NAME or --graph" in refused(monkeypatch, capsys, tmp_path, "run")
    both = ["--dataset", "citeseer", "--graph", "x.npz"]
    assert "either --dataset NAME or --graph" in refused(
        monkeypatch, capsys, tmp_path, "run", *both
    )


def test_an_unknown_dataset_lists_the_known_ones(monkeypatch, capsys, tmp_path):
    said = refused(monkeypatch, capsys, tmp_path, "run", "--dataset", "coral")
    assert f"unknown dataset 'coral'; known: {', '.join(sorted([*DATASETS, 'synthetic']))}" in said


def test_a_data_root_without_raw_files_and_no_network(monkeypatch, capsys, tmp_path):
    def offline(self):
        raise OSError("the network is unreachable")

    monkeypatch.setattr(Planetoid, "download", offline)
    said = refused(
        monkeypatch,
        capsys,
        tmp_path,
        "run",
        "--dataset",
        "cora",
        "--data-root",
        str(tmp_path / "data"),
    )
    assert "cora: the raw files (ind.cora.x" in said
    assert "are not in" in said
    assert "the network is unreachable" in said


def test_no_data_root_at_all(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("NODENOVA_DATA", raising=False)
    assert "cora needs a data root" in refused(
        monkeypatch, capsys, tmp_path, "run", "--dataset", "cora"
    )


def test_an_out_folder_that_is_not_a_run(monkeypatch, capsys, tmp_path):
    path = write(tmp_path / "my.npz", arrays())
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter1.tex").write_text("years of work")
    command = ["run", "--graph", path, "--num-old", "2", "--out", str(tmp_path / "thesis")]
    assert "thesis exists and is not a run" in refused(monkeypatch, capsys, tmp_path, *command)
    assert "thesis exists and is not a run" in refused(
        monkeypatch, capsys, tmp_path, *command, "--overwrite"
    )
    assert "is a file" in refused(monkeypatch, capsys, tmp_path, *command[:-1], path)


def test_json_that_is_a_folder_is_found_before_the_run(monkeypatch, capsys, tmp_path):
    path = write(tmp_path / "my.npz", arrays())
    command = [
        "run",
        "--graph",
        path,
        "--num-old",
        "2",
        "--out",
        str(tmp_path / "run"),
        "--json",
        str(tmp_path),
    ]
    assert "--json takes a file" in refused(monkeypatch, capsys, tmp_path, *command)


def test_predict_and_report_on_what_is_not_a_run(monkeypatch, capsys, tmp_path):
    path = write(tmp_path / "my.npz", arrays())
    assert "does not exist" in refused(
        monkeypatch, capsys, tmp_path, "report", str(tmp_path / "gone")
    )
    said = refused(
        monkeypatch,
        capsys,
        tmp_path,
        "predict",
        str(tmp_path),
        "--graph",
        path,
        "--out",
        str(tmp_path / "p.csv"),
    )
    assert "holds neither a run nor a saved model" in said


def test_predict_on_a_graph_with_other_features(monkeypatch, capsys, tmp_path):
    old, _, _ = nova.split(nova.synthetic(nodes=60, classes=3, words=40), old=[0, 1])
    nova.fit(old, "gcn", epochs=1).save(tmp_path / "model")
    path = write(tmp_path / "my.npz", arrays())
    command = [
        "predict",
        str(tmp_path / "model"),
        "--graph",
        path,
        "--out",
        str(tmp_path / "p.csv"),
    ]
    assert "the graph has 60 features, the model was trained on 40" in refused(
        monkeypatch, capsys, tmp_path, *command
    )


def test_a_full_disk_leaves_nothing_half_written(monkeypatch, capsys, tmp_path):
    path = write(tmp_path / "my.npz", arrays())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    quick = ["--method", "sword", "--fit-epochs", "2", "--set", "epochs=2"]
    command = [
        "run",
        "--graph",
        path,
        "--num-old",
        "2",
        "--json",
        str(tmp_path / "rows.json"),
        *quick,
    ]
    said = refused(monkeypatch, capsys, tmp_path, *command, code=1)
    assert "No space left on device" in said
    monkeypatch.setattr(sys, "argv", ["nodenova", *command, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert "No space left on device" in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "my.npz"]


def test_wrong_usage_has_exit_code_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nodenova", "run", "--no-such-option"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "No such option" in capsys.readouterr().err
