"""Settings are chosen on hidden known classes, and on no label of a new class or a test node."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.bench.tune import (
    Candidate,
    TunedLine,
    Tuning,
    candidates_of,
    grid_of,
    hidden_halves,
    known_part,
    tune,
)
from nodenova.cli import app
from nodenova.data.labels import LabelledGraph
from nodenova.data.splits import with_split
from nodenova.errors import NodenovaError, SettingError, SplitError
from nodenova.files.content import to_json
from nodenova.testing import permute_labels, scramble
from tests.runs.tables import COLUMNS, files, write_tables

FAST = [{"n_resamples": "0"}, {"n_resamples": "0", "refit": "False"}]


def cli(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def graph() -> LabelledGraph:
    return nova.synthetic(nodes=300, classes=6, words=80)


def searched(labelled: LabelledGraph, num_old: int) -> bytes:
    known = known_part(labelled, num_old)
    candidates = candidates_of("prism", "prism", FAST)
    return to_json(tune(known, candidates, "prism", draws=3, seeds=[0]).to_json())


@pytest.mark.parametrize("has_split", [True, False])
def test_labels_of_new_nodes_change_no_bit(graph: LabelledGraph, has_split: bool) -> None:
    labelled = with_split(graph) if has_split else graph
    first = searched(labelled, 4)
    assert first == searched(scramble(labelled, range(4)), 4)
    gone = replace(labelled, y=np.where(labelled.y < 4, labelled.y, -1))
    assert first == searched(gone, 4)


def test_labels_of_test_nodes_change_no_bit_but_known_ones_do(graph: LabelledGraph) -> None:
    labelled = with_split(graph)
    assert labelled.test is not None
    assert labelled.val is not None
    first = searched(labelled, 4)
    assert first == searched(permute_labels(labelled, np.flatnonzero(labelled.test)), 4)
    known = np.flatnonzero(labelled.val & (labelled.y < 4))
    assert first != searched(permute_labels(labelled, known), 4)


def test_the_exam_is_half_of_the_validation_nodes_of_old_classes() -> None:
    labelled = nova.load_dataset("citeseer")
    known = known_part(labelled, 4)
    assert known.class_names == labelled.class_names[:4]
    assert labelled.train is not None
    assert labelled.val is not None
    old = (labelled.y >= 0) & (labelled.y < 4)
    used = known.y >= 0
    assert np.array_equal(used, old & (labelled.train | labelled.val))
    assert np.array_equal(known.train, old & labelled.train)
    assert known.val is not None
    assert known.test is not None
    assert np.array_equal(known.val | known.test, old & labelled.val)
    assert not (known.val & known.test).any()
    assert abs(int(known.val.sum()) - int(known.test.sum())) <= 1


def test_all_labels_of_a_users_graph_are_used_but_answers(graph: LabelledGraph) -> None:
    new = np.flatnonzero(graph.y >= 4)
    mine = nova.UserGraph(graph.graph, graph.y, graph.class_names, new_ids=new)
    known = known_part(mine)
    assert known.class_names == graph.class_names[:4]
    assert np.array_equal(known.y, np.where(graph.y < 4, graph.y, -1))
    other = permute_labels(mine, new)
    assert known.fingerprint() == known_part(other).fingerprint()


def test_one_known_class_cannot_be_hidden(graph: LabelledGraph) -> None:
    with pytest.raises(SplitError, match="1 known class; to hide one, at least 2 are needed"):
        known_part(graph, 1)


def test_half_of_the_classes_stay_known() -> None:
    assert hidden_halves(2, 6) == [(0,), (1,)]
    assert len(set(hidden_halves(7, 6))) == 6
    assert {len(way) for way in hidden_halves(30, 4)} == {15}
    assert hidden_halves(30, 4, seed=1) != hidden_halves(30, 4)
    assert hidden_halves(7, 6, seed=1) != hidden_halves(7, 6)


def test_a_grid_has_every_combination_once() -> None:
    assert len(grid_of([("k", "1,2,3"), ("eta", "0.1,0.2")])) == 6
    for pairs, words in (
        ([("k", "1"), ("k", "2")], "--grid k is there twice"),
        ([("k", ",")], "--grid k has no value"),
        ([("k", ",".join("9" * 40)), ("eta", ",".join("9" * 40))], "1,600 combinations"),
    ):
        with pytest.raises(SettingError, match=words):
            grid_of(pairs)
    texts = [each.text for each in candidates_of("sword", "gcn", grid_of([("k", "3,4")]))]
    assert texts == ["defaults", "k=4"]  # 3 is the default
    with pytest.raises(SettingError, match="unknown setting of sword 'kk'"):
        candidates_of("sword", "gcn", [{"kk": "3"}])
    with pytest.raises(SettingError, match="only for encoders that are trained"):
        candidates_of("prism", "prism", [{"fit.epochs": "3"}])


def made_up(*lines: tuple[float, ...]) -> Tuning:
    texts = ("defaults", *(f"k={i}" for i in range(1, len(lines))))
    tuned = [
        TunedLine(Candidate(text, None), {"h": line})
        for text, line in zip(texts, lines, strict=True)
    ]
    return Tuning("sword", "gcn", "d", (("a",),) * len(lines[0]), (0,), "h", tuple(tuned))


def test_the_choice_is_the_highest_mean_and_says_how_sure_it_is() -> None:
    best = made_up((50.0, 50.0), (60.0, 61.0), (40.0, 90.0))
    assert best.chosen.candidate.text == "k=2"
    assert best.sentence.startswith("The gain is within two standard errors")
    sure = made_up((50.0, 50.0), (60.0, 61.0))
    assert sure.sentence == "The gain over the defaults is more than two standard errors."
    gain = sure.gain(sure.chosen)
    assert (gain.mean, gain.std) == (10.5, 0.5)
    assert made_up((50.0, 50.0), (50.0, 50.0)).chosen.candidate.text == "defaults"
    assert made_up((50.0,), (60.0,)).sentence.startswith("There is one draw alone")
    assert made_up((float("nan"),), (1.0,)).chosen.candidate.text == "k=1"


SMALL = "synthetic:nodes=300,classes=6,words=80"
TINY = ("--draws", 2, "--seeds", 1)


def test_the_command_prints_a_table_and_a_command_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = cli("tune", "prism", "--dataset", SMALL, "--num-old", 4, *TINY,
               "--grid", "n_resamples=0", "--grid", "refit=False,True", "--json", path)  # fmt: skip
    document = json.loads(path.read_text())
    assert {line["settings"] for line in document["lines"]} == {
        "defaults", "n_resamples=0,refit=True", "n_resamples=0,refit=False",
    }  # fmt: skip
    assert "mean ± standard error over the draws" in text
    (used,) = [line for line in text.splitlines() if line.startswith("Use it: ")]
    words = shlex.split(used.removeprefix("Use it: nodenova "))
    assert words[:2] == ["run", "--dataset"]
    assert "Old" in cli(*words)


def test_settings_of_phase_1_become_options_of_run_or_of_the_bench() -> None:
    grid = ("--grid", "fit.epochs=2", "--grid", "fit.hidden=4")
    given = ("tune", "never_new", "--encoder", "gcn", "--dataset", SMALL, *TINY)
    text = cli(*given, *grid, "--score", "old")
    # Whatever is chosen: both candidates train, and one of them for two epochs alone.
    assert "Use it: nodenova run --dataset" in text
    text = cli(*given, "--grid", "fit.epochs=1,2", "--grid", "fit.lr=0.5")
    assert "Use it: nodenova" in text


def test_a_graph_of_your_own_gives_a_command_of_discover(tmp_path: Path) -> None:
    write_tables(tmp_path / "spring")
    text = cli("tune", "prism", *files(tmp_path / "spring"), *COLUMNS, *TINY,
               "--grid", "n_resamples=0")  # fmt: skip
    assert "Use it: nodenova discover --nodes" in text
    again = cli("tune", "prism", *files(tmp_path / "spring"), *COLUMNS, *TINY,
                "--grid", "n_resamples=0", "-q")  # fmt: skip
    assert again == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--grid", "ridge=1"], "give either --graph FILE, or --nodes FILE"),
        (["--dataset", SMALL], "give the settings to try, such as --grid name=a,b,c"),
        (["--dataset", SMALL, "--graph", "g.npz", "--grid", "ridge=1"], "not both"),
        (["--dataset", SMALL, "--all-new", "--grid", "ridge=1"], "--all-new is for files"),
        (["--graph", "g.npz", "--grid", "fit.prior=1"], "has no settings of phase 1"),
        (["--graph", "g.npz", "--grid", "ridge=1", "--num-old", "2"], "--num-old is for --dataset"),
        (["--dataset", SMALL, "--grid", "ridge=1", "--score", "x"], "unknown score 'x'"),
        (["--dataset", SMALL, "--grid", "ridge=1", "--num-old", "9"], "--num-old is 9"),
    ],
)
def test_what_does_not_fit_is_refused(options: list[str], words: str) -> None:
    with pytest.raises(NodenovaError, match=words):
        cli("tune", "prism", *options)


def test_the_published_split_reaches_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(name: str, root: object, *, split: int) -> None:
        raise RuntimeError(f"{name} {split}")

    monkeypatch.setattr("nodenova.io.datasets.load_dataset", read)
    with pytest.raises(RuntimeError, match="wikics 5"):
        cli("tune", "prism", "--dataset", "wikics", "--split", 5, "--grid", "ridge=1", "-q")


def test_the_command_tries_settings_of_methods_that_are_given_labels() -> None:
    given = ("--grid", "epochs=1", "--draws", 1, "--seeds", 1, "--num-old", 4)
    assert "--method er_gnn" in cli("tune", "er_gnn", "--dataset", SMALL, *given)


@pytest.mark.parametrize("method", ["er_gnn", "cpca"])
def test_methods_that_are_given_labels_get_those_of_hidden_classes_alone(
    graph: LabelledGraph, method: str
) -> None:
    """Their labels are known ones: those of the new classes change no bit."""
    short = {"fit.epochs": "5", "lr": "0.1"}
    settings = [short | {"epochs": "15"}, short | {"epochs": "20"}]

    def result(labelled: LabelledGraph) -> bytes:
        candidates = candidates_of(method, "gcn", settings)[1:]
        found = tune(known_part(labelled, 4), candidates, "gcn", draws=2, seeds=[0])
        assert any(value > 0 for value in found.lines[0].values["new"])
        return to_json(found.to_json())

    assert result(graph) == result(scramble(graph, range(4)))


def test_methods_that_are_given_labels_take_no_mixture(graph: LabelledGraph) -> None:
    candidates = candidates_of("er_gnn", "gcn", [])
    with pytest.raises(SettingError, match="does not take mixed nodes"):
        tune(known_part(graph, 4), candidates, "gcn", draws=1, seeds=[0], mixed=True)
