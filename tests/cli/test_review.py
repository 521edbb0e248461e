"""Pages made later, under a title, with columns of a table; decisions taken back."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.cli.review import ReviewSession
from nodenova.errors import SettingError
from nodenova.model.loading import load_model
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import Review


def nodenova(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("tables")
    data = nova.synthetic(nodes=120, classes=4, words=80, seed=4)
    x = data.graph.x.toarray()
    with (folder / "nodes.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "topic", "text", "url"])
        for i in range(120):
            words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
            topic = f"topic {data.y[i]}" if data.y[i] < 2 and i % 3 else ""
            lines.writerow([f"n{i}", topic, words, f"https://example.org/{i}"])
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        lines.writerows((f"n{a}", f"n{b}") for a, b in data.graph.edge_index.T)
    return [
        *("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"),
        *("--label-column", "topic", "--text-column", "text", "--num-new", 2, "-q"),
    ]


@pytest.fixture(scope="module")
def run(tables: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "mine"
    nodenova("discover", *tables, "--features", "text", "--out", path)
    return path


def story(path: Path) -> dict[str, object]:
    found = re.search(r'id="story">(.*?)</script>', (path / "report.html").read_text())
    assert found is not None
    told: dict[str, object] = json.loads(found[1])
    return told


def test_the_page_is_called_by_its_folder_and_shows_the_text_of_nodes(run: Path) -> None:
    assert "<h1>mine</h1>" in (run / "report.html").read_text()
    told = story(run)
    assert told["columns"] == ["text"]
    assert told["texts"][0][3].startswith("word")  # type: ignore[index]


def test_a_title_and_columns_to_show_are_kept_and_the_page_can_wait(
    tables: list[object], tmp_path: Path
) -> None:
    shown = ["--title", "My nodes", "--show", "url,topic", "--no-report", "--features", "text"]
    nodenova("discover", *tables, *shown, "--out", tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "run" / "predictions.csv").exists()
    nodenova("report", tmp_path / "run", "-q")
    assert "<h1>My nodes</h1>" in (tmp_path / "run" / "report.html").read_text()
    told = story(tmp_path / "run")
    assert told["columns"] == ["url", "topic"]
    assert "https://example.org/3" in told["texts"][0]  # type: ignore[index]


def test_columns_that_are_not_there_are_refused_before_anything_is_computed(
    tables: list[object], tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match=r"--show uri: nodes.csv has no such column"):
        nodenova("discover", *tables, "--show", "uri", "--out", tmp_path / "run")
    with pytest.raises(SettingError, match="--show names columns of the table of nodes"):
        nodenova("discover", "--graph", "x.npz", "--show", "url", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_saved_decisions_are_taken_back_one_by_one_and_become_labels(
    run: Path, tmp_path: Path
) -> None:
    model = load_model(run / "model")
    document = {
        "format": "nodenova review",
        "version": 1,
        "model": weights_digest(model),
        "after": 0,
        "decisions": [
            {"do": "rename", "class": 2, "name": "fish"},
            {"do": "relabel", "nodes": ["n3"], "class": 2},
        ],
    }
    (tmp_path / "review.json").write_text(json.dumps(document))
    nodenova("apply-review", run, tmp_path / "review.json", "-q")
    with pytest.raises(SettingError, match=r"review.json: the run was reviewed since"):
        nodenova("apply-review", run, tmp_path / "review.json", "-q")
    labels = (run / "labels.csv").read_text().splitlines()
    assert labels[0] == "node,label,why"
    assert "n3,fish,moved" in labels
    said = nodenova("undo", run)
    assert "Taken back: Moved “n3” to class 2." in said
    assert "1 decision is part of the model." in said
    with pytest.raises(SettingError, match="cannot undo 2 decisions: the run has 1 saved decision"):
        nodenova("undo", run, "--last", 2)
    nodenova("undo", run, "-q")
    assert load_model(run / "model").class_names == model.class_names
    assert not (run / "labels.csv").exists()


def test_a_stale_review_is_refused_before_the_model_is_loaded(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*arguments: object) -> None:
        raise AssertionError("PyTorch is loaded for a review that is refused")

    monkeypatch.setattr("nodenova.cli.review._open", load)
    header = {"format": "nodenova review", "version": 1, "model": "0" * 64, "after": 7}
    stale = {**header, "decisions": [{"do": "rename", "class": 2, "name": "fish"}]}
    (tmp_path / "review.json").write_text(json.dumps(stale))
    message = r"the run was reviewed since: this review is of revision 7, and the run is at \d"
    with pytest.raises(SettingError, match=rf"review\.json: {message}"):
        nodenova("apply-review", run, tmp_path / "review.json")
    session = ReviewSession(run, quiet=True)
    for change in (session.save, session.undo):
        with pytest.raises(SettingError, match=message):
            change(Review.from_json(stale))


def test_the_labels_of_a_reviewed_run_are_read_by_the_next_one(
    tables: list[object], run: Path, tmp_path: Path
) -> None:
    (tmp_path / "labels.csv").write_text("node,label,why\nn3,topic 1,moved\n")
    options = [one for one in tables if one not in ("--text-column", "text")]
    labels = ["--labels", tmp_path / "labels.csv", "--out", tmp_path / "next"]
    nodenova("discover", *options, "--from", run, *labels)
    with (tmp_path / "next" / "predictions.csv").open(newline="") as file:
        said = {line["node"]: line["label"] for line in csv.DictReader(file)}
    assert said["n3"] == "topic 1"


def test_a_review_opens_without_loading_pytorch(run: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from nodenova.cli.review import ReviewSession\n"
        "from nodenova.runs.server import ReviewServer\n"
        "desk = ReviewSession(Path(sys.argv[1]), True)\n"
        "print(len(desk.page()) > 1000, 'torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, run], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
