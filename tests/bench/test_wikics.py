"""Wiki-CS, whose files are not everywhere: the bench on a small data.json of the same form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import nodenova as nova
from nodenova.bench.registry import ALL_METHODS
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import run_one
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.cli import app
from nodenova.io.dataset_table import DATASETS


def write_data_json(root: Path, nodes: int = 150) -> None:
    """Ten classes, dense features with both signs, links in one direction, two published splits.

    As Wiki-CS has them.
    """
    rng = np.random.default_rng(0)
    y = np.arange(nodes) % 10
    centers = rng.normal(size=(10, 12))
    links = []
    for i in range(nodes):
        alike = rng.choice(np.flatnonzero(y == y[i]), 3)
        links.append([int(j) for j in alike if j != i] + [int(rng.integers(nodes))])
    part = (
        np.arange(nodes) // 10
    ) % 5  # of every class: two fifths for training, one for each other purpose
    document = {
        "features": (centers[y] + 0.5 * rng.normal(size=(nodes, 12))).tolist(),
        "labels": y.tolist(),
        "links": links,
        "train_masks": [(part <= 1).tolist(), (part == 1).tolist()],
        "val_masks": [(part == 2).tolist()] * 2,
        "stopping_masks": [(part == 3).tolist()] * 2,
        "test_mask": (part == 4).tolist(),
    }
    raw = root / "WikiCS/raw"
    raw.mkdir(parents=True)
    (raw / "data.json").write_text(json.dumps(document))


def test_the_bench_runs_wikics_by_the_same_code(tmp_path: Path) -> None:
    write_data_json(tmp_path)
    options = [
        "--datasets",
        "wikics",
        "--data-root",
        tmp_path,
        "--encoders",
        "gcn",
        "--methods",
        "prism,never_new",
    ]
    more = ["--seeds", 1, "--out", tmp_path / "out", "--quiet"]
    result = CliRunner().invoke(
        app, [str(a) for a in ["bench", "comparison", *options, *more]], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    rows = RowFile(tmp_path / "out/rows.jsonl").read()
    assert [(row.dataset, row.status, row.num_old, row.num_new) for row in rows] == [
        ("wikics", "done", 7, 3)
    ] * 2
    assert {row.method: row.fit_settings.get("hidden") for row in rows} == {
        "never_new": 128,
        "prism": None,
    }
    assert "| Wiki-CS Old |" in (tmp_path / "out/comparison.md").read_text()


def test_phase_1_stops_on_its_stopping_nodes(tmp_path: Path) -> None:
    write_data_json(tmp_path)
    labelled = nova.load_dataset("wikics", tmp_path)
    old, _, _ = nova.split(labelled, range(7))
    part = (np.arange(150) // 10) % 5
    assert old.val_ids.tolist() == np.flatnonzero((part == 3) & (labelled.y < 7)).tolist()
    assert np.array_equal(old.val_y, labelled.y[old.val_ids])


def test_every_method_runs_on_it(tmp_path: Path) -> None:
    write_data_json(tmp_path)
    labelled = nova.load_dataset("wikics", tmp_path, split=1)
    methods = [
        kind(epochs=3) if hasattr(kind, "epochs") else kind() for kind in ALL_METHODS.values()
    ]
    choice = BenchConfig(
        [(labelled, DATASETS["wikics"].num_old)], ["gcn"], methods, [0], (("epochs", 5),)
    )
    for cell in runs_of("heads", choice):
        row = run_one(labelled, cell.plan, 0).row
        assert np.array(row.confusion).sum() == 30
        assert (cell.plan.method_name in nova.LABELLED) == bool(
            {"new_labels", "old_labels"} & set(row.sees)
        )
