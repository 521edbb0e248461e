"""nodenova predict --only, --add and --max-drift; nova.open_run."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.errors import NodenovaError

TOPICS = ("birds", "boats", "bread", "beans")
NODES, FIRST = 260, 220


def nodenova(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {line["node"]: line for line in csv.DictReader(file)}


def write(folder: Path, nodes: np.ndarray, edges: np.ndarray, told: dict[int, str]) -> list[object]:
    """Tables of these nodes and edges of one graph; the options that name them."""
    data = nova.synthetic(nodes=NODES, classes=4, words=120, seed=4)
    folder.mkdir()
    x = data.graph.x.toarray()
    lines = ["id,topic,text"]
    for i in nodes:
        words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
        lines.append(f"n{i},{told.get(int(i), '')},{words}")
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    pairs = [f"n{a},n{b}" for a, b in edges.T]
    (folder / "edges.csv").write_text("\n".join(["source,target", *pairs]) + "\n")
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


@pytest.fixture(scope="module")
def data() -> nova.LabelledGraph:
    return nova.synthetic(nodes=NODES, classes=4, words=120, seed=4)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, data: nova.LabelledGraph) -> Path:
    """A run of the first nodes, all nodes as a later graph, and those that came alone."""
    folder = tmp_path_factory.mktemp("asked")
    ends = data.graph.edge_index[:, data.graph.edge_index[0] < data.graph.edge_index[1]]
    told = {i: TOPICS[data.y[i]] for i in range(FIRST) if data.y[i] < 3 and i % 3}
    first = write(folder / "first", np.arange(FIRST), ends[:, (ends < FIRST).all(axis=0)], told)
    write(folder / "all", np.arange(NODES), ends, {})
    write(folder / "came", np.arange(FIRST, NODES), ends[:, (ends >= FIRST).any(axis=0)], {})
    asked = ["--label-column", "topic", "--text-column", "text", "--num-new", 1]
    nodenova("discover", *first, *asked, "--no-report", "--out", folder / "run")
    return folder


def files(place: Path, name: str) -> list[object]:
    return ["--nodes", place / name / "nodes.csv", "--edges", place / name / "edges.csv"]


def test_nodes_of_the_run_are_looked_up_without_pytorch(place: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("n7\nn3\n\n")
    code = (
        "import sys\nfrom nodenova.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "assert 'torch' not in sys.modules"
    )
    asked = ["predict", place / "run", "--only", tmp_path / "ids.txt", "--json", tmp_path / "j"]
    command = [sys.executable, "-c", code, *map(str, asked)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    kept = rows(place / "run" / "predictions.csv")
    document = json.loads((tmp_path / "j").read_text())
    assert document["how"] == "kept"
    assert [line["node"] for line in document["predictions"]] == ["n7", "n3"]
    for line in document["predictions"]:
        assert str(line["class"]) == kept[line["node"]]["class"]
        assert line["name"] in said.stdout
    assert not (tmp_path / "predictions.csv").exists()


def test_some_nodes_of_a_later_graph_are_as_in_the_whole_of_it(place: Path, tmp_path: Path) -> None:
    whole, some = tmp_path / "whole.csv", tmp_path / "some.csv"
    nodenova("predict", place / "run", *files(place, "all"), "--out", whole)
    asked = ["--only", "n250,n3,n222", "--out", some, "--json", tmp_path / "j"]
    nodenova("predict", place / "run", *files(place, "all"), *asked)
    assert json.loads((tmp_path / "j").read_text())["how"] == "neighborhood"
    expected, found = rows(whole), rows(some)
    assert list(found) == ["n250", "n3", "n222"]
    for node, line in found.items():
        differs = abs(float(line.pop("probability")) - float(expected[node].pop("probability")))
        assert differs < 2e-4
        assert line == expected[node]


def test_nodes_that_came_are_added_to_the_graph_of_the_run(place: Path, tmp_path: Path) -> None:
    whole, came = tmp_path / "whole.csv", tmp_path / "came.csv"
    nodenova("predict", place / "run", *files(place, "all"), "--out", whole)
    nodenova("predict", place / "run", *files(place, "came"), "--add", "--out", came)
    expected, found = rows(whole), rows(came)
    assert list(found) == [f"n{i}" for i in range(FIRST, NODES)]
    assert {n: line["class"] for n, line in found.items()} == {
        n: expected[n]["class"] for n in found
    }


def test_an_edge_to_nobody_is_refused_and_named(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "came", tmp_path / "came")
    edges = tmp_path / "came" / "edges.csv"
    edges.write_text(edges.read_text() + "n230,nobody\n")
    asked = ["predict", place / "run", *files(tmp_path, "came"), "--add"]
    with pytest.raises(NodenovaError, match=r"edges\.csv: node 'nobody' is neither among"):
        nodenova(*asked)
    assert "n230" in nodenova(*asked, "--drop-unknown-edges", "--only", "n230")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--only", "n1,zzz"], "has no node 'zzz'"),
        (["--only", ","], "names no node"),
        (["--only", "n1", "--max-drift", "0.1"], "--max-drift is about all nodes"),
        (["--max-drift", "2"], "--max-drift is a share from 0 to 1"),
        (["--max-drift", "0.1"], "compared with the graph of the run"),
        (["--add"], "--add needs a run, and --nodes"),
    ],
)
def test_what_cannot_be_asked_is_said(
    place: Path, asked: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NodenovaError, match=said):
        nodenova("predict", place / "run", *asked)


def test_a_graph_that_is_like_the_one_before_is_no_drift(place: Path, tmp_path: Path) -> None:
    asked = ["predict", place / "run", *files(place, "all"), "--out", tmp_path / "p.csv"]
    said = nodenova(*asked, "--max-drift", "0.1", "--json", tmp_path / "j")
    assert "(was " in said
    drift = json.loads((tmp_path / "j").read_text())["drift"]
    assert drift["distance"] < 0.1
    assert sum(drift["shares_before"].values()) == pytest.approx(1, abs=1e-3)


def test_drift_ends_with_3_where_that_was_asked_and_is_a_warning_else(
    place: Path, tmp_path: Path, data: nova.LabelledGraph
) -> None:
    beans = np.flatnonzero(data.y == 3)  # only the discovered class is left
    write(tmp_path / "later", beans, np.zeros((2, 0), dtype=int), {})
    asked = ["predict", place / "run", *files(tmp_path, "later"), "--out", tmp_path / "p.csv"]
    assert "more than --max-drift 0.1 allows" in nodenova(*asked, "--max-drift", 0.1, code=3)
    assert "a new discovery may be due" in nodenova(*asked)
    assert (tmp_path / "p.csv").is_file()


def test_a_run_without_its_predictions_says_that_nothing_can_be_compared(
    place: Path, tmp_path: Path
) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    (tmp_path / "run" / "predictions.csv").unlink()
    asked = ["predict", tmp_path / "run", *files(place, "all"), "--out", tmp_path / "p.csv"]
    assert "has no predictions" in nodenova(*asked)
    with pytest.raises(NodenovaError, match=r"--max-drift: .* has no predictions"):
        nodenova(*asked, "--max-drift", 0.1)


def test_predict_says_nothing_of_nodes_to_discover_in(place: Path, tmp_path: Path) -> None:
    said = nodenova(
        "predict", place / "run", *files(place, "all"), "--out", tmp_path / "p.csv",
        "--label-column", "topic",
    )  # fmt: skip
    assert "searching all" not in said


def test_a_saved_model_reads_tables_by_the_recipe_it_keeps(place: Path, tmp_path: Path) -> None:
    model = nova.load_model(place / "run")
    model.save(tmp_path / "model")
    asked = [*files(place, "all"), "--relabel"]
    nodenova("predict", tmp_path / "model", *asked, "--out", tmp_path / "by_model.csv")
    nodenova("predict", place / "run", *asked, "--out", tmp_path / "by_run.csv")
    by_model, by_run = rows(tmp_path / "by_model.csv"), rows(tmp_path / "by_run.csv")
    assert [p["class"] for p in by_model.values()] == [p["class"] for p in by_run.values()]
    tables = {kind: place / "all" / f"{kind}.csv" for kind in ("nodes", "edges")}
    graph = nova.load_graph(**tables, recipe=nova.load_model(tmp_path / "model").recipe).graph
    said = [str(c) for c in model.predict(graph)]
    assert said == [line["class"] for line in by_run.values()]


def test_a_run_from_before_models_kept_the_recipe_is_opened_with_it(
    place: Path, tmp_path: Path
) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    path = tmp_path / "run" / "model" / "model.json"
    document = json.loads(path.read_text())
    del document["fitted_on"]["recipe"]
    path.write_text(json.dumps(document))
    assert nova.load_model(path.parent).recipe is None
    kept, now = nova.load_model(tmp_path / "run").recipe, nova.load_model(place / "run").recipe
    assert kept is not None
    assert kept["words"] == now["words"]


class TestOpenRun:
    def test_it_has_all_that_the_run_has(self, place: Path) -> None:
        run = nova.open_run(place / "run")
        assert run.graph.num_nodes == FIRST
        assert list(run.predictions["node"]) == run.graph.node_ids.tolist()
        assert run.recipe.text_columns == ("text",)
        assert set(run.labels.values()) == set(TOPICS[:3])
        assert run.labels["n1"] == rows(place / "run" / "predictions.csv")["n1"]["label"]
        assert [info.name for info in run.classes][:3] == ["birds", "boats", "bread"]
        assert run.suggestions.to_json()["format"]
        assert run.classes[-1].name in run._repr_html_()
        assert nova.prediction_frame(run).equals(run.predictions)

    def test_it_predicts_as_the_command_does(self, place: Path, tmp_path: Path) -> None:
        run = nova.open_run(place / "run")
        tables = {kind: place / "all" / f"{kind}.csv" for kind in ("nodes", "edges")}
        nodenova("predict", place / "run", *files(place, "all"), "--out", tmp_path / "p.csv")
        expected = [line["class"] for line in rows(tmp_path / "p.csv").values()]
        assert run.predict(**tables)["class"].astype(str).tolist() == expected
        only = run.predict(**tables, only=["n255"])
        assert only["class"].astype(str).tolist() == [expected[255]]
        came = {kind: place / "came" / f"{kind}.csv" for kind in ("nodes", "edges")}
        assert run.predict(**came, add=True)["class"].astype(str).tolist() == expected[FIRST:]
        assert run.predict(only=["n3"]).iloc[0].to_dict() == pytest.approx(
            run.predictions.iloc[3].to_dict(), abs=2e-4
        )

    def test_decisions_become_part_of_it_and_can_be_taken_back(
        self, place: Path, tmp_path: Path
    ) -> None:
        shutil.copytree(place / "run", tmp_path / "run")
        run = nova.open_run(tmp_path / "run")
        number = run.model.classes[-1].id
        run.apply([{"do": "rename", "class": number, "name": "beans"}])
        assert run.model.class_names[-1] == "beans"
        assert nova.open_run(tmp_path / "run").predictions["name"].isin(["beans"]).any()
        with pytest.raises(NodenovaError, match="decision 1"):
            run.apply([{"do": "rename", "class": 99, "name": "beans"}])
        assert run.undo().class_names[-1] != "beans"
