"""The review page as a file: what is in it, that names stay text, that it asks for nothing else."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import GraphError
from nodenova.evaluation.graded import GradedRun
from nodenova.model.decisions import Rename
from nodenova.model.info import Feature
from nodenova.report.charts import before_and_after_matching
from nodenova.report.html import GLOSSARY, policy_hash
from nodenova.review import page_data
from nodenova.review.cross_validation import HeldOutScores
from nodenova.review.page import answers, class_cards, review_page
from nodenova.review.page_data import (
    LISTED,
    NO_CLASS,
    PageData,
    class_links,
    collect,
    first_new_id,
    pack_edges,
)
from nodenova.review.review_file import History, as_served, is_current

PREVIOUS = Path(__file__).parents[1] / "fixtures" / "previous"
WITHOUT_CONTENT = {"meta", "link", "input"}


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.data: dict[str, Any] = {}
        self.open: list[str] = []
        self.feed(source)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in WITHOUT_CONTENT:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            if self.tags[-1][1].get("type") == "application/json":
                self.data = json.loads(data)
            else:
                self.scripts.append(data)
        elif self.open and self.open[-1] == "style":
            self.styles.append(data)
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def page(story: PageData) -> Page:
    return Page(review_page(story))


def numbers(page: Page, key: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(page.data[key]), kind)


def test_names_are_text(page: Page, story: PageData) -> None:
    assert not page.open  # every tag that is opened is closed
    assert not {"i", "u", "img"} & {tag for tag, _ in page.tags}
    assert "A <script>alert(1)</script>" in page.text
    assert "</dl><script>alert(3)</script>" in page.text
    assert page.data["names"][0] == "<script>alert(1)</script>"
    assert page.data["classes"][0]["name"] == "<i>one</i>"
    assert "<b>word" in page.text
    assert not [script for script in page.scripts if "alert(" in script]
    assert not [
        name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "style"
    ]


def test_only_its_own_scripts_and_style_run_and_nothing_is_fetched(
    page: Page, story: PageData
) -> None:
    policy = next(
        attrs["content"]
        for tag, attrs in page.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == ["'none'"]
    assert rules["script-src"] == [policy_hash(script) for script in page.scripts]
    assert rules["style-src"] == [policy_hash(style) for style in page.styles]
    assert "connect-src 'self'" in review_page(story, served=True)
    for _, attrs in page.tags:
        assert "src" not in attrs
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
    assert set(re.findall(r"https?://[^\s\"']+", " ".join(page.scripts + page.styles))) <= {
        "http://www.w3.org/2000/svg"
    }


def test_the_page_answers_first_what_was_found_whether_to_trust_it_and_what_next(
    page: Page, story: PageData
) -> None:
    top = page.text.partition("Color by")[0]
    assert "What was found" in top
    assert "Can I trust it?" in top
    assert "What next?" in top
    count = nova.ClassCountEstimate(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
    stages = (*story.stages[:-1], replace(story.stages[-1], mixed=True, count=count))
    scores = HeldOutScores(((8, 9),) * len(story.classes), (9, 9), (7, 9), (9, 9, 0, 0), 1)
    told = replace(story, stages=stages, held_out=scores)
    top = Page(review_page(told)).text.partition("Color by")[0]
    assert count.finding in top
    assert "--num-new" not in top
    assert "Of your 18 labels, each judged without itself, 89% land in their class" in top
    found = answers(told, class_cards(told)).found
    assert {number for number, _ in found} == {i for i, c in enumerate(told.classes) if c.stage}
    assert [size for _, size in found] == sorted(c.size for c in told.classes if c.stage)[::-1]


def test_a_discovered_class_has_a_verdict_and_known_ones_are_folded_away(story: PageData) -> None:
    found = {2: (3, 12), 3: (12, 12)}
    stages = (*story.stages[:-1], replace(story.stages[-1], found_in=found))
    classes = tuple(replace(c, labelled=10, two=0.4 if c.id == 3 else 0.1) for c in story.classes)
    told = replace(story, stages=stages, classes=classes)
    said = {card.info.id: card.trust for card in class_cards(told)}
    assert [said[0], said[1]] == [None, None]
    assert {said[2].level, said[3].level} <= {"good", "look", "doubt"}
    assert "Found in 3 of 12 groupings." in said[2].reasons
    assert "Found in 3 of 12 groupings." in Page(review_page(told)).text
    folded = review_page(story).partition('<details id="known">')[2].partition("</section>")[0]
    assert folded.count("data-card=") == 2


def test_every_measure_on_a_card_has_its_meaning_beside_it(page: Page) -> None:
    meant = {attrs.get("title") for tag, attrs in page.tags if tag == "abbr"}
    assert {GLOSSARY[term] for term in ("cohesion", "confidence", "own edges", "cosine")} <= meant


def test_what_a_class_has_less_of_is_said_as_low(story: PageData) -> None:
    low = tuple(replace(c, keywords=(Feature("low pixel_4_2", 9.5),)) for c in story.classes)
    assert "low pixel_4_2" in Page(review_page(replace(story, classes=low))).text


def test_a_page_is_made_served_to_the_letter_and_known_to_be_out_of_date(story: PageData) -> None:
    history = History(3, (Rename(2, "x"),))
    plain = review_page(replace(story, history=history))
    assert as_served(plain) == review_page(replace(story, history=history), served=True)
    assert is_current(plain, story.model_hash, story.edits, 3)
    assert not is_current(plain, story.model_hash, story.edits, 4)
    assert not is_current(plain, story.model_hash, story.edits + 1, 3)
    assert not is_current(plain, "0" * 64, story.edits, 3)


def test_nodes_are_shown_with_their_columns_or_their_words(
    hostile: tuple[nova.Model, nova.LabelledGraph],
) -> None:
    model, labelled = hostile
    graph = labelled.graph
    flat = {"title": "t", "model_hash": "h", "layout": lambda z: np.zeros((len(z), 2))}
    shown = {"url": [f"page {i} " + "x" * 500 for i in range(240)]}
    told = collect(model, graph, shown=shown, **flat)
    assert told.nodes.texts["url"][7].startswith("page 7 xx")
    assert len(told.nodes.texts["url"][7]) == 300
    words = collect(model, graph, **flat).nodes.texts["words"][7].split(", ")
    assert {*words} <= {graph.feature_names[j] for j in graph.x[[7]].indices}


def test_colors_stay_when_a_discovered_class_goes_into_a_known_one(
    hostile: tuple[nova.Model, nova.LabelledGraph],
) -> None:
    model, labelled = hostile
    assert first_new_id(model) == 2
    assert first_new_id(model.merge([0, 2])) == 2
    assert first_new_id(model.reject(2)) == 2
    assert first_new_id(model.split(1, labelled.graph)) == 2


def test_many_labels_in_discovered_classes_are_said_at_the_top(story: PageData) -> None:
    classes = tuple(
        replace(info, labelled=30 if info.stage else 100, name=f"c{info.id}")
        for info in story.classes
    )
    text = Page(review_page(replace(story, classes=classes))).text
    assert " labelled nodes into new classes, most into 'c" in text.split("What was")[0]
    few = tuple(replace(info, labelled=0 if info.stage else 100) for info in classes)
    assert "labelled nodes into" not in Page(review_page(replace(story, classes=few))).text


def test_equal_stories_give_equal_pages(
    story: PageData, hostile: tuple[nova.Model, nova.LabelledGraph]
) -> None:
    model, labelled = hostile
    again = collect(
        model,
        labelled.graph,
        title=story.title,
        model_hash=story.model_hash,
        answers=(labelled.y, labelled.class_names),
        facts=story.facts,
        versions=story.versions,
    )
    assert review_page(again) == review_page(story)


def test_it_says_what_the_model_says(
    page: Page, hostile: tuple[nova.Model, nova.LabelledGraph]
) -> None:
    model, labelled = hostile
    p = model.predict_proba(labelled.graph)
    ids = [c["id"] for c in page.data["classes"]]
    best = numbers(page, "best", "<u2").reshape(240, page.data["likely"])
    assert [ids[i] for i in best[:, 0]] == model.predict(labelled.graph).tolist()
    told = np.exp(
        -numbers(page, "p", "<u2").reshape(best.shape).astype(float) / page.data["logSteps"]
    )
    np.testing.assert_allclose(
        told, np.take_along_axis(p, best.astype(int), axis=1), rtol=1e-3, atol=1e-30
    )
    assert numbers(page, "true", "<u2").tolist() == labelled.y.tolist()
    degree = np.bincount(labelled.graph.edge_index[0], minlength=240)
    assert numbers(page, "degree", "<u4").tolist() == degree.tolist()
    start, targets = numbers(page, "start", "<u4"), numbers(page, "targets", "<u4")
    for i in range(240):
        listed = targets[start[i] : start[i + 1]]
        assert len(listed) == min(LISTED, degree[i])
        assert labelled.graph.adjacency[[i]].toarray()[0, listed].all()
    near, counts = (
        numbers(page, "near", "<u2").reshape(-1, 3),
        numbers(page, "nearCount", "<u4").reshape(-1, 3),
    )
    around = labelled.graph.adjacency.toarray() @ np.eye(len(ids))[best[:, 0]]
    for i in range(240):
        for c, count in zip(near[i], counts[i], strict=True):
            assert count == (0 if c == NO_CLASS else around[i, c])


def test_moved_nodes_and_doubts(
    story: PageData, hostile: tuple[nova.Model, nova.LabelledGraph]
) -> None:
    model, labelled = hostile
    p = model.predict_proba(labelled.graph)
    for i, c in enumerate(story.classes):
        assert sum(story.moved[i]) == (c.size if c.kind == "discovered" else 0)
    assert story.num_unsure == (p.max(axis=1) < 0.5).sum()
    assert story.doubts
    for pair in story.doubts:
        first, second = pair.classes
        between = {first, second}
        best = np.argsort(-p, axis=1, kind="stable")[:, :2]
        one_new = story.classes[first].is_new != story.classes[second].is_new
        margin = p[range(240), best[:, 0]] - p[range(240), best[:, 1]]
        doubtful = (p.max(axis=1) < 0.5) | (one_new & (margin < 0.2))
        mine = [i for i in np.flatnonzero(doubtful) if {*best[i].tolist()} == between]
        assert pair.total == len(mine)
        assert [d.node for d in pair.nodes] == sorted(mine, key=lambda i: margin[i])[:8]
        for d in pair.nodes:
            neighbors = labelled.graph.adjacency[[d.node]].indices
            assert {d.first, d.second} == between
            assert d.in_first == (p.argmax(axis=1)[neighbors] == d.first).sum()
            assert d.in_second == (p.argmax(axis=1)[neighbors] == d.second).sum()
            assert d.degree == len(neighbors)


def test_a_large_graph_is_sampled_by_class_and_the_page_says_so(
    hostile: tuple[nova.Model, nova.LabelledGraph],
) -> None:
    model, labelled = hostile
    told = collect(
        model,
        labelled.graph,
        title="t",
        model_hash="h",
        max_nodes=60,
        layout=lambda z: np.zeros((len(z), 2)),
    )
    shown = len(told.nodes.names)
    assert shown < 240
    assert f"a sample of {shown} nodes" in Page(review_page(told)).text
    assert sum(c.size or 0 for c in told.classes) == 240
    assert set(told.nodes.best[:, 0].tolist()) == {i for i, c in enumerate(told.classes) if c.size}
    for c in told.classes:
        assert {str(name) for name in c.representatives} <= set(told.nodes.names)
    assert told.nodes.targets.max() < shown


def unpack_edges(packed: bytes, n: int) -> set[tuple[int, int]]:
    """What `pack_edges` packed, byte by byte."""
    values, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    assert shift == 0
    rest, edges = iter(values), set()
    for node in range(n):
        other = node
        for _ in range(next(rest)):
            other += next(rest)
            edges.add((node, other))
    assert not [*rest]
    return edges


@pytest.mark.parametrize(("nodes", "links"), [(5, 0), (40, 100), (400, 300), (70_000, 4_000)])
def test_edges_between_nodes_on_the_map_are_packed(nodes: int, links: int) -> None:
    rng = np.random.default_rng(nodes)
    graph = nova.Graph.of(np.ones((nodes, 1)), rng.integers(0, nodes, (2, links)))
    on_map = np.sort(rng.choice(nodes, nodes * 4 // 5, replace=False))
    number = np.full(nodes, -1)
    number[on_map] = np.arange(len(on_map))
    a, b = number[graph.edge_index]
    wanted = {(i, j) for i, j in zip(a.tolist(), b.tolist(), strict=True) if 0 <= i < j}
    packed = pack_edges(graph, number, len(on_map))
    assert packed is not None
    assert unpack_edges(packed, len(on_map)) == wanted


def test_a_page_has_no_edges_of_a_graph_with_very_many(
    hostile: tuple[nova.Model, nova.LabelledGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = hostile[1].graph
    links, everything = graph.num_edges // 2, np.arange(graph.num_nodes)
    monkeypatch.setattr(page_data, "MAX_EDGES", links)
    assert pack_edges(graph, everything, graph.num_nodes) is not None
    monkeypatch.setattr(page_data, "MAX_EDGES", links - 1)
    assert pack_edges(graph, everything, graph.num_nodes) is None


def test_links_between_classes_are_counted(
    hostile: tuple[nova.Model, nova.LabelledGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = hostile[1].graph
    first = np.random.default_rng(0).integers(0, 4, graph.num_nodes)
    counts: dict[tuple[int, int], int] = {}
    for a, b in graph.edge_index.T.tolist():
        if a < b:
            pair = (min(first[a], first[b]), max(first[a], first[b]))
            counts[pair] = counts.get(pair, 0) + 1
    found = class_links(graph, first, 5)
    assert {(a, b): n for a, b, n in found} == counts
    assert [n for *_, n in found] == sorted(counts.values(), reverse=True)
    monkeypatch.setattr(page_data, "MAX_LINKS", 2)
    assert class_links(graph, first, 5) == found[:2]


def test_the_scripts_know_what_a_decision_about_nodes_needs(
    hostile: tuple[nova.Model, nova.LabelledGraph],
) -> None:
    model, labelled = hostile
    graph = labelled.graph
    made = model.create_class(graph.node_ids[:12].tolist(), graph, "ferns")
    page = collect(made, graph, title="t", model_hash="h", layout=lambda z: np.zeros((len(z), 2)))
    data = Page(review_page(page)).data
    new = made.classes[-1].id
    assert (data["nextId"], data["numNodes"], data["mostChosen"]) == (new + 1, 240, 100_000)
    row_of = {c.id: row for row, c in enumerate(made.classes)}
    sources = made.edits[-1].sources  # type: ignore[union-attr]
    assert {tuple(pair) for pair in data["apart"]} == {(row_of[c], row_of[new]) for c in sources}
    assert data["own"][row_of[new]] is True


def test_a_small_graph_makes_a_small_page(story: PageData) -> None:
    assert len(review_page(story).encode()) < 250_000


def test_answers_for_another_graph_are_refused(
    hostile: tuple[nova.Model, nova.LabelledGraph],
) -> None:
    model, labelled = hostile
    with pytest.raises(GraphError, match="answers are given for 3 nodes, but the graph has 240"):
        collect(model, labelled.graph, title="t", model_hash="h", answers=(np.zeros(3, int), ["a"]))


@pytest.mark.slow
def test_the_name_of_a_node_is_cut(hostile: tuple[nova.Model, nova.LabelledGraph]) -> None:
    model, labelled = hostile
    ids = labelled.graph.node_ids.astype(object)
    ids[5] = "x" * 1_000_000
    graph = replace(labelled.graph, node_ids=ids.astype(str))
    told = collect(model, graph, title="t", model_hash="h", layout=lambda z: np.zeros((len(z), 2)))
    assert told.nodes.names[5] == "x" * 199 + "…"


def test_a_graded_model_shows_its_scores_and_its_confusion(story: PageData) -> None:
    """Of a row as the previous version wrote it, whose class names try to be markup."""
    document = json.loads((PREVIOUS / "graded" / "seed-0" / "row.json").read_text())
    document["class_names"] = ["<i>a</i>", "b", "c", "</svg><img src=x>"]
    source = review_page(replace(story, rows=[GradedRun.from_json(document)]))
    page = Page(source)
    assert not page.open
    assert "img" not in {tag for tag, _ in page.tags}
    assert f"{document['scores']['block']['all']:.1f}" in page.text
    counts, sizes = (
        np.array(document["confusion"]),
        (document["sizes"], document["predicted_sizes"]),
    )
    called = {c.id: c.name for c in story.classes if c.kind == "discovered"}
    for drawing in before_and_after_matching(
        counts, document["class_names"], 2, *sizes, called
    ).values():
        assert drawing in source
    assert "Confusion matrix" not in Page(review_page(story)).text
