"""The report: what it prints is what the rows say, and it needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

import nodenova as nova
from nodenova.errors import StorageError
from nodenova.experiments.folder import RunFolder
from nodenova.experiments.results import summarise
from nodenova.experiments.run import Plan
from nodenova.report.page import write_report

SCORES = ("old", "new", "all", "h", "gate", "nmi", "ari", "old_n", "new_n", "all_n")
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    'a & b &amp; "q"',
    "<b>bold</b>",
    "$x$",
    "f",
)


class Page(HTMLParser):
    """What a browser would make of the page: its tags, its text, its tables and the data of its figures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.scripts: list[str] = []
        self.plots: dict[str, Any] = {}
        self.source = path.read_text(encoding="utf-8")
        self._table: list[list[str]] = []
        self._open: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(self.source.replace(get_plotlyjs(), "/* plotly.js */"))
        self.text = " ".join(self.words)

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
        if "data-plot" in attrs:
            self.plots[attrs["data-plot"] or ""] = json.loads(data)
        elif tag == "script":
            self.scripts.append(data)
        else:
            self.words.append(data)
        if tag in ("td", "th"):
            self._table[-1][-1] += data


def run(
    path: Path, *, method: str = "sword", num_new: int = 2, seeds: tuple[int, ...] = (0,), hostile: bool = False
) -> RunFolder:
    labelled = nova.synthetic(nodes=300)
    if hostile:
        ids = np.array([f"<i>{i}</i>" for i in range(300)])
        labelled = replace(labelled, class_names=HOSTILE, graph=replace(labelled.graph, node_ids=ids))
    settings = (("epochs", "5"),) if method == "sword" else ()
    plan = Plan("<u>data</u>" if hostile else "synthetic", method, "gcn", (0, 1, 2, 3), num_new, settings, (("epochs", 5),))
    folder = RunFolder.create(path, plan, "synthetic")
    folder.run(labelled, plan, seeds, lambda seed, phase: None, lambda row: None)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Two seeds, and their report."""
    folder = run(tmp_path_factory.mktemp("report") / "run", seeds=(0, 1))
    write_report(folder)
    return folder


@pytest.fixture
def copy(finished: RunFolder, tmp_path: Path) -> RunFolder:
    """A run of one's own to change: no report, and no map, which takes longest."""
    shutil.copytree(finished.path, tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    (tmp_path / "run" / "map.npz").unlink()
    return RunFolder.open(tmp_path / "run")


def change_row(folder: RunFolder, seed: int, **values: object) -> None:
    path = folder.path / f"seed-{seed}" / "row.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_prints_the_summary_of_the_rows(finished: RunFolder) -> None:
    page, summary = Page(finished.path / "report.html"), summarise(finished.rows())

    def cell(value: dict[str, float]) -> str:
        return f"{value['mean']:.1f} ± {value['std']:.1f}".replace("-", "−") if value["n"] else "–"

    head, *lines = page.tables["scores"]
    assert head == ["Matching", "Old", "New", "All", "H", "Gate", "NMI", "ARI", "Old-N", "New-N", "All-N"]
    assert [line[0] for line in lines] == ["block (headline)", "identity", "global"]
    for line, matching in zip(lines, ("block", "identity", "global"), strict=True):
        assert line[1:] == [cell(summary["scores"][matching][score]) for score in SCORES]
    once = [summary[score] for score in ("aa", "af", "new_used", "new_largest")]
    once += [summary["seconds"]["fit"], summary["seconds"]["discover"]]
    assert page.tables["overall"][1] == ["2", *map(cell, once)]
    assert [line[0] for line in page.tables["seeds"]] == ["Seed", "0", "1"]
    assert "over 2 seeds" in page.text


def test_says_in_words_what_happened_and_how(finished: RunFolder) -> None:
    page, row = Page(finished.path / "report.html"), finished.rows()[0]
    nodes = row["nodes"]
    assert "4 labelled classes were learnt, 2 new ones were" in page.text
    assert f"among {nodes['unlabelled_new']} unlabelled nodes" in page.text
    assert f"graded on {nodes['test']} test nodes." in page.text
    assert row["data"] in page.text
    assert "given labels" not in page.text
    assert ["epochs", "5"] in page.tables["settings"]
    assert ["hidden", str(row["fit_settings"]["hidden"])] in page.tables["fit_settings"]
    assert ["torch", row["versions"]["torch"]] in page.tables["versions"]


def test_draws_losses_confusion_and_map(finished: RunFolder) -> None:
    page, row = Page(finished.path / "report.html"), finished.rows()[0]
    assert [t["name"] for t in page.plots["loss-1"]["data"]] == ["ce"]
    assert [t["name"] for t in page.plots["loss-2"]["data"]] == list(finished.model().stages[1].history)
    assert page.plots["before"]["data"][0]["text"] == row["confusion"]
    assert page.plots["before"]["layout"]["xaxis"]["ticktext"][4:] == ["new-4", "new-5"]
    after = np.array(page.plots["after"]["data"][0]["text"])
    assert np.trace(after) == pytest.approx(row["scores"]["block"]["all"] * after.sum() / 100)
    for view in ("true", "predicted"):
        traces = [trace for trace in page.plots["map"]["data"] if trace["meta"] == view]
        assert sum(len(trace["x"]) for trace in traces) == row["nodes"]["test"]
        assert all(trace["visible"] is (view == "true") for trace in traces)
    shapes = {t["name"]: t["marker"]["symbol"] for t in page.plots["map"]["data"] if t["meta"] == "true"}
    assert shapes["class-0"] == "circle"
    assert shapes["class-5"] == "diamond"


def test_needs_no_network_and_runs_only_its_own_scripts(finished: RunFolder) -> None:
    page = Page(finished.path / "report.html")
    own = page.source.replace(get_plotlyjs(), "")
    assert len(own) < len(page.source)
    assert not re.search(r"https?:|\bsrc\s*=|\bhref\s*=|<link|@import|url\(|fetch\(|<iframe", own)
    assert page.source.count(get_plotlyjs()) == 1
    policy = next(attrs["content"] or "" for tag, attrs in page.tags if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; ")
    for script in (get_plotlyjs(), page.scripts[1]):
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_equal_folders_give_equal_pages(finished: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(finished.path, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("report.html"))
    assert write_report(RunFolder.open(tmp_path / "elsewhere")).read_bytes() == (finished.path / "report.html").read_bytes()


def test_names_are_text_never_markup(tmp_path: Path) -> None:
    page = Page(write_report(run(tmp_path / "run", hostile=True)))
    tags = [tag for tag, _ in page.tags]
    assert not {"img", "b", "i", "u", "a"} & set(tags)
    assert tags.count("script") == 2 + len(page.plots) == 2 + 5
    for name in (*HOSTILE[:4], "<u>data</u>"):
        assert name in page.text
    ticks = page.plots["before"]["layout"]["yaxis"]["ticktext"]
    assert ticks[0] == "&lt;script&gt;alert(1)&lt;/scrip…"
    assert ticks[2] == 'a &amp; b &amp;amp; "q"'  # plotly shows it as it was
    hover = page.plots["map"]["data"][0]["hovertext"][0]
    assert re.fullmatch(r"node &lt;i&gt;\d+&lt;/i&gt;<br>true: .*<br>predicted: .*", hover)
    assert set(re.findall(r"<[^>]*>", hover)) == {"<br>"}


def test_one_seed_without_a_map(copy: RunFolder) -> None:
    shutil.rmtree(copy.path / "seed-1")
    page, row = Page(write_report(copy)), copy.rows()[0]
    assert page.tables["scores"][1][1] == f"{row['scores']['block']['old']:.1f}"
    assert "one seed" in page.text
    assert "there is no map" in page.text
    assert "map" not in page.plots


def test_scores_that_are_not_numbers_are_dashes(copy: RunFolder) -> None:
    for seed in (0, 1):
        scores = copy.rows()[seed]["scores"]
        scores["block"] |= {"new": math.nan, "h": math.nan}
        del scores["block"]["new_n"]
        change_row(copy, seed, scores=scores, aa=math.nan, new_largest=math.nan)
    page = Page(write_report(copy))
    shown = dict(zip(page.tables["scores"][0][1:], page.tables["scores"][1][1:], strict=True))
    assert {name for name, value in shown.items() if value == "–"} == {"New", "H", "New-N"}
    overall = dict(zip(page.tables["overall"][0], page.tables["overall"][1], strict=True))
    assert {name for name, value in overall.items() if value == "–"} == {"AA", "Largest of them"}
    assert page.tables["seeds"][1][2] == "–"
    assert "nan" not in re.sub(r"<script.*?</script>", "", page.source.replace(get_plotlyjs(), ""), flags=re.DOTALL).lower()


def test_how_far_the_new_classes_have_collapsed_is_printed(copy: RunFolder) -> None:
    change_row(copy, 0, new_used=1, new_largest=100.0)
    change_row(copy, 1, new_used=2, new_largest=60.0)
    page = Page(write_report(copy))
    overall = dict(zip(page.tables["overall"][0], page.tables["overall"][1], strict=True))
    assert overall["New classes used"] == "1.5 ± 0.7"
    assert overall["Largest of them"] == "80.0 ± 28.3"
    seeds = [dict(zip(page.tables["seeds"][0], line, strict=True)) for line in page.tables["seeds"][1:]]
    assert [line["New classes used"] for line in seeds] == ["1.0", "2.0"]
    assert [line["Largest of them"] for line in seeds] == ["100.0", "60.0"]


def test_a_method_that_trains_nothing_and_finds_nothing(tmp_path: Path) -> None:
    page = Page(write_report(run(tmp_path / "run", method="never_new")))
    assert "loss-1" in page.plots
    assert "loss-2" not in page.plots
    assert "No losses were recorded" in page.text
    assert "no test node was put into one" in page.text


@pytest.mark.parametrize(("num_new", "before", "after", "notes"), [
    (1, 5, 6, {"= new-4", "not found"}),
    (4, 8, 8, {"= new-", "no partner"}),
])  # fmt: skip
def test_another_number_of_classes_than_there_are(
    tmp_path: Path, num_new: int, before: int, after: int, notes: set[str]
) -> None:
    page = Page(write_report(run(tmp_path / "run", num_new=num_new)))
    for name, columns in (("before", before), ("after", after)):
        assert np.array(page.plots[name]["data"][0]["text"]).shape == (6, columns)
        assert len(page.plots[name]["layout"]["xaxis"]["ticktext"]) == columns
    ticks = " ".join(page.plots["after"]["layout"]["xaxis"]["ticktext"])
    assert all(note in ticks for note in notes)
    assert "In truth there were 2 new classes." in page.text
    assert "map" in page.plots


def test_the_map_may_be_of_another_seed(finished: RunFolder, copy: RunFolder) -> None:
    shutil.copy(finished.path / "map.npz", copy.path)
    shutil.rmtree(copy.path / "seed-0")
    page = Page(write_report(copy))
    assert "Seed 1." in page.text
    assert "of seed 0, laid out" in page.text


def test_says_where_seeds_differ_and_who_was_given_labels(copy: RunFolder) -> None:
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
