"""Protocols as files: what a method may read, and a grader that agrees with nodenova."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import nodenova as nova
from nodenova.bench import grader
from nodenova.bench.protocol_files import KNOWN, splits_of, write_protocol
from nodenova.bench.runs import OPEN_WORLD
from nodenova.data.labels import LabelledGraph
from nodenova.data.protocols import PROTOCOLS, PaperSplit, protocol_of
from nodenova.errors import SettingError, StorageError
from nodenova.evaluation import metrics
from nodenova.evaluation.grade import Grade
from nodenova.io.load import load_graph
from nodenova.testing import scramble


@pytest.fixture(scope="module")
def graph() -> LabelledGraph:
    return nova.synthetic(nodes=400, classes=5, words=60)


@pytest.fixture(scope="module")
def citeseer() -> LabelledGraph:
    return nova.load_dataset("citeseer")


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def worlds(index: dict[str, Any], folder: Path, labelled: LabelledGraph) -> list[Any]:
    """(name, tasks and exams as nodenova makes them) of every exported split."""
    found = []
    for split in index["splits"]:
        stated = json.loads((folder / "splits" / split["name"] / "split.json").read_text())
        names = stated["old_classes"]
        old = tuple(labelled.class_names.index(name) for name in names)
        if stated["protocol"] in PROTOCOLS:
            protocol = protocol_of(stated["protocol"], stated["number"] or 0, stated["setting"])
        else:
            draw = stated["protocol"].removeprefix("class-splits-").replace("paper", "published")
            protocol = PaperSplit(old, draw=draw, setting=stated["setting"])
        found.append((split["name"], stated, protocol.world(labelled, stated["seed"])))
    return found


def write_predictions(
    path: Path, world: Any, found: list[int], rng: np.random.Generator
) -> list[np.ndarray]:
    """Random classes for the test nodes of each session, and a score of being new."""
    predicted, rows = [], []
    for session, exam in enumerate(world.exams, start=1):
        most = exam.sizes[0] + sum(found[:session])
        y = rng.integers(0, most, len(exam.ids))
        y[0] = most - 1
        predicted.append(y)
        ids = exam.graph.node_ids[exam.ids].tolist()
        rows += [
            (node, c, session, round(float(p), 1))
            for node, c, p in zip(ids, y, rng.random(len(ids)), strict=True)
        ]
    order = rng.permutation(len(rows))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "class", "session", "p_new"])
        writer.writerows(rows[i] for i in order)
    return predicted


def same(ours: float, theirs: float) -> bool:
    return ours == theirs or (np.isnan(ours) and np.isnan(theirs))


def agreements(folder: Path, name: str, labelled: LabelledGraph, seeds: list[int]) -> int:
    """Number of scores compared; every score of the grader is that of nodenova, bit for bit."""
    splits = splits_of(name, labelled, seeds, num_old=labelled.num_classes - 2)
    write_protocol(folder, name, labelled, splits)
    index = json.loads((folder / "protocol.json").read_text())
    rng, count = np.random.default_rng(0), 0
    for split, stated, world in worlds(index, folder, labelled):
        for trial in range(2):
            given = [session["num_new"] for session in stated["sessions"]]
            found = [int(rng.integers(1, 4)) if trial or n is None else n for n in given]
            predicted = write_predictions(folder / "p.csv", world, found, rng)
            asked = found if trial else None
            graded = grader.grade(folder, split, folder / "p.csv", found=asked)
            p_new = {
                (line["node"], int(line["session"])): float(line["p_new"])
                for line in lines(folder / "p.csv")
            }
            for s, (exam, y) in enumerate(zip(world.exams, predicted, strict=True), start=1):
                sizes = (exam.sizes[0], *found[:s])
                counts = metrics.confusion_matrix(exam.y, y, sum(exam.sizes), sum(sizes))
                grade = Grade(counts, None, exam.sizes, sizes)
                theirs = graded["sessions"][s - 1]["scores"]
                for matching in metrics.MATCHINGS:
                    ours = grade.scores(matching)
                    for score in ("old", "new", "all", "h"):
                        assert same(ours[score], theirs[matching][score]), (split, matching)
                        count += 1
                ours = grade.scores() | {"unknown": metrics.new_alone(counts, sum(exam.sizes[:-1]))}
                for score in ("old_new_accuracy", "nmi", "ari", "unknown"):
                    assert same(ours[score], theirs["other"][score]), (split, score)
                    count += 1
                is_new = exam.y >= sum(exam.sizes[:-1])
                if is_new.any() and not is_new.all():
                    nodes = exam.graph.node_ids[exam.ids]
                    p = np.array([p_new[str(node), s] for node in nodes])
                    for score, value in metrics.detection_scores(p, is_new).items():
                        assert theirs["other"][score] == pytest.approx(value, abs=1e-9)
                        count += 1
            if len(world.exams) > 1:
                assert graded["aa"] == metrics.average_accuracy([grade.phase_row()])
    return count


@pytest.mark.parametrize("name", ["paper", "class-splits", "mixed-50", "count-100", "stages"])
def test_the_grader_agrees_with_nodenova(name: str, graph: LabelledGraph, tmp_path: Path) -> None:
    assert agreements(tmp_path / "out", name, graph, [0, 1]) >= 16


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ("gnnsafe", "cfc")])
def test_the_grader_agrees_with_nodenova_on_citeseer(
    name: str, citeseer: LabelledGraph, tmp_path: Path
) -> None:
    assert agreements(tmp_path / "out", name, citeseer, [0, 1, 2]) >= 32


def test_ties_are_broken_like_scipy_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        counts = rng.integers(0, rng.integers(1, 5), rng.integers(0, 6, 2))
        for ours, theirs in zip(
            grader.assign(counts), linear_sum_assignment(counts, maximize=True), strict=True
        ):
            assert np.array_equal(ours, theirs), counts


def test_every_benchmark_is_a_protocol_and_every_protocol_can_be_written(
    graph: LabelledGraph,
) -> None:
    assert set(OPEN_WORLD) <= set(KNOWN)
    for name in PROTOCOLS:
        if name == "hope":  # has no number
            assert splits_of(name, graph, [1], 3)[0].name == "hope-0-seed-1"
        elif name not in ("pown", "gnnsafe", "openima", "cfc", "closed"):  # of other graphs
            assert splits_of(name, graph, [1], 3)[0].name == f"{name}-1-seed-1"
    with pytest.raises(SettingError, match=r"unknown protocol 'papr'; known: .*paper"):
        splits_of("papr", graph, [0], 3)
    with pytest.raises(SettingError, match="unknown setting"):
        splits_of("paper", graph, [0], 3, "inducive")


def test_a_method_can_read_no_label_of_a_new_node(graph: LabelledGraph, tmp_path: Path) -> None:
    """Files outside answers/ stay the same, byte for byte, when new labels are permuted."""
    labelled = nova.load_dataset("citeseer")
    old = range(4)

    def readable(of: LabelledGraph, place: Path) -> dict[str, bytes]:
        splits = splits_of("paper", of, [0], num_old=4)
        write_protocol(place, "paper", of, splits)
        return {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file() and "answers" not in path.parts and path.name != "protocol.json"
        }

    here = readable(labelled, tmp_path / "a")
    there = readable(scramble(labelled, old), tmp_path / "b")
    differ = {name for name in here if here[name] != there[name]}
    assert differ == {"README.md"}  # it has the hash of the data
    answers = tmp_path / "a/answers/paper-seed-0/session-1.csv"
    assert answers.read_bytes() != (tmp_path / "b/answers/paper-seed-0/session-1.csv").read_bytes()
    exported = load_graph(tmp_path / "a/graph.npz")
    assert (exported.y == -1).all()
    assert np.array_equal(exported.graph.edge_index, labelled.graph.edge_index)


def test_a_split_that_two_seeds_share_is_written_once(citeseer: LabelledGraph) -> None:
    (split,) = splits_of("paper", citeseer, [0, 3], num_old=4)
    assert split.seeds == (0, 3)
    assert len(splits_of("pown", citeseer, [0, 3], num_old=4)) == 3
    assert len(splits_of("mixed-30", citeseer, [0, 3], num_old=4)) == 2


def test_an_inductive_phase_lists_what_it_sees(graph: LabelledGraph, tmp_path: Path) -> None:
    splits = splits_of("paper", graph, [0], 3, "inductive")
    write_protocol(tmp_path / "out", "paper", graph, splits)
    place = tmp_path / "out/splits/paper-seed-0"
    first = {line["node"] for line in lines(place / "visible.csv")}
    unlabelled = {line["node"] for line in lines(place / "session-1/unlabelled.csv")}
    later = {line["node"] for line in lines(place / "session-1/visible.csv")}
    assert unlabelled
    assert not first & unlabelled
    assert first | unlabelled <= later


@pytest.fixture
def exported(graph: LabelledGraph, tmp_path: Path) -> Path:
    splits = splits_of("paper", graph, [0], num_old=3)
    write_protocol(tmp_path / "out", "paper", graph, splits, keep_graph=False)
    return tmp_path / "out"


def test_the_grader_runs_without_nodenova(exported: Path) -> None:
    answers = lines(exported / "answers/paper-seed-0/session-1.csv")
    text = "node,class\n" + "".join(f"{a['node']},{a['class']}\n" for a in answers)
    (exported / "right.csv").write_text(text)
    code = "import sys; sys.modules['nodenova'] = sys.modules['scipy'] = None\n"
    code += (
        "sys.argv = sys.argv[1:]; import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    arguments = ["grade.py", "paper-seed-0", "right.csv", "--json", "s.json"]
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, *arguments],
        cwd=exported, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "H                      100.0     100.0     100.0" in done.stdout
    document = json.loads((exported / "s.json").read_text())
    assert document["sessions"][0]["scores"]["block"]["h"] == 100.0
    assert document["sessions"][0]["sizes"] == [3, 2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("node,class\n1,0\n", "test nodes have no line, such as"),
        ("node\n1\n", "has no column 'class'"),
        ("node,class\n1,x\n", "line 2: class and session must be whole numbers"),
        ("node,class\n1,-1\n", "line 2: classes are numbered from 0"),
        ("node,class\n1,0\n1,0\n", "line 3: node '1' is there twice"),
        ("ALL 9", "class 9 is predicted, but there are 5 classes"),
    ],
)
def test_wrong_predictions_are_refused_by_a_sentence(
    content: str, words: str, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content == "ALL 9":
        nodes = lines(exported / "splits/paper-seed-0/session-1/test.csv")
        content = "node,class\n" + "".join(f"{line['node']},9\n" for line in nodes)
    path = exported / "p.csv"
    path.write_text(content)
    with pytest.raises(grader.WrongFileError, match=words):
        grader.grade(exported, "paper-seed-0", path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("protocol.json", "[" * 100_000, "protocol.json: cannot be read"),
        ("protocol.json", "[]", "not a protocol.json of an exported protocol"),
        ("protocol.json", r'["\ud800"]', "protocol.json: cannot be read"),
        ("splits/paper-seed-0/split.json", '{"sessions": [{"num_new": "x"}]}', "not a split.json"),
        ("answers/paper-seed-0/classes.json", "{}", "not a classes.json"),
        ("answers/paper-seed-0/classes.json", '{"sizes": [3, 9999999], "class_names": []}',
         "does not fit the sessions"),
        ("answers/paper-seed-0/session-1.csv", "node,class\n0,x\n", "none of 0 to 4"),
        ("answers/paper-seed-0/session-1.csv", "node,class\n0,-1\n", "none of 0 to 4"),
        ("p.csv", "node,class\n0,99999999999999999999\n", "a class is a number below 10000"),
        ("p.csv", "node,class,p_new\n0,0,nan\n", "p_new must be a number, not nan"),
    ],
)  # fmt: skip
def test_documents_of_an_export_that_do_not_fit_are_refused_by_a_sentence(
    name: str, content: str, words: str, exported: Path
) -> None:
    (exported / "p.csv").write_text("node,class\n0,0\n")
    (exported / name).write_text(content)
    folder = "answers/paper-seed-0/"
    if name.startswith(folder):  # with the right hash
        index = json.loads((exported / "protocol.json").read_text())
        digest = hashlib.sha256(content.encode()).hexdigest()
        index["splits"][0]["answers"][name.removeprefix(folder)] = digest
        (exported / "protocol.json").write_text(json.dumps(index))
    with pytest.raises(grader.WrongFileError, match=words) as caught:
        grader.grade(exported, "paper-seed-0", exported / "p.csv")
    assert len(str(caught.value)) <= 500


def test_changed_answers_and_unknown_splits_are_refused(exported: Path) -> None:
    (exported / "p.csv").write_text("node,class\n1,0\n")
    with pytest.raises(grader.WrongFileError, match="there is no split 'x'; there are paper-seed"):
        grader.grade(exported, "x", exported / "p.csv")
    (exported / "answers/paper-seed-0/session-1.csv").write_text("node,class\n1,0\n")
    with pytest.raises(grader.WrongFileError, match="its sha256 differs"):
        grader.grade(exported, "paper-seed-0", exported / "p.csv")


class Killed(BaseException):
    """Stands for SIGKILL."""


def is_whole(folder: Path) -> bool:
    """Whether the files of an export are those of its index, no more and no fewer."""
    index = grader.read_index(folder)
    named = dict(index["files"])
    for split in index["splits"]:
        named |= {f"answers/{split['name']}/{k}": code for k, code in split["answers"].items()}
    found = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and ".nodenova" not in str(path) and path.name != "protocol.json"
    }
    return found == named


@pytest.mark.parametrize("call", ["replace", "unlink", "rmdir"])
def test_an_export_that_is_stopped_while_it_is_replaced_is_whole_or_refused(
    call: str,
    exported: Path,
    graph: LabelledGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Programs that are not nodenova read the folder: they complete no change."""
    splits = splits_of("mixed-50", graph, [0], num_old=3)
    place = Path if call == "unlink" else os
    real, refused = getattr(place, call), 0
    for last in range(9):
        folder, left = tmp_path / f"{call}-{last}", [last]
        shutil.copytree(exported, folder)

        def stop(*some: Any, left: list[int] = left, folder: Path = folder, **more: Any) -> Any:
            if (folder / ".commit.nodenova").exists():
                left[0] -= 1
                if left[0] == -1:
                    raise Killed
            return real(*some, **more)

        with monkeypatch.context() as patch, suppress(Killed):
            patch.setattr(place, call, stop)
            write_protocol(folder, "mixed-50", graph, splits, overwrite=True, keep_graph=False)
        if (folder / "protocol.json").exists():
            assert is_whole(folder)
        else:
            with pytest.raises(grader.WrongFileError, match="stopped halfway"):
                grader.read_index(folder)
            refused += 1
        write_protocol(folder, "mixed-50", graph, splits, overwrite=True, keep_graph=False)
        assert is_whole(folder)
        assert grader.read_index(folder)["name"] == "mixed-50"
    assert refused


def test_an_export_is_replaced_only_when_asked(
    exported: Path, graph: LabelledGraph, tmp_path: Path
) -> None:
    splits = splits_of("mixed-50", graph, [0], num_old=3)
    with pytest.raises(StorageError, match="holds an exported protocol"):
        write_protocol(exported, "mixed-50", graph, splits)
    (folder,) = {path.parent for path in (exported / "splits").rglob("split.json")}
    mine = (exported / "mine.txt", folder / "predictions.csv")
    for path in mine:
        path.write_text("work")
    write_protocol(exported, "mixed-50", graph, splits, overwrite=True)
    assert [path.name for path in (exported / "answers").iterdir()] == ["mixed-50-0-seed-0"]
    assert not (folder / "split.json").exists()
    assert [path.read_text() for path in mine] == ["work", "work"]
    index = exported / "protocol.json"
    index.write_text(index.read_text().replace('"splits"', '"others"'))
    with pytest.raises(StorageError, match="damaged, splits is missing"):
        write_protocol(exported, "mixed-50", graph, splits, overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.txt").write_text("work")
    with pytest.raises(StorageError, match=r"is not empty and holds no protocol\.json"):
        write_protocol(tmp_path / "other", "mixed-50", graph, splits, overwrite=True)
