"""The command line as a user types it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova import cli
from nodenova.data.splits import with_split

QUICK = ["--method", "sword", "--fit-epochs", "5", "--set", "epochs=5"]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["nodenova", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    data = nova.synthetic(nodes=150, classes=5, words=200)
    path = tmp_path / "my.npz"
    np.savez(
        path,
        x=data.graph.x.toarray(),
        edge_index=data.graph.edge_index,
        y=data.y,
        node_ids=[f"n{i}" for i in range(150)],
    )
    return path


def test_run_writes_rows_models_and_report(monkeypatch, tmp_path, graph_file, capsys):
    out, rows = tmp_path / "runs/first", tmp_path / "rows.json"
    options = ["--num-old", "3", "--seeds", "2", "--out", str(out), "--json", str(rows)]
    assert call(monkeypatch, "run", "--graph", str(graph_file), *options, *QUICK) == 0
    document = json.loads(rows.read_text())
    assert [row["seed"] for row in document["rows"]] == [0, 1]
    row = document["rows"][0]
    assert row.keys() >= {
        "dataset", "method", "encoder", "seed", "num_old", "num_new", "settings", "scores", "aa",
        "af", "confusion", "seconds", "versions", "split", "sees",
    }  # fmt: skip
    assert (row["num_old"], row["num_new"], row["settings"]["epochs"]) == (3, 2, 5)
    assert row["scores"].keys() == {"block", "identity", "global"}
    assert row["scores"]["block"].keys() >= {
        "old", "new", "all", "h", "old_new_accuracy", "nmi", "ari",
    }  # fmt: skip
    assert np.sum(row["confusion"]) == row["nodes"]["test"]
    assert row["sees"] == ["graph", "new_ids"]
    mean = document["summary"]["scores"]["block"]["all"]["mean"]
    assert mean == pytest.approx(np.mean([r["scores"]["block"]["all"] for r in document["rows"]]))
    assert (out / "report.html").is_file()
    assert "mean ± std over 2 seeds (0, 1)" in " ".join(capsys.readouterr().out.split())

    predictions = tmp_path / "p.csv"
    options = ["--graph", str(graph_file), "--out", str(predictions)]
    assert call(monkeypatch, "predict", str(out), *options) == 0
    with predictions.open() as file:
        table = list(csv.DictReader(file))
    model = nova.load_model(out / "seed-0")
    graph = nova.load_graph(graph_file).graph
    assert [int(line["class"]) for line in table] == model.predict(graph).tolist()
    assert table[7]["node"] == "n7"
    assert {line["kind"] for line in table} <= {"known", "discovered"}


def test_same_command_twice_gives_the_same_rows_and_does_not_run_again(
    monkeypatch, tmp_path, graph_file
):
    out = tmp_path / "run"
    command = ["run", "--graph", str(graph_file), "--num-old", "3", "--out", str(out)]
    command += ["--no-report", "-q", *QUICK]
    assert call(monkeypatch, *command, "--json", str(tmp_path / "a.json")) == 0
    stamp = (out / "seed-0/row.json").stat().st_mtime_ns
    assert call(monkeypatch, *command, "--json", str(tmp_path / "b.json")) == 0
    assert (out / "seed-0/row.json").stat().st_mtime_ns == stamp
    assert call(monkeypatch, *command, "--overwrite", "--json", str(tmp_path / "c.json")) == 0
    a, b, c = (json.loads((tmp_path / f"{name}.json").read_text())["rows"][0] for name in "abc")
    assert a == b
    assert a["confusion"] == c["confusion"]
    assert (out / "seed-0/row.json").stat().st_mtime_ns != stamp


def test_another_run_in_the_same_folder_is_refused_and_says_what_differs(
    monkeypatch, tmp_path, graph_file, capsys
):
    command = ["run", "--graph", str(graph_file), "--num-old", "3", "--no-report", "-q", *QUICK]
    command += ["--out", str(tmp_path / "run")]
    assert call(monkeypatch, *command) == 0
    assert call(monkeypatch, *command, "--encoder", "sage") == 2
    assert "encoder: 'gcn' there, 'sage' now" in capsys.readouterr().err


def test_seeds_and_old_classes_can_be_chosen(monkeypatch, tmp_path, graph_file):
    path = tmp_path / "rows.json"
    options = ["--old", "4,1", "--seeds", "4,7", "--num-new", "4", "--json", str(path), "-q"]
    assert call(monkeypatch, "run", "--graph", str(graph_file), *options, *QUICK) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["seed"] for row in rows] == [4, 7]
    assert rows[0]["old_classes"] == [4, 1]
    assert rows[0]["class_names"] == ["1", "4", "0", "2", "3"]
    assert np.array(rows[0]["confusion"]).shape == (5, 6)


@pytest.mark.slow
def test_an_interrupted_run_keeps_finished_seeds_and_continues(tmp_path, graph_file):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "nodenova", "run", "--graph", str(graph_file)]
    command += ["--num-old", "3", "--method", "sword", "--out", str(out), "--no-report"]
    command += ["--fit-epochs", "5", "--set", "epochs=100", "--seeds"]
    environment = os.environ | {"PYTHONPATH": str(Path(nova.__file__).parent.parent)}
    many = [*command, "1000"]  # not to be done before the signal comes, however busy the machine
    # Tests that were started in the background ignore Ctrl-C and would hand that on.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        many, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    signal.signal(signal.SIGINT, ours)
    deadline = time.monotonic() + 120
    while not (out / "seed-0/row.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "finished seeds are stored" in errors
    assert "Traceback" not in errors
    kept = (out / "seed-0/row.json").read_bytes()
    assert not list(out.rglob(".*")), "temporary files were left behind"
    again = subprocess.run([*command, "2"], env=environment, capture_output=True, timeout=120)
    assert again.returncode == 0
    assert (out / "seed-0/row.json").read_bytes() == kept
    assert (out / "seed-1/row.json").exists()


def test_every_command_has_a_help():
    own = ["inspect", "discover", "classes", "review", "apply-review", "predict", "export"]
    for name in ("", "demo", *own, "run", "report", "datasets", "bench", "check-method"):
        result = CliRunner().invoke(cli.app, [*name.split(), "--help"])
        assert result.exit_code == 0
        assert "Usage" in result.stdout


def test_datasets_lists_counts_and_where_they_are(monkeypatch, tmp_path, capsys):
    assert call(monkeypatch, "datasets", "--data-root", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "3,327" in shown
    assert "ships" in shown
    assert "wikics" in shown


def test_nothing_is_drawn_when_not_on_a_terminal(monkeypatch, graph_file, capsys):
    assert call(monkeypatch, "run", "--graph", str(graph_file), "--num-old", "3", "-q", *QUICK) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_saved_masks_of_a_users_graph_are_used(monkeypatch, tmp_path):
    data = with_split(nova.synthetic(nodes=150, classes=4, words=200), per_class=6)
    path = tmp_path / "g.npz"
    np.savez(path, x=data.graph.x.toarray(), edge_index=data.graph.edge_index, y=data.y,
             train_mask=data.train, val_mask=data.val, test_mask=data.test)  # fmt: skip
    rows = tmp_path / "rows.json"
    options = ["--num-old", "2", "--json", str(rows), "-q", *QUICK]
    assert call(monkeypatch, "run", "--graph", str(path), *options) == 0
    row = json.loads(rows.read_text())["rows"][0]
    assert row["split"] == "published"
    assert row["nodes"] == {"unlabelled_new": 12, "test": int(data.test.sum())}
