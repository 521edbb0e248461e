"""From a user's files to named classes, by the command line."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.errors import NodenovaError, SettingError
from nodenova.model.loading import load_model
from nodenova.model.saving import weights_digest

TOPICS = ("birds", "boats", "bread", "beans", "bells")


def write_tables(folder: Path, nodes: int, hide: tuple[str, ...] = ("beans", "bells")) -> None:
    """nodes.csv (id, topic, text) and edges.csv of the first `nodes` nodes of one graph.

    Topics in `hide` are not told.
    """
    data = nova.synthetic(nodes=240, classes=5, words=120, seed=4)
    folder.mkdir(exist_ok=True)
    x = data.graph.x.toarray()
    with (folder / "nodes.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "topic", "text"])
        for i in range(nodes):
            topic = TOPICS[data.y[i]]
            words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
            lines.writerow([f"n{i}", "" if topic in hide else topic, words])
    inside = (data.graph.edge_index < nodes).all(axis=0)
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        lines.writerows((f"n{a}", f"n{b}") for a, b in data.graph.edge_index[:, inside].T)


def nodenova(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def files(folder: Path) -> list[object]:
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    write_tables(folder / "data", nodes=200)
    options = [
        "--label-column",
        "topic",
        "--text-column",
        "text",
        "--num-new",
        2,
        "--out",
        folder / "run",
    ]
    said = nodenova("discover", *files(folder / "data"), *options)
    assert "report.html" in said
    assert "birds" in said
    return folder / "run"


def test_discovered_classes_are_the_ones_that_were_hidden(run: Path) -> None:
    predicted = {line["node"]: line["name"] for line in table(run / "predictions.csv")}
    y = nova.synthetic(nodes=240, classes=5, words=120, seed=4).y
    for i, topic in enumerate(TOPICS):
        names = [predicted[f"n{j}"] for j in range(200) if y[j] == i]
        common = max(set(names), key=names.count)
        assert names.count(common) > 0.8 * len(names)
        assert (common == topic) == (i < 3)  # known classes by their names, hidden ones by new ones


def mixed_tables(folder: Path) -> None:
    """As `write_tables`, with every third label of a known topic left out."""
    write_tables(folder, nodes=200)
    lines = (folder / "nodes.csv").read_text().splitlines()
    for i in range(1, len(lines), 3):
        node, _, text = lines[i].split(",")
        lines[i] = f"{node},,{text}"
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")


COLUMNS = ["--label-column", "topic", "--text-column", "text"]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_unlabelled_nodes_of_known_topics_are_told_from_new_ones(tmp_path: Path) -> None:
    mixed_tables(tmp_path / "data")
    asked = ["discover", *files(tmp_path / "data"), *COLUMNS, "--num-new", 2]
    said = nodenova(*asked, "--out", tmp_path / "run")
    assert "You asked for 2 new classes; " in said
    y = nova.synthetic(nodes=240, classes=5, words=120, seed=4).y
    hidden = [i for i in range(0, 200, 3) if y[i] < 3]
    names = [line["name"] for line in table(tmp_path / "run" / "predictions.csv")]
    right = np.mean([names[i] == TOPICS[y[i]] for i in hidden])
    assert right > 0.8
    nodenova(*asked[:-1], 5, "--all-new", "--out", tmp_path / "strict", "-q")
    assert [
        load_model(tmp_path / name / "model").stages[-1].mixed for name in ("run", "strict")
    ] == [True, False]
    facts = [
        json.loads((tmp_path / name / "run.json").read_text())["facts"]
        for name in ("run", "strict")
    ]
    assert ["New nodes" in each for each in facts] == [False, True]


@pytest.mark.parametrize("number", [0, 2])
def test_the_number_of_classes_is_counted_unless_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write_tables(tmp_path / "data", nodes=120)
    count = nova.ClassCountEstimate(number, (0.1, 0.2, 0.7), 0.9, 0.01, 0.5, 60)
    monkeypatch.setattr("nodenova.discovery.count_new", lambda *given, **more: count)
    said = nodenova("discover", *files(tmp_path / "data"), *COLUMNS, "--out", tmp_path / "run")
    assert count.sentence() in said
    classes = table(tmp_path / "run" / "classes.csv")
    assert [line["kind"] for line in classes] == ["known"] * 3 + ["discovered"] * number
    page = (tmp_path / "run" / "report.html").read_text()
    assert ("No new class." in page) == (number == 0)
    assert load_model(tmp_path / "run" / "model").stages[-1].count == count


def test_count_says_how_many_there_seem_to_be_and_writes_no_model(tmp_path: Path) -> None:
    write_tables(tmp_path / "data", nodes=120)
    asked = ["count", *files(tmp_path / "data"), *COLUMNS, "--json", tmp_path / "count.json"]
    said = nodenova(*asked)
    found = json.loads((tmp_path / "count.json").read_text())
    loaded = nova.load_graph(
        nodes=tmp_path / "data" / "nodes.csv",
        edges=tmp_path / "data" / "edges.csv",
        label_column="topic",
        text_columns=["text"],
    )
    old, new, _ = nova.tasks_from_labels(loaded.canonical())
    expected = nova.count_new(nova.fit(old), new)
    assert found["number"] == expected.number
    assert found["probabilities"] == pytest.approx(expected.probabilities)
    assert (found["low"], found["high"], found["mixed"]) == (expected.low, expected.high, True)
    assert expected.sentence() in said
    shown = [line.split() for line in said.splitlines()[-3:]]
    assert all(part[1].endswith("%") for part in shown)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "count.json"}
    assert nodenova(*asked, "--all-new", "--quiet") == ""
    strict = json.loads((tmp_path / "count.json").read_text())
    assert (strict["mixed"], strict["probabilities"][0], strict["p_value"]) == (False, 0.0, None)


def test_labels_in_discovered_classes_are_said_loudly_and_kept_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    write_tables(tmp_path / "data", nodes=200)
    y = nova.synthetic(nodes=240, classes=5, words=120, seed=4).y
    path = tmp_path / "data" / "nodes.csv"
    lines = path.read_text().splitlines()
    wrong = {  # six beans and six bells are called birds, boats and bread
        i: TOPICS[number % 3]
        for c in (3, 4)
        for number, i in enumerate(np.flatnonzero(y[:200] == c)[:6].tolist())
    }
    for i, topic in wrong.items():
        node, _, text = lines[i + 1].split(",")
        lines[i + 1] = f"{node},{topic},{text}"
    path.write_text("\n".join(lines) + "\n")
    asked = ["discover", *files(tmp_path / "data"), *COLUMNS, "--num-new", 2]
    result = CliRunner().invoke(
        app, [str(a) for a in [*asked, "--out", tmp_path / "run"]], catch_exceptions=False
    )
    sentence = r"warning: The model would move (\d+) of your \d+ labelled nodes into"
    (number,) = re.findall(sentence, result.stderr)
    assert int(number) >= 8
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"{number} of your " in page.split('class="lead"')[0]
    kept = table(tmp_path / "run" / "predictions.csv")
    assert {i: kept[i]["name"] for i in wrong} == wrong
    assert [kept[i]["agrees"] for i in wrong].count("no") >= int(number)
    nodenova(*asked, "--relabel", "--out", tmp_path / "other", "-q")
    other = table(tmp_path / "other" / "predictions.csv")
    assert sum(other[i]["kind"] == "discovered" for i in wrong) == int(number)
    assert [line["label"] for line in other] == [line["label"] for line in kept]


def test_the_same_command_twice_is_refused_and_with_overwrite_gives_the_same_bytes(
    run: Path, tmp_path: Path
) -> None:
    data = run.parent / "data"
    options = [
        "--label-column",
        "topic",
        "--text-column",
        "text",
        "--num-new",
        2,
        "--title",
        "run",  # as the folder that it is compared with
        "--out",
        tmp_path / "again",
    ]
    nodenova("discover", *files(data), *options, "--quiet")
    first = (tmp_path / "again" / "report.html").read_bytes()
    assert first == (run / "report.html").read_bytes()
    with pytest.raises(NodenovaError, match="is not empty; choose another --out"):
        nodenova("discover", *files(data), *options)
    assert nodenova("discover", *files(data), *options, "--overwrite", "--quiet") == ""
    assert (tmp_path / "again" / "report.html").read_bytes() == first


def test_a_grown_file_is_read_by_the_same_recipe_and_unknown_words_are_counted(
    run: Path, tmp_path: Path
) -> None:
    write_tables(tmp_path / "grown", nodes=240)
    table = (tmp_path / "grown" / "nodes.csv").read_text()
    (tmp_path / "grown" / "nodes.csv").write_text(table + "n999,,word1 word2 zebra quagga\n")
    said = nodenova(
        "predict",
        run,
        *files(tmp_path / "grown"),
        "--out",
        tmp_path / "p.csv",
        "--json",
        tmp_path / "p.json",
    )
    assert "2 different words are too rare, too common or unknown; ignored" in said
    summary = json.loads((tmp_path / "p.json").read_text())
    assert summary["nodes"] == 241
    assert sum(c["nodes"] for c in summary["classes"]) == 241
    # Nodes that were there before keep their class, but for a few at the new edges.
    with (tmp_path / "p.csv").open(newline="") as file:
        now = {line["node"]: line["class"] for line in csv.DictReader(file)}
    with (run / "predictions.csv").open(newline="") as file:
        before = {line["node"]: line["class"] for line in csv.DictReader(file)}
    assert np.mean([now[node] == c for node, c in before.items()]) > 0.95


def test_a_number_of_threads_changes_no_prediction_and_nonsense_is_refused(
    run: Path, tmp_path: Path
) -> None:
    said = []
    for threads in ("1", "3"):
        path = tmp_path / f"{threads}.csv"
        nodenova("predict", run, "--out", path, "--quiet", "--threads", threads)
        said.append(path.read_text())
    assert said[0] == said[1]
    refused = CliRunner().invoke(app, ["predict", str(run), "--threads", "many"])
    assert isinstance(refused.exception, SettingError)
    assert "--threads must be auto or a positive whole number" in str(refused.exception)


def test_too_many_unsure_nodes_are_an_exit_code_for_a_cron_job(run: Path, tmp_path: Path) -> None:
    assert nodenova("predict", run, "--out", tmp_path / "p.csv", "--quiet", "--max-unsure", 1) == ""
    result = CliRunner().invoke(
        app,
        [
            "predict",
            str(run),
            "--out",
            str(tmp_path / "p.csv"),
            "--min-confidence",
            "1",
            "--max-unsure",
            "0.1",
        ],
    )
    assert result.exit_code == 3
    assert "more than --max-unsure 0.1 allows" in result.output
    assert (tmp_path / "p.csv").is_file()


def test_a_review_changes_what_predict_says(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    options = [
        "--label-column",
        "topic",
        "--features",
        "text",
        "--num-new",
        2,
        "--seed",
        1,
        "--out",
        copy,
    ]
    nodenova("discover", *files(run.parent / "data"), *options, "--quiet")
    decisions = [{"do": "rename", "class": 3, "name": "pulses"}, {"do": "reject", "class": 4}]
    digest = weights_digest(load_model(copy / "model"))
    document = {"format": "nodenova review", "version": 1, "model": digest, "decisions": decisions}
    (tmp_path / "review.json").write_text(json.dumps(document))
    said = nodenova("apply-review", copy, tmp_path / "review.json")
    assert "2 decisions are part of the model now; it has 4 classes" in said
    said = nodenova("predict", copy, "--out", tmp_path / "p.csv")
    assert "pulses" in said
    assert "new-4" not in (tmp_path / "p.csv").read_text()
    assert "pulses" in nodenova("classes", copy)
    with pytest.raises(NodenovaError, match=r"review.json: the review was made for another model"):
        nodenova("apply-review", run, tmp_path / "review.json")


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "nodenova review"}'])
def test_a_broken_review_is_refused_by_name(run: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "review.json").write_text(content)
    with pytest.raises(NodenovaError, match=r"review\.json: "):
        nodenova("apply-review", run, tmp_path / "review.json")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--num-new", 0], "--num-new must be at least 1, it is 0"),
        (["--num-new", "few"], "--num-new is auto or a whole number, not 'few'"),
        (["--all-new", "--new-column", "x"], "--all-new means every .*--new-column"),
        (["--method", "sword"], "on the prism encoder only, not on gcn: give num_new"),
        (
            ["--num-new", 2, "--min-confidence", 2],
            "--min-confidence is a probability from 0 to 1, not 2",
        ),
        (
            ["--num-new", 2, "--method", "oracle"],
            "--method oracle needs labels of the new classes",
        ),
        (["--num-new", 2, "--method", "nope"], "unknown method 'nope'"),
        (["--num-new", 5000], "5000 new classes need at least 5000 unlabelled nodes, there are"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_written(
    run: Path, tmp_path: Path, options: list[object], sentence: str
) -> None:
    with pytest.raises(NodenovaError, match=sentence):
        nodenova(
            "discover",
            *files(run.parent / "data"),
            "--label-column",
            "topic",
            *options,
            "--out",
            tmp_path / "no",
        )
    assert not (tmp_path / "no").exists()


def test_the_report_is_written_anew_with_the_same_bytes(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for name in ("report.html", "predictions.csv", "classes.csv"):
        (copy / name).unlink()
    assert "report.html" in nodenova("report", copy)
    for name in ("report.html", "predictions.csv", "classes.csv"):
        assert (copy / name).read_bytes() == (run / name).read_bytes()


def test_exports_are_written_and_wrong_forms_refused(run: Path, tmp_path: Path) -> None:
    nodenova("export", run, "--to", "csv", "--out", tmp_path / "tables")
    assert (tmp_path / "tables" / "edges.csv").is_file()
    nodenova("export", run, "--to", "embeddings", "--out", tmp_path / "z.npz")
    forms = "table, networkx, pyg, csv, embeddings, atlas, datamapplot, gephi, onnx, model"
    with pytest.raises(NodenovaError, match=f"--to is one of {forms}, not 'xml'"):
        nodenova("export", run, "--to", "xml", "--out", tmp_path / "x")


def test_the_demo_ends_with_classes_named_by_their_words(tmp_path: Path) -> None:
    said = " ".join(nodenova("demo", "--out", tmp_path / "demo").split())
    assert "plant" in said
    assert "food" in said
    assert "report.html" in said
    assert (tmp_path / "demo" / "report.html").is_file()


@pytest.mark.slow
def test_the_mixed_demo_finds_unknown_kinds_among_known_ones_and_makes_a_page(
    tmp_path: Path,
) -> None:
    said = " ".join(nodenova("demo", "--mixed", "--out", tmp_path / "demo").split())
    assert "of the 9,647 unlabelled nodes seem to belong to new classes" in said
    assert "Suggested:" in said
    (graded,) = re.findall(r"nouns are correct: (\d+)% of the known kinds, (\d+)%", said)
    assert min(map(int, graded)) > 60
    model = load_model(tmp_path / "demo" / "model")
    assert model.stages[-1].mixed
    assert model.stages[-1].count is not None
    page = (tmp_path / "demo" / "report.html").read_text()
    assert 'id="suggestions"' in page
    assert "What was found" in page


def test_labels_of_a_table_of_their_own_go_before_those_of_the_nodes(tmp_path: Path) -> None:
    write_tables(tmp_path / "data", nodes=120)
    labels = tmp_path / "labels.csv"
    labels.write_text("node,label,why\nn0,birds,moved\nn1,toys,settled\nn2,toys,settled\n")
    asked = [*files(tmp_path / "data"), "--label-column", "topic", "--text-column", "text"]
    asked += ["--num-new", 2, "--set", "n_resamples=0", "--no-report", "--labels"]
    said = nodenova("discover", *asked, labels, "--out", tmp_path / "run")
    assert "labels.csv: 3 labels, which take precedence over the table" in " ".join(said.split())
    with (tmp_path / "run" / "predictions.csv").open(newline="") as file:
        label = {row["node"]: row["label"] for row in csv.DictReader(file)}
    assert [label[f"n{i}"] for i in range(3)] == ["birds", "toys", "toys"]
    labels.write_text("node,label\nn0,birds\nelsewhere,toys\n")
    with pytest.raises(NodenovaError, match=r"labels\.csv: 1 label .* first: 'elsewhere'"):
        nodenova("discover", *asked, labels, "--out", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_an_encoder_is_trained_on_batches_and_its_model_keeps_them(tmp_path: Path) -> None:
    write_tables(tmp_path, 100)
    tables = ["--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv"]
    trained = ["--label-column", "topic", "--set", "epochs=5", "--encoder", "gcn", "--batch", 32]
    trained += ["--device", "cpu", "--num-new", 2, "--all-new", "--no-report", "-q"]
    with pytest.raises(SettingError, match=r"^simgcd trains on the whole graph, not with batch=32"):
        nodenova("discover", *tables, *trained, "--method", "simgcd", "--out", tmp_path / "no")
    nodenova("discover", *tables, *trained, "--method", "sword", "--out", tmp_path / "run")
    model = load_model(tmp_path / "run/model")
    assert model.stages[0].settings["batch"] == 32
    assert model.frozen_encoder().spec.batch == 32
