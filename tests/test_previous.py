"""What the version before wrote: models, runs, reviews and rows are read, and say what they said.

In tests/fixtures/previous: three trained models (a cosine head, classes remembered under dropout)
and one of Prism, with what they predicted; a graded run of two seeds, a discovery on a table with
its review, and rows of a bench.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.bench.folder import GradedFolder
from nodenova.bench.plan import Plan
from nodenova.bench.render import summarize
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run_page import write_report
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.bench.sweep import unfinished
from nodenova.bench.tables import TABLES
from nodenova.cli import app
from nodenova.data.tasks import tasks_from_labels
from nodenova.errors import StorageError
from nodenova.io.load import load_graph
from nodenova.model.classes import normalize_kind
from nodenova.model.saving import weights_digest
from nodenova.nn.heads import UnitLinearHead
from nodenova.runs.apply import apply_review
from nodenova.runs.folder import RunFolder

PREVIOUS = Path(__file__).parent / "fixtures" / "previous"
MODELS = ("gcn", "gat", "gcn-sword", "prism")
GRADED = "synthetic:nodes=60,classes=4,words=40"
# What `fit` and SWORD did then, in the settings of today.
PHASE_1 = {"head": "cosine", "prototype_passes": 20}
PHASE_2 = {"replay_temperature": True, "distill": "all"}


def read(path: str) -> Any:
    return json.loads((PREVIOUS / path).read_text())


@pytest.fixture(scope="module")
def data() -> nova.LabelledGraph:
    """The graph of the four models."""
    return nova.synthetic(nodes=60, classes=4, words=40, words_per_node=8)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_predicts_what_it_predicted(name: str, data: nova.LabelledGraph) -> None:
    said = read("models/predictions.json")[name]
    model = nova.load_model(PREVIOUS / "models" / name)
    assert list(model.class_names) == said["classes"]
    assert model.predict(data.graph).tolist() == said["predict"]
    # Six decimals were written.
    assert np.abs(model.predict_proba(data.graph) - said["proba"]).max() < 2e-6
    assert isinstance(model.head(), UnitLinearHead)
    assert model.head().multirank.is_whole == (name != "prism")
    assert weights_digest(model) == read(f"models/{name}/model.json")["sha256"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_saved_again_is_the_same(
    name: str, data: nova.LabelledGraph, tmp_path: Path
) -> None:
    model = nova.load_model(PREVIOUS / "models" / name)
    model.save(tmp_path / "again")
    again = nova.load_model(tmp_path / "again")
    assert weights_digest(again) == weights_digest(model)
    assert again.stages == model.stages
    assert again.predict_proba(data.graph).tobytes() == model.predict_proba(data.graph).tobytes()


@pytest.mark.parametrize("name", MODELS[:3])
def test_a_model_can_be_taken_further(name: str, data: nova.LabelledGraph) -> None:
    model, new = nova.load_model(PREVIOUS / "models" / name), nova.split(data, [0, 1])[1]
    grown = nova.discover(model, new, nova.Sword(epochs=3))
    assert len(grown.classes) == len(model.classes) + 2
    assert np.isfinite(grown.predict_proba(data.graph)).all()


def made_again(name: str, data: nova.LabelledGraph) -> nova.Model:
    """The saved model, made today: from its settings, and today's by the names they had then."""
    document = read(f"models/{name}/model.json")
    old, new, _ = nova.split(data, [0, 1])
    first = {
        key: value
        for key, value in document["stages"][0]["settings"].items()
        if key != "row_normalise"
    }
    if name == "prism":
        return nova.discover(nova.fit(old), new)
    model = nova.fit(old, document["encoder"]["name"], **first, **PHASE_1)
    if len(document["stages"]) == 1:
        return model
    known = {field.name for field in fields(nova.Sword)}
    second = document["stages"][1]["settings"]
    assert set(second) <= known
    return nova.discover(model, new, nova.Sword(**second | PHASE_2))


@pytest.mark.parametrize("name", MODELS)
def test_the_former_way_is_a_setting_that_gives_the_same_model(
    name: str, data: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit where the kernels are the same.

    The tolerance is for other processors, for GAT and Prism, whose are new, and for Prism, which
    took statistics at all ranks and kept directions that hold next to nothing. Of its directions
    either sign is right, and rounding decides which.
    """
    monkeypatch.setattr("nodenova.encoders.prism.svd.NEGLIGIBLE", 0.0)
    saved, model = nova.load_model(PREVIOUS / "models" / name), made_again(name, data)
    for then, now in zip(saved.stages, model.stages, strict=True):
        assert now.history.keys() == then.history.keys()
        for term, values in then.history.items():
            assert now.history[term] == pytest.approx(values, rel=1e-4, abs=1e-9)
    # Of the old classes: SWORD's new ones were remembered under dropout too.
    for part in (
        "mean",
        "var",
        "centre",
    ):
        now, then = (m.memory.tensors()[part][:2].numpy() for m in (model, saved))
        if name == "prism":
            now, then = np.abs(now), np.abs(then)
        assert np.allclose(now, then, rtol=1e-4, atol=1e-5)
    assert float(model.memory.classes.temperature) == pytest.approx(
        float(saved.memory.classes.temperature), rel=1e-4
    )
    assert np.allclose(model.predict_proba(data.graph), saved.predict_proba(data.graph), atol=1e-4)


def test_the_way_of_today_gives_another_model(data: nova.LabelledGraph) -> None:
    old = nova.split(data, [0, 1])[0]
    today = nova.fit(old, "gcn", hidden=4, epochs=20)
    assert not np.allclose(
        today.predict_proba(data.graph), read("models/predictions.json")["gcn"]["proba"], atol=0.05
    )


@pytest.fixture
def graded(tmp_path: Path) -> RunFolder:
    shutil.copytree(PREVIOUS / "graded", tmp_path / "graded")
    return GradedFolder.open(tmp_path / "graded")


def test_a_graded_run_is_graded_the_same(graded: GradedFolder) -> None:
    for row in graded.rows():
        exam = nova.split(nova.load_dataset(GRADED), [0, 1], seed=row.seed)[2]
        graded_again = nova.grade(graded.model(row.seed), exam)
        stored = read(f"graded/seed-{row.seed}/row.json")
        assert graded_again.confusion.tolist() == stored["confusion"]
        for matching, scores in stored["scores"].items():
            again = graded_again.scores(matching)
            now = {"old_new_accuracy" if name == "gate" else name: scores[name] for name in scores}
            assert {name: again[name] for name in now} == pytest.approx(now)
            assert {name: row.score(name, matching) for name in now} == pytest.approx(now)
    assert [row.seed for row in graded.rows()] == [0, 1]


def test_a_graded_run_has_its_report_with_dashes_for_what_was_not_measured_then(
    graded: GradedFolder,
) -> None:
    summary = summarize(graded.rows())
    assert "old_n" not in summary.scores["block"]
    assert summary.once["new_used"].mean == 0.0  # read off the confusion matrix
    (scores,) = re.findall(
        r'<table id="scores".*?</table>', write_report(graded).read_text(), flags=re.DOTALL
    )
    head, block, *_ = (
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in scores.split("<tr>")[1:]
    )
    shown = dict(zip(head, block, strict=True))
    assert {name for name, value in shown.items() if value == "–"} == {"Old-N", "All-N"}
    new_n = fmean(row.score("new_n") for row in graded.rows())
    assert shown["New-N"].startswith(f"{new_n:.1f} ± ")


def test_a_graded_run_gets_no_seed_of_another_phase_1(graded: GradedFolder) -> None:
    plan = Plan(GRADED, nova.Sword(epochs=3), "gcn", (0, 1), 2, (("hidden", 4), ("epochs", 5)))
    with pytest.raises(StorageError, match="its version trained phase 1 differently"):
        GradedFolder.create(graded.path, plan, read("graded/run.json")["data"])
    assert [row.seed for row in graded.rows()] == [0, 1]


def test_a_run_of_today_goes_on_and_its_finished_seeds_are_not_run_again(tmp_path: Path) -> None:
    plan = Plan(GRADED, nova.Sword(epochs=3), "gcn", (0, 1), 2, (("hidden", 4), ("epochs", 5)))
    data = nova.load_dataset(GRADED)
    first = GradedFolder.create(tmp_path / "run", plan, "data").run(data, plan, [0])
    again = GradedFolder.create(tmp_path / "run", plan, "data").run(data, plan, [0, 1])
    assert again[0].seconds == first[0].seconds  # of the run that was done
    assert [row.seed for row in again] == [0, 1]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def discovery(tmp_path: Path) -> RunFolder:
    shutil.copytree(PREVIOUS / "run", tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_a_discovery_says_of_its_classes_what_it_said(discovery: RunFolder) -> None:
    before = table(discovery.path / "classes.csv")
    assert [line["name"] for line in before] == ["bikes", "camping", "third", "new-4", "new-5"]
    discovery.report()
    assert (discovery.path / "report.html").stat().st_size > 0
    after = table(discovery.path / "classes.csv")
    told = ("id", "auto_name", "kind", "stage", "size", "nearest", "features", "representatives")
    # A class that nobody has named is shown by its automatic name now.
    assert [line["name"] for line in after] == [
        "bikes",
        "camping",
        "third",
        *(line["auto_name"] for line in before[3:]),
    ]
    assert [[line[key] for key in told] for line in after] == [
        [normalize_kind(line[key]) if key == "kind" else line[key] for key in told]
        for line in before
    ]
    assert {line["kind"] for line in before} == {"old", "new"}  # what the kinds were called then
    for info, a, b in zip(discovery.run.classes, after, before, strict=True):
        # The confidence of discovered classes is calibrated now.
        by_model = info.confidence_by_model if info.is_new else info.confidence
        assert [float(a["share"]), by_model, float(a["cohesion"])] == pytest.approx(
            [float(b[key]) for key in ("share", "confidence", "cohesion")], abs=2e-4
        )


def test_a_discovery_predicts_its_tables(discovery: RunFolder, tmp_path: Path) -> None:
    files = [
        "--nodes",
        PREVIOUS / "nodes.csv",
        "--edges",
        PREVIOUS / "edges.csv",
        "--out",
        tmp_path / "p.csv",
        "--quiet",
    ]
    result = CliRunner().invoke(
        app, [str(part) for part in ("predict", discovery.path, *files)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    names = [line["name"] for line in table(tmp_path / "p.csv")]
    kept = discovery.model.predict(discovery.graph)
    shown = {
        int(line["id"]): line["auto_name"] for line in table(discovery.path / "classes.csv")[3:]
    }
    assert names == [shown.get(c, discovery.model.class_of(c).name) for c in kept.tolist()]
    sizes = {
        shown.get(int(line["id"]), line["name"]): int(line["size"])
        for line in table(discovery.path / "classes.csv")
    }
    assert sizes == {name: names.count(name) for name in sizes}


def test_a_review_is_taken_by_the_model_it_was_made_for(discovery: RunFolder) -> None:
    """The model before its review is not kept; it is made again from the tables.

    The review makes it the kept one.
    """
    nodes, edges = PREVIOUS / "nodes.csv", PREVIOUS / "edges.csv"
    loaded = load_graph(nodes=nodes, edges=edges, label_column="kind", text_columns=["text"])
    old, new, _ = tasks_from_labels(loaded, 2, mixed=False)
    model = nova.discover(nova.fit(old), new)
    # Another processor's last digits are another digest.
    review = read("review.json") | {"model": weights_digest(model)}
    reviewed = apply_review(model, review, loaded.graph)
    kept = discovery.model
    assert reviewed.class_names == kept.class_names
    assert reviewed.column_class_ids == kept.column_class_ids
    assert reviewed.predict(loaded.graph).tolist() == kept.predict(discovery.graph).tolist()
    assert np.allclose(
        reviewed.predict_proba(loaded.graph), kept.predict_proba(discovery.graph), atol=1e-4
    )


@pytest.fixture
def rows(tmp_path: Path) -> list[Row]:
    shutil.copy(PREVIOUS / "bench" / "rows.jsonl", tmp_path / "rows.jsonl")
    return RowFile(tmp_path / "rows.jsonl").read()


def test_rows_of_a_bench_are_in_its_tables(rows: list[Row]) -> None:
    # They were run with few epochs of phase 1, which no table shows.
    rows = [replace(row, fit_changed={}) for row in rows]
    found = {name: tables(rows) for name, tables in TABLES.items()}
    lines = {line.labels[0] for line in found["comparison"][0].lines}
    assert lines == {
        "frozen k-means",
        "frozen k-means, joint head alone",
        "GEM",
        "Prism (own encoder)",
    }
    collapse = {line.labels[0]: line for line in found["collapse"][0].lines}
    used = [
        row.score("new_used") for row in rows if row.method == "frozen_kmeans" and not row.changed
    ]
    assert collapse["frozen k-means"].cells[0].mean == np.mean(used)
    settings = {line.labels[0]: line.cells[0] for line in found["settings"][0].lines}
    assert all(cell.mean is None for cell in settings.values())  # Old-N was not measured
    assert {name for name, tables in found.items() if any(table.lines for table in tables)} >= {
        "heads",
        "forgetting",
    }


def test_scores_that_rows_did_not_have_are_read_off_their_confusion(rows: list[Row]) -> None:
    for row in rows:
        said = np.array(row.confusion)[:, 2:].sum(axis=0)
        assert row.score("new_used") == (said > 0).sum()
        assert row.score("new_largest") == (
            None if not said.any() else pytest.approx(100 * said.max() / said.sum())
        )
        assert row.score("new_all") == 100.0 * ((said > 0).sum() == 2)
        assert row.score("old_n") is None


def test_rows_of_then_do_not_stand_for_runs_of_today(rows: list[Row]) -> None:
    """Phase 1 is another one by default, and that is in a key."""
    graph = nova.load_dataset(GRADED)
    methods = [nova.FrozenKMeans(), nova.LABELLED["gem"]()]
    cells = runs_of(
        "comparison", BenchConfig([(graph, 2)], ["gcn"], methods, [0, 1], (("epochs", 5),))
    )
    assert unfinished(cells, rows) == cells
