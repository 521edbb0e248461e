"""The report: what it prints is what the rows say, and it needs nothing but itself."""

from __future__ import annotations

import base64
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.folder import GradedFolder
from nodenova.bench.plan import Plan
from nodenova.bench.registry import get_method
from nodenova.bench.run_page import write_report
from nodenova.errors import StorageError
from nodenova.files import folders
from nodenova.fitting import TRAINING
from nodenova.report.charts import before_and_after_matching, loss_curves
from nodenova.report.html import policy_hash

PREVIOUS = Path(__file__).parents[1] / "fixtures" / "previous" / "graded"
SCORES = ("old", "new", "all", "h", "old_new_accuracy", "nmi", "ari", "old_n", "new_n", "all_n")
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    'a & b &amp; "q"',
    "<b>bold</b>",
    "$x$",
    "f",
)


class Page(HTMLParser):
    """What a browser would make of the page: its tags, text, tables, what its map is drawn from."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.map: dict[str, Any] = {}
        self.source = path.read_text(encoding="utf-8")
        self._table: list[list[str]] = []
        self._open: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(self.source)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = (tag, dict(attrs))
        self.tags.append(self._open)
        if tag == "table":
            self._table = self.tables[dict(attrs)["id"] or ""] = []
        elif tag == "tr":
            self._table.append([])
        elif tag in ("td", "th"):
            self._table[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ("", {})

    def handle_data(self, data: str) -> None:
        tag, attrs = self._open
        if attrs.get("id") == "story":
            self.map = json.loads(data)
        elif tag == "script":
            self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)
        else:
            self.words.append(data)
        if tag in ("td", "th"):
            self._table[-1][-1] += data


def numbers(page: Page, key: str) -> list[int]:
    return np.frombuffer(base64.b64decode(page.map[key]), "<u2").tolist()


def run(
    path: Path,
    *,
    method: str = "sword",
    num_new: int = 2,
    seeds: tuple[int, ...] = (0,),
    hostile: bool = False,
) -> GradedFolder:
    labelled = nova.synthetic(nodes=300)
    if hostile:
        ids = np.array([f"<i>{i}</i>" for i in range(300)])
        labelled = replace(
            labelled, class_names=HOSTILE, graph=replace(labelled.graph, node_ids=ids)
        )
    chosen = get_method(method, {"epochs": "5"} if method == "sword" else {})
    plan = Plan(
        "<u>data</u>" if hostile else "synthetic",
        chosen,
        "gcn",
        (0, 1, 2, 3),
        num_new,
        (("epochs", 5),),
    )
    folder = GradedFolder.create(path, plan, "synthetic")
    folder.run(labelled, plan, seeds)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> GradedFolder:
    """Two seeds, and their report."""
    folder = run(tmp_path_factory.mktemp("report") / "run", seeds=(0, 1))
    write_report(folder)
    return folder


@pytest.fixture
def copy(finished: GradedFolder, tmp_path: Path) -> GradedFolder:
    """A run of one's own to change: no report, and no map, which takes longest."""
    shutil.copytree(finished.path, tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    (tmp_path / "run" / "map.npz").unlink()
    return GradedFolder.open(tmp_path / "run")


def change_row(folder: GradedFolder, seed: int, **values: object) -> None:
    path = folder.path / f"seed-{seed}" / "row.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_prints_the_summary_of_the_rows(finished: GradedFolder) -> None:
    page, rows = Page(finished.path / "report.html"), finished.rows()

    def cell(score: str, matching: str = "block") -> str:
        values = [row.score(score, matching) or 0.0 for row in rows]
        return f"{fmean(values):.1f} ± {stdev(values):.1f}".replace("-", "−")

    head, *lines = page.tables["scores"]
    assert head == [
        "Matching",
        "Old",
        "New",
        "All",
        "H",
        "Old-new accuracy",
        "NMI",
        "ARI",
        "Old-N",
        "New-N",
        "All-N",
    ]
    assert [line[0] for line in lines] == ["block (headline)", "identity", "global"]
    for line, matching in zip(lines, ("block", "identity", "global"), strict=True):
        assert line[1:] == [cell(score, matching) for score in SCORES]
    assert page.tables["overall"][1][:3] == ["2", cell("aa"), cell("af")]
    assert [line[0] for line in page.tables["seeds"]] == ["Seed", "0", "1"]
    assert "over 2 seeds" in page.text


def test_says_in_words_what_happened_and_how(finished: GradedFolder) -> None:
    page, row = Page(finished.path / "report.html"), finished.rows()[0]
    assert "4 labelled classes were learned, 2 new ones were" in page.text
    assert f"among {row.nodes.unlabelled_new} unlabelled nodes" in page.text
    assert f"graded on {row.nodes.test} test nodes." in page.text
    assert row.data in page.text
    assert "given labels" not in page.text
    assert ["epochs", "5"] in page.tables["settings"]
    assert ["hidden", str(row.fit_settings["hidden"])] in page.tables["fit_settings"]
    assert ["torch", row.versions["torch"]] in page.tables["versions"]


def test_draws_losses_confusion_and_map(finished: GradedFolder) -> None:
    page, row = Page(finished.path / "report.html"), finished.rows()[0]
    for number, stage in enumerate(finished.model().stages, start=1):
        assert loss_curves(stage.history, f"Losses of phase {number}") in page.source
    drawn = before_and_after_matching(
        np.array(row.confusion), row.class_names, 4, row.sizes, row.predicted_sizes
    )
    assert list(drawn) == ["Before matching", "After matching (block)"]
    for drawing in drawn.values():
        assert drawing in page.source
    kept = finished.map()
    assert kept is not None
    assert numbers(page, "best") == kept["predicted"].tolist()
    assert numbers(page, "true") == kept["y"].tolist()
    assert page.map["names"] == [str(name) for name in kept["node_ids"]]
    assert [c["isNew"] for c in page.map["classes"]] == [False] * 4 + [True] * 2
    assert page.map["trueAs"][:4] == [0, 1, 2, 3]
    assert {c["name"] for c in page.map["classes"][4:]} == {
        f"new-{predicted} = class-{t}" for t, predicted in enumerate(page.map["trueAs"]) if t > 3
    }
    assert page.map["p"] is None  # probabilities were not kept, and none is shown
    assert {attrs["value"] for tag, attrs in page.tags if attrs.get("name") == "view"} == {
        "class",
        "true",
    }


def test_needs_no_network_and_runs_only_its_own_scripts(finished: GradedFolder) -> None:
    page = Page(finished.path / "report.html")
    policy = next(attrs["content"] or "" for tag, attrs in page.tags if "http-equiv" in attrs)
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == ["'none'"]
    assert rules["script-src"] == [policy_hash(script) for script in page.scripts]
    assert rules["style-src"] == [policy_hash(style) for style in page.styles]
    for _, attrs in page.tags:
        assert "src" not in attrs
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
    assert set(re.findall(r"https?://[^\s\"']+", page.source)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"fetch\(|@import|url\(|<iframe", page.source)
    assert len(page.source) < 200_000


def test_equal_folders_give_equal_pages(finished: GradedFolder, tmp_path: Path) -> None:
    shutil.copytree(
        finished.path, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("report.html")
    )
    assert (
        write_report(GradedFolder.open(tmp_path / "elsewhere")).read_bytes()
        == (finished.path / "report.html").read_bytes()
    )


def test_names_are_text_never_markup(tmp_path: Path) -> None:
    page = Page(write_report(run(tmp_path / "run", hostile=True)))
    tags = [tag for tag, _ in page.tags]
    assert not {"img", "b", "i", "u", "a"} & set(tags)
    assert tags.count("script") == len(page.scripts) + 1
    assert not [script for script in page.scripts if "alert(" in script]
    for name in (*HOSTILE[:5], "<u>data</u>"):
        assert name in page.text
    assert page.map["trueNames"] == list(HOSTILE)
    assert re.fullmatch(r"<i>\d+</i>", page.map["names"][0])


def test_one_seed_without_a_map(copy: GradedFolder) -> None:
    shutil.rmtree(copy.path / "seed-1")
    page, row = Page(write_report(copy)), copy.rows()[0]
    assert page.tables["scores"][1][1] == f"{row.score('old'):.1f}"
    assert "one run" in page.text
    assert "There is no map" in page.text
    assert not page.map
    assert not page.scripts
    assert "canvas" not in {tag for tag, _ in page.tags}


def test_scores_that_are_not_there_are_dashes(copy: GradedFolder) -> None:
    for seed in (0, 1):
        row = copy.rows()[seed]
        nothing = [
            *row.confusion[:4],
            *([0] * len(line) for line in row.confusion[4:]),
        ]  # no test node of a new class
        change_row(copy, seed, confusion=nothing, confusion_new=None, stored={})
    page = Page(write_report(copy))
    head = page.tables["scores"][0]
    for score in ("New", "H", "New-N"):
        assert page.tables["scores"][1][head.index(score)] == "–"
        assert page.tables["seeds"][1][head.index(score)] == "–"
    assert "nan" not in page.text.lower()


def test_a_method_that_trains_nothing_and_finds_nothing(tmp_path: Path) -> None:
    page = Page(write_report(run(tmp_path / "run", method="never_new")))
    labels = {attrs.get("aria-label") for _, attrs in page.tags}
    assert "Losses of phase 1" in labels
    assert "Losses of phase 2" not in labels
    assert "No losses were recorded" in page.text
    assert "no test node was assigned to one" in page.text


@pytest.mark.parametrize(("num_new", "notes"), [
    (1, (r"class-[45] = new-4", r"class-[45], not found")),
    (4, (r"class-4 = new-\d", r"class-5 = new-\d", r"new-\d, no partner")),
])  # fmt: skip
def test_another_number_of_classes_than_there_are(
    tmp_path: Path, num_new: int, notes: tuple[str, ...]
) -> None:
    page = Page(write_report(run(tmp_path / "run", num_new=num_new)))
    for note in notes:
        assert re.search(note, page.text)
    assert "There were truly 2 new classes." in page.text
    assert len(page.map["classes"]) == 4 + num_new
    assert page.map["trueAs"].count(-1) == max(0, 2 - num_new)


def test_the_map_may_be_of_another_seed(finished: GradedFolder, copy: GradedFolder) -> None:
    shutil.copy(finished.path / "map.npz", copy.path)
    shutil.rmtree(copy.path / "seed-0")
    page = Page(write_report(copy))
    assert "Seed 1." in page.text
    assert "test nodes of seed 0." in page.text


def test_embeddings_that_do_not_differ_are_no_map(
    finished: GradedFolder, copy: GradedFolder
) -> None:
    kept = finished.map()
    assert kept is not None
    np.savez(copy.path / "map.npz", **(kept | {"z": np.ones_like(kept["z"])}))
    page = Page(write_report(copy))
    assert "There is no map: too few nodes, or their embeddings do not differ." in page.text
    assert not page.map


@pytest.mark.parametrize("name", ["predicted", "node_ids", "seed"])
def test_an_array_that_a_map_lacks_is_named(
    finished: GradedFolder, copy: GradedFolder, name: str
) -> None:
    kept = finished.map()
    assert kept is not None
    np.savez(copy.path / "map.npz", **{key: array for key, array in kept.items() if key != name})
    with pytest.raises(StorageError, match=f"map.npz: damaged, the array {name} is missing"):
        write_report(copy)


@pytest.mark.parametrize("seed", [np.timedelta64(3, "s"), "3", 0.5, [0, 1]])
def test_a_seed_of_a_map_is_one_whole_number(
    finished: GradedFolder, copy: GradedFolder, seed: object
) -> None:
    kept = finished.map()
    assert kept is not None
    np.savez(copy.path / "map.npz", **kept | {"seed": np.array(seed)})
    with pytest.raises(StorageError, match=r"map\.npz: damaged, its seed is not a whole number"):
        write_report(copy)


def test_says_where_seeds_differ_and_who_was_given_labels(copy: GradedFolder) -> None:
    change_row(copy, 0, sees=["graph", "new_ids", "new_labels"])
    change_row(copy, 1, data="other")
    page = Page(write_report(copy))
    assert "This method was given labels in phase 2 (new_labels)." in page.text
    assert "other (seed 1)" in page.text


def test_no_finished_seed(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", seeds=())
    with pytest.raises(StorageError, match="no finished seed yet"):
        write_report(folder)
    assert not (folder.path / "report.html").exists()


def test_a_run_of_the_previous_version_is_read_and_reported(tmp_path: Path) -> None:
    shutil.copytree(PREVIOUS, tmp_path / "run")
    folder = GradedFolder.open(tmp_path / "run")
    page, stored = (
        Page(write_report(folder)),
        json.loads((PREVIOUS / "seed-0" / "row.json").read_text()),
    )
    assert [row.seed for row in folder.rows()] == [0, 1]
    assert folder.rows()[0].score("old") == pytest.approx(stored["scores"]["block"]["old"])
    assert page.tables["seeds"][1][1] == f"{stored['scores']['block']['old']:.1f}"
    assert len(page.map["names"]) == len(np.load(PREVIOUS / "map.npz")["y"])


def test_a_plan_in_the_form_of_the_previous_version_goes_on_and_another_plan_is_refused(
    tmp_path: Path,
) -> None:
    shutil.copytree(PREVIOUS, tmp_path / "run")
    document = json.loads((PREVIOUS / "run.json").read_text())
    asked = document["plan"]
    same = Plan(
        asked["dataset"],
        get_method("sword", {"epochs": "3"}),
        "gcn",
        (0, 1),
        2,
        (("hidden", 4), ("epochs", 5)),
    )
    with pytest.raises(StorageError, match="its version trained phase 1 differently"):
        GradedFolder.create(tmp_path / "run", same, document["data"])
    document["phase_1"] = TRAINING | {
        "hidden": 4,
        "epochs": 5,
    }  # as the version between the two wrote it
    (tmp_path / "run/run.json").write_text(json.dumps(document))
    assert len(GradedFolder.create(tmp_path / "run", same, document["data"]).rows()) == 2
    other = replace(same, method=get_method("sword", {"epochs": "4"}))
    with pytest.raises(
        StorageError, match=r"holds another run \(method_settings: epochs: 3 there, 4 now\)"
    ):
        GradedFolder.create(tmp_path / "run", other, document["data"])
    with pytest.raises(
        StorageError, match=r"holds another run \(data: '1ff1d086a3e23311' there, 'x' now\)"
    ):
        GradedFolder.create(tmp_path / "run", same, "x")


def test_ctrl_c_while_a_seed_is_stored_stops_before_the_next_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = folders.Change.commit

    def interrupted(change: folders.Change) -> None:
        commit(change)
        change.interrupted = True

    monkeypatch.setattr(folders.Change, "commit", interrupted)
    labelled = nova.synthetic(nodes=150, classes=4, seed=0)
    plan = Plan(labelled.name, nova.NeverNew(), "gcn", (0, 1), 2, (("epochs", 5),))
    place = GradedFolder.create(tmp_path / "run", plan, labelled.fingerprint())
    with pytest.raises(KeyboardInterrupt):
        place.run(labelled, plan, [0, 1])
    assert [row.seed for row in GradedFolder.open(tmp_path / "run").rows()] == [0]
