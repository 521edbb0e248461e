"""nodenova discover --from and nodenova diff: a run that goes on when its graph has grown."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.errors import NodenovaError
from nodenova.model.loading import load_model
from tests.growth.seasons import AUTUMN, LATE, SPRING, seasons

Y = seasons().y


def write_tables(folder: Path, nodes: int, label: str = "topic") -> None:
    """The first nodes of one graph; two of its classes are labelled, every third node is not."""
    graph = seasons().autumn
    folder.mkdir(exist_ok=True)
    x, names = graph.x.toarray(), np.array(graph.feature_names)
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["key", label, "text"])
        for i in range(nodes):
            words = " ".join(name.replace("-", "") for name in names[x[i] > 0])
            lines.writerow([f"n{i}", ("oak", "elm")[Y[i]] if Y[i] < 2 and i % 3 else "", words])
    inside = (graph.edge_index < nodes).all(axis=0)
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        lines.writerows((f"n{a}", f"n{b}") for a, b in graph.edge_index[:, inside].T)


def nodenova(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of two seasons, and the run of the first."""
    place = tmp_path_factory.mktemp("seasons")
    write_tables(place / "spring", SPRING)
    write_tables(place / "autumn", AUTUMN)
    columns = ["--id-column", "key", "--label-column", "topic", "--text-column", "text"]
    asked = ["--graph", place / "spring", *columns, "--num-new", 2, "--set", "n_resamples=2", "-q"]
    nodenova("discover", *asked, "--out", place / "first")
    return place


@pytest.fixture(scope="module")
def later(place: Path) -> str:
    """What going on with the second season said; its run is `second`."""
    asked = ["--from", place / "first", "--graph", place / "autumn", "--set", "n_resamples=2"]
    return nodenova("discover", *asked, "--out", place / "second")


def test_columns_are_read_as_before_and_what_came_is_found_and_said(
    place: Path, later: str
) -> None:
    assert "12 features came that the earlier run did not have" in later
    came = sum(Y[i] > 1 or i % 3 == 0 for i in range(SPRING, AUTUMN))
    assert f"searching {came} unlabelled nodes that came since for new classes" in later
    assert "The representation was refitted: " in later
    assert "probably 1 new class" in later
    assert "key" not in load_model(place / "second" / "model").fit_signature.feature_names  # type: ignore[union-attr,operator]
    lines = table(place / "second" / "predictions.csv")
    assert [line["node"] for line in lines] == [f"n{i}" for i in range(AUTUMN)]
    late = [line["class"] == "4" for line in lines]
    assert np.mean(np.array(late)[Y == LATE]) > 0.95
    assert np.mean(np.array(late)[Y != LATE]) < 0.02
    assert [line["label"] for line in lines[:6]] == ["", "elm", "", "", "oak", "elm"]
    page = (place / "second" / "report.html").read_text(encoding="utf-8")
    assert "The representation was refitted" in page


def test_earlier_nodes_keep_class_and_name(place: Path, later: str) -> None:
    first, second = (table(place / name / "predictions.csv") for name in ("first", "second"))
    pairs = list(zip(first, second, strict=False))  # the first nodes of the second are the first's
    kept = [(a["class"], a["name"]) == (b["class"], b["name"]) for a, b in pairs]
    assert len(kept) == SPRING
    assert np.mean(kept) >= 0.98


def test_diff_says_what_came_in_80_columns_and_writes_the_nodes_that_moved(
    place: Path, later: str, tmp_path: Path
) -> None:
    written = ["--json", tmp_path / "d.json", "--out", tmp_path / "moved.csv"]
    said = nodenova("diff", place / "first", place / "second", *written)
    shown = said[said.index("class") :].splitlines()
    table_lines = [line for line in shown if "tmp" not in line and "Written" not in line]
    assert max(map(len, table_lines)) <= 80
    assert any(line.split()[:2] == ["came", "4"] for line in shown)
    assert f"{SPRING} nodes are in both runs" in said
    found = json.loads((tmp_path / "d.json").read_text())
    assert found["nodes_came"] == AUTUMN - SPRING
    assert found["continued"] is True
    assert len(table(tmp_path / "moved.csv")) == len(found["moves"])
    assert nodenova("diff", place / "first", place / "second", "-q") == ""


def test_diff_of_runs_without_a_common_node_and_of_other_folders_is_refused(
    place: Path, later: str, tmp_path: Path
) -> None:
    shutil.copytree(place / "first", tmp_path / "other")
    path = tmp_path / "other" / "predictions.csv"
    path.write_text(path.read_text().replace("\nn", "\nm"))
    with pytest.raises(NodenovaError, match="have no node in common"):
        nodenova("diff", place / "first", tmp_path / "other")
    path.unlink()
    with pytest.raises(NodenovaError, match=r"has no predictions\.csv"):
        nodenova("diff", place / "first", tmp_path / "other")
    with pytest.raises(NodenovaError, match="nowhere is not a run of `nodenova discover`"):
        nodenova("diff", place / "first", tmp_path / "nowhere")
    with pytest.raises(NodenovaError, match="is a folder, not a file to write to"):
        nodenova("diff", place / "first", place / "second", "--out", tmp_path)


def test_without_labels_in_the_table_those_of_the_earlier_run_go_on(
    place: Path, tmp_path: Path
) -> None:
    write_tables(tmp_path / "data", AUTUMN, label="note")
    path = tmp_path / "data" / "nodes.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    path.write_text("\n".join(f"{node},{text}" for node, _, text in lines) + "\n")
    (tmp_path / "more.csv").write_text("node,label\nn255,bikes\nn256,bikes\nn257,oak\n")
    asked = ["--from", place / "first", "--graph", tmp_path / "data", "--num-new", 1]
    asked += ["--labels", tmp_path / "more.csv", "--set", "n_resamples=0"]
    said = nodenova("discover", *asked, "--out", tmp_path / "run")
    assert "no column 'topic': only labels of the earlier run are known" in said
    assert "labels name classes that it did not know ('bikes')" in said
    labels = [line["label"] for line in table(tmp_path / "run" / "predictions.csv")]
    assert labels[:6] == ["", "elm", "", "", "oak", "elm"]
    assert labels[255:258] == ["bikes", "bikes", "oak"]
    assert not any(labels[SPRING:255])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--refresh", "often"], "unknown --refresh 'often'; known: always, auto, never"),
        (["--features", "text"], "--features cannot be changed with --from: .*first"),
        (["--text-column", "text"], "--text-column cannot be changed with --from"),
        (["--encoder", "gcn"], "--encoder cannot be changed with --from"),
        (["--label-column", "nope"], r"nodes\.csv: no column 'nope'; it has"),
        (["--num-new", 500], "500 new classes need at least 500 unlabelled nodes"),
        (["--labels", "nowhere.csv"], r"nowhere\.csv"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_written(
    place: Path, tmp_path: Path, options: list[object], sentence: str
) -> None:
    asked = ["--from", place / "first", "--graph", place / "autumn", "--out", tmp_path / "no"]
    with pytest.raises(NodenovaError, match=sentence):
        nodenova("discover", *asked, *options)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_gone_on_from_or_written_to_are_refused(
    place: Path, tmp_path: Path
) -> None:
    data = ["--graph", place / "autumn"]
    with pytest.raises(NodenovaError, match="nowhere is not a run of `nodenova discover`: it does"):
        nodenova("discover", "--from", tmp_path / "nowhere", *data, "--out", tmp_path / "no")
    asked = ["--from", place / "first", *data, "--out", place / "first", "--overwrite"]
    with pytest.raises(NodenovaError, match=r"--out and --from are both .*first"):
        nodenova("discover", *asked)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("mine")
    with pytest.raises(NodenovaError, match="used is not empty; choose another --out"):
        nodenova("discover", "--from", place / "first", *data, "--out", tmp_path / "used")
    with pytest.raises(NodenovaError, match=r"--refresh is only for .* --from RUN"):
        nodenova("discover", *data, "--refresh", "never", "--out", tmp_path / "no")
    with pytest.raises(NodenovaError, match="give either --graph FILE, or --nodes FILE and --edge"):
        nodenova("discover", "--from", place / "first", "--out", tmp_path / "no")
    assert {path.name for path in tmp_path.iterdir()} == {"used"}


def test_a_table_without_a_column_that_features_were_made_of_is_refused(
    place: Path, tmp_path: Path
) -> None:
    write_tables(tmp_path / "data", AUTUMN)
    path = tmp_path / "data" / "nodes.csv"
    path.write_text(path.read_text().replace("key,topic,text", "key,topic,title"))
    asked = ["--from", place / "first", "--graph", tmp_path / "data", "--out", tmp_path / "no"]
    with pytest.raises(NodenovaError, match=r"nodes\.csv: no column 'text'; it has key, topic, ti"):
        nodenova("discover", *asked)
    assert not (tmp_path / "no").exists()


def test_ctrl_c_leaves_no_half_written_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object, **told: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nodenova.runs.folder.review_page", stop)
    asked = ["discover", "--from", place / "first", "--graph", place / "autumn", "--num-new", 1]
    asked += ["--set", "n_resamples=0", "--out", tmp_path / "no", "-q"]
    assert "stopped; nothing was written" in nodenova(*asked, code=130)
    assert not list(tmp_path.iterdir())


def test_the_same_command_gives_the_same_bytes(place: Path, later: str, tmp_path: Path) -> None:
    asked = ["--from", place / "first", "--graph", place / "autumn", "--set", "n_resamples=2"]
    nodenova("discover", *asked, "--out", tmp_path / "again", "-q")
    for name in ("predictions.csv", "classes.csv", "model/model.json"):
        assert (tmp_path / "again" / name).read_bytes() == (place / "second" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("refresh", ["always", "never"])
def test_wordnet_keeps_the_classes_of_its_old_nodes_when_it_grows(
    tmp_path: Path, refresh: str
) -> None:
    labelled = nova.load_dataset("wordnet")
    rng = np.random.default_rng(0)
    early = np.sort(rng.permutation(labelled.graph.num_nodes)[:8000])
    y = np.where(rng.random(labelled.graph.num_nodes) < 0.3, labelled.y, -1)
    y[y > 6] = -1
    for name, ids in (("spring", early), ("summer", np.arange(labelled.graph.num_nodes))):
        graph = labelled.graph.subgraph(ids)
        x = {"x_data": graph.x.data, "x_indices": graph.x.indices, "x_indptr": graph.x.indptr}
        np.savez(
            tmp_path / f"{name}.npz",
            **x,
            x_shape=graph.x.shape,
            edge_index=graph.edge_index,
            y=y[ids],
            node_ids=graph.node_ids,
            feature_names=np.array(graph.feature_names),
            class_names=np.array(labelled.class_names),
        )
    first = ["--graph", tmp_path / "spring.npz", "--num-new", 3, "--out", tmp_path / "first", "-q"]
    nodenova("discover", *first)
    second = ["--from", tmp_path / "first", "--graph", tmp_path / "summer.npz", "-q"]
    nodenova("discover", *second, "--refresh", refresh, "--out", tmp_path / "second")
    was, now = (
        {line["node"]: line["class"] for line in table(tmp_path / name / "predictions.csv")}
        for name in ("first", "second")
    )
    assert np.mean([now[node] == c for node, c in was.items()]) >= 0.98
