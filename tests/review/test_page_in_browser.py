"""The review page in a real Chromium.

It draws, finds, decides and saves, and asks the network for nothing. Needs `pip install playwright`
and a Chromium that is installed already (NODENOVA_CHROMIUM names one in an unusual place).
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.folder import GradedFolder
from nodenova.bench.run_page import write_report
from nodenova.cli.review import ReviewSession
from nodenova.model.loading import load_model
from nodenova.model.saving import weights_digest
from nodenova.review.page import review_page
from nodenova.review.page_data import PageData, collect
from nodenova.review.suggestions import (
    LabelSuggestion,
    MergeSuggestion,
    SplitSuggestion,
    Suggestions,
)
from nodenova.runs.apply import apply_review
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun
from nodenova.runs.server import ReviewServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PREVIOUS = Path(__file__).parents[1] / "fixtures" / "previous"
HOSTILE = "<script>alert(1)</script>"
CHROMIUM = (
    os.environ.get("NODENOVA_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed (pip install playwright)"
)
if CHROMIUM is None:
    pytest.skip(
        "no Chromium here (apt-get install chromium, or set NODENOVA_CHROMIUM)",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def found() -> tuple[nova.Model, nova.Graph]:
    """Two known classes and three discovered ones; the first node has a script for a name."""
    plain = nova.synthetic(
        nodes=240, classes=5, words=80, words_per_node=8, homophily=0.45, topic_share=0.25
    )
    ids = np.array([HOSTILE, *(f"node {i}" for i in range(1, 240))])
    labelled = replace(plain, graph=replace(plain.graph, node_ids=ids))
    old, new, _ = nova.split(labelled, [0, 1])
    return nova.discover(nova.fit(old, "prism"), new, nova.Prism()), labelled.graph


@pytest.fixture(scope="module")
def story(found: tuple[nova.Model, nova.Graph]) -> PageData:
    model, graph = found
    return collect(model, graph, title=HOSTILE, model_hash=weights_digest(model))


@pytest.fixture(scope="module")
def file(story: PageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "review.html"
    path.write_text(review_page(story), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[nova.NodeDiscoverer, Path]:
    """A run with an estimated number of new classes, and its page."""
    data = nova.synthetic(nodes=240, classes=6, words=80, seed=3)
    y = np.where((data.y < 3) & (np.arange(240) % 2 == 0), data.y, -1)
    found = nova.NodeDiscoverer(method=nova.Prism(restarts=2, n_resamples=2)).fit(data.graph, y)
    return found, found.report(tmp_path_factory.mktemp("counted") / "run")


def test_the_slider_shows_other_numbers_of_new_classes(
    open_page: Callable[..., Any], counted: tuple[nova.NodeDiscoverer, Path]
) -> None:
    found, path = counted
    numbers = found.run_.numbers
    assert numbers is not None
    more = numbers.previews[numbers.previews.index(found.run_.num_new) + 1]
    page = open_page(path.as_uri())
    slider = page.get_by_label("New classes", exact=True)
    assert "counted, this run" in page.locator("#number-text").text_content()
    before = page.locator("#legend").inner_text()
    assert page.locator("#number-use").is_hidden()
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == f"{more} new classes (preview)"
    there = numbers.new_ids(more)
    cells = page.locator("#number-classes td:nth-child(2)").all_text_contents()
    assert sorted(map(int, cells)) == there
    assert page.locator("#legend li").count() == len(there) + 3
    assert page.locator("#number-command").text_content().endswith(f"--num-new {more} --use")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#legend").inner_text() == before


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an address in a browser of its own.

    Errors, dialogs and refused contents of the page fail the test.
    """
    contexts, trouble = [], []

    def opened(address: str, **settings: Any) -> Any:
        context = browser.new_context(accept_downloads=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "console",
            lambda message: trouble.append(message.text) if message.type == "error" else None,
        )

        def dialog(shown: Any) -> None:
            if shown.type != "beforeunload":
                trouble.append(shown.message)
            shown.accept()

        page.on("dialog", dialog)
        page.goto(address)
        page.wait_for_selector("#legend li")
        if page.locator("#known").count():  # known classes are folded away at first
            assert page.locator("#known").get_attribute("open") is None
            page.click("#known > summary")
            page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        page.wait_for_timeout(150)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not trouble


COLOURS_ON_THE_MAP = """() => {
  const canvas = document.getElementById("map"), seen = new Set();
  const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < bytes.length; i += 4)
    seen.add(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
  return [...seen];
}"""


def test_opens_from_a_file_and_asks_for_nothing(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri())
    assert [url for url in page.requests if not url.startswith("data:")] == [file.as_uri()]


def test_the_map_draws_in_the_colors_of_the_classes(
    open_page: Callable[..., Any], file: Path, story: PageData
) -> None:
    page = open_page(file.as_uri())
    seen = set(page.evaluate(COLOURS_ON_THE_MAP))
    drawn = [i for i, c in enumerate(story.classes) if c.size]
    # A light mixture of it where points are not quite opaque: the color itself is in a lit class.
    for i in drawn:
        page.evaluate("i => { map.lit = i; }", i)
        page.wait_for_timeout(60)
        seen |= set(page.evaluate(COLOURS_ON_THE_MAP))
    assert len(seen) > 50
    before = set(page.evaluate(COLOURS_ON_THE_MAP))
    page.evaluate("map.lit = null")
    page.keyboard.press("Tab")
    page.click("#closer")
    page.wait_for_timeout(60)
    assert set(page.evaluate(COLOURS_ON_THE_MAP)) != before


def test_hovering_and_clicking_show_a_node(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri())
    page.evaluate("map.center(7)")
    page.wait_for_timeout(60)
    box = page.locator("#map").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    assert page.inner_text("#tip b") == "node 7"
    page.mouse.click(*middle)
    assert page.inner_text("#card h3") == "node 7"
    page.keyboard.press("Escape")


def test_search_finds_a_node_by_the_keyboard(
    open_page: Callable[..., Any], file: Path, story: PageData
) -> None:
    page = open_page(file.as_uri())
    page.keyboard.press("/")
    page.keyboard.type("node 23")
    assert page.locator("#found li").count() == 11  # node 23 and node 230 to 239
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.inner_text("#card h3") == "node 230"
    assert page.locator("#card .node").count() == min(8, int(story.nodes.degree[230]))
    page.fill("#search", "no such node")
    assert "No node name contains" in page.inner_text("#found")


def test_a_script_for_a_name_is_text(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri())
    assert page.inner_text("h1") == HOSTILE
    page.fill("#search", "<script>")
    assert HOSTILE in page.inner_text("#found")
    page.press("#search", "Enter")
    assert page.inner_text("#card h3") == HOSTILE
    name = page.locator("[data-card='3'] .name")
    name.fill(HOSTILE)
    name.press("Enter")
    assert HOSTILE in page.inner_text("#legend")


def decide(page: Any) -> None:
    """Call class 0 birds, merge 2 with 3 as fish, reject 4, split 1; and undo one decision."""
    name = page.locator("[data-card='0'] .name")
    name.fill("  birds ")
    name.press("Enter")
    page.check("[data-tick='2']")
    page.check("[data-tick='3']")
    page.click("#merge")
    page.fill("#ask-input", "birds")
    page.click("#ask-ok")
    assert "already has this name" in page.inner_text("#ask-error")
    page.fill("#ask-input", "fish")
    page.keyboard.press("Enter")
    page.click("[data-card='4'] [data-do=reject]")
    page.click("[data-card='1'] [data-do=split]")
    page.fill("#ask-input", "2")
    page.click("#ask-ok")
    page.click("#undo")


def test_decisions_become_a_review_that_changes_the_model(
    open_page: Callable[..., Any], file: Path, found: tuple[nova.Model, nova.Graph]
) -> None:
    model, graph = found
    page = open_page(file.as_uri())
    decide(page)
    assert page.inner_text("#tally") == "3 decisions, not saved yet"
    assert "Merged into fish" in page.inner_text("[data-card='3']")
    assert page.locator("[data-card='4'] .name").is_disabled()
    shown = page.evaluate("story.names.map((_, i) => story.classes[classOf(i)].id)")
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "review.json"
    review = json.loads(Path(download.value.path()).read_text())
    assert review == {
        "format": "nodenova review",
        "version": 1,
        "model": weights_digest(model),
        "after": 0,
        "decisions": [
            {"do": "rename", "class": 0, "name": "birds"},
            {"do": "merge", "classes": [2, 3], "name": "fish"},
            {"do": "reject", "class": 4},
        ],
    }
    assert page.inner_text("#tally") == "3 decisions, saved"
    after = apply_review(model, review, graph)
    assert after.class_names == ("birds", model.class_names[1], "fish")
    before, predicted = model.predict(graph), after.predict(graph)
    assert set(before) == {0, 1, 2, 3, 4}
    assert not {3, 4} & set(predicted)
    assert (predicted[before == 3] == 2).all()
    assert shown == predicted.tolist()  # the page showed what would become of it


def test_a_name_that_is_taken_or_empty_is_refused(
    open_page: Callable[..., Any], file: Path, story: PageData
) -> None:
    page = open_page(file.as_uri())
    name = page.locator("[data-card='0'] .name")
    for wrong, why in ((story.classes[1].name, "Merge the two"), ("  ", "needs a name")):
        name.fill(wrong)
        name.press("Enter")
        assert why in page.inner_text("#message")
        assert why in page.inner_text("[data-card='0'] .decided")  # beside the name, too
        assert name.input_value() == story.classes[0].name
    assert page.inner_text("#tally") == "No decisions yet"


@pytest.mark.parametrize("mended", ["another name", "the old name", "a decision elsewhere"])
def test_a_red_message_goes_away_once_the_name_is_mended(
    open_page: Callable[..., Any], file: Path, story: PageData, mended: str
) -> None:
    page = open_page(file.as_uri())
    name = page.locator("[data-card='0'] .name")
    name.fill(story.classes[1].name)
    name.press("Enter")
    assert page.locator("#message.problem, [data-card='0'] .problem").count() == 2
    if mended == "a decision elsewhere":
        page.click("[data-card='4'] [data-do=reject]")
    else:
        name.fill("larch" if mended == "another name" else f"{story.classes[0].name} ")
        name.press("Enter")
    assert page.inner_text("#message") == ""
    assert page.inner_text("[data-card='0'] .decided") == ""
    assert page.locator("[data-card='0'] .problem").count() == 0


def test_decisions_survive_a_reload(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri())
    page.click("[data-card='4'] [data-do=reject]")
    page.reload()
    page.wait_for_selector("#legend li")
    assert page.inner_text("#tally") == "1 decision, not saved yet"
    page.click("#undo")
    page.reload()
    page.wait_for_selector("#legend li")
    assert page.inner_text("#tally") == "No decisions yet"


def test_everything_can_be_reached_by_keyboard(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri())
    reached = set()
    for _ in range(
        page.evaluate(
            "document.querySelectorAll('button, input, a, canvas, summary, [tabindex]').length"
        )
        + 5
    ):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className"
                " || document.activeElement.tagName"
            )
        )
    assert {"search", "map", "whole", "name", "node", "INPUT"} <= reached
    page.focus("#map")
    for key in ("ArrowLeft", "ArrowUp", "+", "-", "0", "+", "+", "Enter"):
        page.keyboard.press(key)
    page.focus("[data-card='4'] [data-do=reject]")
    page.keyboard.press("Space")
    assert page.inner_text("#tally").startswith("1 decision")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_need_no_sideways_scrolling(
    open_page: Callable[..., Any], file: Path, scheme: str
) -> None:
    page = open_page(file.as_uri(), viewport={"width": 360, "height": 740}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert len(page.evaluate(COLOURS_ON_THE_MAP)) > 20


def test_prints(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri(), color_scheme="dark")
    assert page.pdf().startswith(b"%PDF")


def test_the_report_of_a_run_has_a_map_too(open_page: Callable[..., Any], tmp_path: Path) -> None:
    """Without probabilities, neighbors and cards: a run keeps none of these."""
    shutil.copytree(PREVIOUS / "graded", tmp_path / "run")
    folder = GradedFolder.open(tmp_path / "run")
    kept, row = folder.map(), folder.rows()[0]
    assert kept is not None
    page = open_page(write_report(folder).as_uri())
    assert [url for url in page.requests if not url.startswith("data:")] == [
        (tmp_path / "run" / "report.html").as_uri()
    ]
    page.check("[name=view][value=true]")
    legend = page.inner_text("#legend")
    assert {row.class_names[c] for c in set(kept["y"].tolist())} == {
        name for name in row.class_names if name in legend
    }
    page.fill("#search", str(kept["node_ids"][0]))
    page.press("#search", "Enter")
    card = page.inner_text("#card")
    assert row.class_names[int(kept["y"][0])] in card
    assert "%" not in card
    assert "neighbors" not in card
    assert len(page.evaluate(COLOURS_ON_THE_MAP)) > 3


def test_a_served_page_saves_into_the_run(
    open_page: Callable[..., Any], found: tuple[nova.Model, nova.Graph], tmp_path: Path
) -> None:
    model, graph = found
    folder = RunFolder.write(tmp_path / "run", DiscoveryRun("Served", model, graph), report=False)
    session = ReviewSession(folder.path, quiet=True)
    with ReviewServer(session.page, session.save) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        page = open_page(server.url)
        assert page.url == f"http://127.0.0.1:{server.server_port}/"
        decide(page)
        page.click("#save")
        playwright.expect(page.locator("[data-card]")).to_have_count(3, timeout=30_000)
        assert page.inner_text("#tally") == "No decisions yet"
        assert page.inner_text("#message") == "Saved 3 decisions to the run."
        assert page.locator("#history li").count() == 3
        page.reload()
        server.shutdown()
        thread.join()
    assert len(json.loads((folder.path / "review.json").read_text())["decisions"]) == 3
    assert load_model(folder.path / "model").class_names == ("birds", model.class_names[1], "fish")


@pytest.fixture
def served(found: tuple[nova.Model, nova.Graph], tmp_path: Path) -> Iterator[ReviewServer]:
    """The page of a run in `tmp_path / "run"`, on a server."""
    model, graph = found
    texts = {"url": [f"https page of {i}" for i in range(240)]}
    run = DiscoveryRun("Served", model, graph, node_texts=texts)
    folder = RunFolder.write(tmp_path / "run", run, report=False)
    session = ReviewSession(folder.path, quiet=True)
    with ReviewServer(session.page, session.save, undo=session.undo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def said(page: Any, text: str) -> None:
    playwright.expect(page.locator("#message")).to_contain_text(text, timeout=30_000)


def test_a_node_is_moved_by_hand_saved_and_taken_back(
    open_page: Callable[..., Any], served: ReviewServer, tmp_path: Path
) -> None:
    page = open_page(served.url)
    page.fill("#search", "node 7")
    page.press("#search", "Enter")
    assert "https page of 7" in page.inner_text("#card")
    was = page.evaluate("classOf(7)")
    to = next(i for i in range(5) if i != was)
    page.select_option("#move-to", str(to))
    page.click("#move")
    assert page.evaluate("classOf(7)") == to
    assert "Move “node 7” to class" in page.text_content("#decisions")
    page.click("#undo")
    assert page.evaluate("classOf(7)") == was
    page.select_option("#move-to", str(to))
    page.click("#move")
    page.click("#save")
    said(page, "Saved 1 decision to the run.")
    assert page.evaluate("classOf(7)") == to  # also after the page was loaded anew
    with np.load(tmp_path / "run" / "labels.npz") as kept:
        assert kept["y"][7] == to
    page.click("#take-back")
    said(page, "Undone")
    assert page.evaluate("classOf(7)") == was
    assert page.locator("#history").count() == 0
    assert not (tmp_path / "run" / "labels.npz").exists()


def test_a_review_made_before_another_is_refused(
    open_page: Callable[..., Any], served: ReviewServer, tmp_path: Path
) -> None:
    page = open_page(served.url)
    first, second = page, page.context.new_page()
    second.goto(first.url)
    second.wait_for_selector("#legend li")
    for reader, name in ((first, "fish"), (second, "fowl")):
        field = reader.locator("[data-card='2'] .name")
        field.fill(name)
        field.press("Enter")
    first.click("#save")
    said(first, "Saved 1 decision to the run.")
    # Chromium writes an answer that refuses to the console; that is no trouble of the page's.
    second.click("#save")
    said(second, "the run was reviewed since: this review is of revision 0, and the run is at 1")
    assert load_model(tmp_path / "run" / "model").class_of(2).name == "fish"


def test_members_are_typical_random_and_least_sure_ones_and_more_on_demand(
    open_page: Callable[..., Any], file: Path
) -> None:
    page = open_page(file.as_uri())
    card = page.locator("[data-card='3'] .members")
    lists = []
    for kind in ("typical", "random", "least certain"):
        card.get_by_role("button", name=kind, exact=True).click()
        lists.append(card.locator("li .node").all_inner_texts())
        assert len(lists[-1]) == 5
    assert len({tuple(each) for each in lists}) == 3
    sure = page.evaluate("names => names.map(name => probability(numberOfNode(name)))", lists[2])
    least = page.evaluate(
        "story.names.map((_, i) => i).filter(i => classOf(i) === 3).map(probability)"
    )
    assert sure == sorted(least)[:5]
    card.locator(".more").click()
    assert card.locator("li").count() == min(25, len(least))
    card.locator("li .node").first.click()
    assert page.inner_text("#card h3") == lists[2][0]


def test_colors_stay_and_a_merged_class_is_not_like_itself(
    open_page: Callable[..., Any], file: Path, story: PageData
) -> None:
    page = open_page(file.as_uri())
    color = "i => look(i).color"
    before = [page.evaluate(color, i) for i in range(5)]
    assert len(set(before)) == 5
    near = story.classes[2].nearest
    line = page.locator(f"[data-card='2'] [data-hide-if='{near}']").first
    assert line.is_visible()
    page.check("[data-tick='2']")
    page.check(f"[data-tick='{near}']")
    page.click("#merge")
    page.click("#ask-ok")
    assert not line.is_visible()
    assert [page.evaluate(color, i) for i in range(5)] == before


@pytest.fixture(scope="module")
def offered(found: tuple[nova.Model, nova.Graph], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page that suggests to merge 2 with 3, to split 4 and to correct the label of node 5."""
    model, graph = found
    suggested = Suggestions(
        (MergeSuggestion((2, 3), 0.8),),
        (SplitSuggestion(4, 0.6),),
        (LabelSuggestion("node 5", HOSTILE, 1, 0.95),),
        ("node 9", HOSTILE),
        0.05,
    )
    page = collect(
        model,
        graph,
        title="x",
        model_hash=weights_digest(model),
        suggested=suggested,
        num_disagreeing=2,
    )
    path = tmp_path_factory.mktemp("offered") / "review.html"
    path.write_text(review_page(page), encoding="utf-8")
    return path


def kept_decisions(page: Any) -> list[dict[str, object]]:
    with page.expect_download() as download:
        page.click("#save")
    review = json.loads(Path(download.value.path()).read_text())
    decisions: list[dict[str, object]] = review["decisions"]
    return decisions


def test_a_suggestion_is_accepted_with_a_click_and_undone(
    open_page: Callable[..., Any], offered: Path, story: PageData
) -> None:
    page = open_page(offered.as_uri())
    merge, split, label = (page.locator(f"[data-accept='{i}']") for i in range(3))
    assert [each.inner_text() for each in (merge, split, label)] == [
        "Merge",
        "Split",
        "Correct the label",
    ]
    assert HOSTILE in page.inner_text("#wrong-labels")
    assert "2 nodes fit none of the classes" in page.inner_text("#fit-none")
    farthest = page.locator("#suggestions > .chips .node")
    assert farthest.all_inner_texts() == ["node 9", HOSTILE]
    assert "For 2 nodes the model disagrees" in page.inner_text("#disagreement")
    merge.click()
    assert (merge.inner_text(), merge.is_disabled()) == ("Accepted", True)
    line = page.inner_text("#suggestions li:first-of-type")
    assert all(story.classes[i].name in line for i in (2, 3))
    assert "Merged into" in page.inner_text("[data-card='3']")
    split.click()
    assert "Will be split into 2" in page.inner_text("[data-card='4']")
    page.click("#undo")
    assert (split.inner_text(), split.is_enabled()) == ("Split", True)
    assert page.inner_text("[data-card='4'] .decided") == ""
    page.click("#undo")
    assert (merge.inner_text(), merge.is_enabled()) == ("Merge", True)
    assert page.inner_text("#tally") == "No decisions yet"


def test_accepted_suggestions_become_a_review(
    open_page: Callable[..., Any], offered: Path, found: tuple[nova.Model, nova.Graph]
) -> None:
    model, graph = found
    page = open_page(offered.as_uri())
    name = page.locator("[data-card='2'] .name")
    name.fill("fish")
    name.press("Enter")
    for i in (0, 1, 2):
        page.click(f"[data-accept='{i}']")
    assert "Move “node 5” to class 1" in page.text_content("#decisions")
    decisions = kept_decisions(page)
    assert decisions == [
        {"do": "rename", "class": 2, "name": "fish"},
        {"do": "merge", "classes": [2, 3], "name": "fish"},
        {"do": "split", "class": 4, "into": 2},
        {"do": "relabel", "nodes": ["node 5"], "class": 1},
    ]
    review = {"format": "nodenova review", "version": 1, "model": weights_digest(model)}
    after = apply_review(model, review | {"decisions": decisions}, graph)
    assert [c.id for c in after.classes] == [0, 1, 2, 5, 6]


def test_what_was_decided_otherwise_cannot_be_accepted(
    open_page: Callable[..., Any], offered: Path
) -> None:
    page = open_page(offered.as_uri())
    page.click("[data-card='4'] [data-do=reject]")
    assert page.locator("[data-accept='1']").is_disabled()
    page.check("[data-tick='1']")
    page.check("[data-tick='3']")
    page.click("#merge")
    page.click("#ask-ok")
    page.click("[data-accept='0']")  # 3 is part of 1 by now
    page.click("[data-accept='2']")
    assert [list(d.values())[:2] for d in kept_decisions(page)] == [
        ["reject", 4],
        ["merge", [1, 3]],
        ["merge", [1, 2]],
        ["relabel", ["node 5"]],
    ]


def rename(page: Any, number: int, name: str) -> None:
    field = page.locator(f"[data-card='{number}'] .name")
    field.fill(name)
    field.press("Enter")


def test_open_decisions_are_not_advised_against(
    open_page: Callable[..., Any], offered: Path, story: PageData
) -> None:
    page = open_page(offered.as_uri())
    merge, split, label = (page.locator(f"li:has([data-accept='{i}'])") for i in range(3))
    verdict = page.locator("[data-card='4'] .trust")
    before = verdict.inner_text()
    assert not before.startswith("Yours")
    rename(page, 4, "cats")
    assert (verdict.inner_text(), verdict.get_attribute("class")) == ("Yours.", "trust yours")
    assert split.is_hidden()
    rename(page, 2, "fish")
    assert merge.is_visible()  # the other class may be fish, too
    assert "likely the same class" in page.inner_text("[data-card='2'] .trust")
    rename(page, 3, "birds")
    assert merge.is_hidden()
    assert "likely the same class" not in page.inner_text("[data-card='2'] .trust")
    page.fill("#search", "node 5")
    page.press("#search", "Enter")
    page.select_option("#move-to", "0")
    page.click("#move")
    assert label.is_hidden()
    for _ in range(4):
        page.click("#undo")
    assert all(each.is_visible() for each in (merge, split, label))
    assert verdict.inner_text() == before


def test_a_merged_class_keeps_the_name_that_a_person_gave(
    open_page: Callable[..., Any], offered: Path
) -> None:
    page = open_page(offered.as_uri())
    rename(page, 3, "birds")  # the younger of the two
    page.click("[data-accept='0']")
    assert page.locator("[data-card='2'] .name").input_value() == "birds"
    page.click("#undo")
    page.check("[data-tick='2']")
    page.check("[data-tick='3']")
    page.click("#merge")
    assert page.input_value("#ask-input") == "birds"


def test_parts_of_a_saved_split_are_not_offered_for_a_merge_by_way_of_another_class(
    open_page: Callable[..., Any], found: tuple[nova.Model, nova.Graph], tmp_path: Path
) -> None:
    model, graph = found
    halved = model.split(4, graph)  # 5 and 6
    suggested = Suggestions((MergeSuggestion((2, 5), 0.8), MergeSuggestion((2, 6), 0.7)))
    page_data = collect(
        halved, graph, title="x", model_hash=weights_digest(halved), suggested=suggested
    )
    path = tmp_path / "review.html"
    path.write_text(review_page(page_data), encoding="utf-8")
    page = open_page(path.as_uri())
    cards = page.locator("[data-card]:has(.trust.yours)")
    assert cards.count() == 2
    assert all("You split it off class 4." in text for text in cards.all_inner_texts())
    page.click("[data-accept='0']")
    assert page.locator("li:has([data-accept='1'])").is_hidden()
    page.click("#undo")
    assert page.locator("[data-accept='1']").is_enabled()


# The map as a workbench: select nodes, decide about them, see edges and classes.

# Where every node is drawn, in pixels of the window.
PLACES = """() => {
  const {left, top} = document.getElementById("map").getBoundingClientRect();
  return story.names.map((_, i) => [map.placeOf(i)[0] + left, map.placeOf(i)[1] + top]);
}"""
# Pixels of the canvas with a color, which grey points and edges do not have.
COLORED = """() => {
  const canvas = document.getElementById("map");
  const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0;
  for (let i = 0; i < bytes.length; i += 4)
  {
    const [red, green, blue] = bytes.slice(i, i + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 60) n++;
  }
  return n;
}"""


def places(page: Any) -> np.ndarray:
    """(n, 2) places of the nodes in the window."""
    page.locator("#map").scroll_into_view_if_needed()
    page.wait_for_timeout(60)
    return np.array(page.evaluate(PLACES))


def inside(polygon: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Numbers of the points in a convex polygon: all on the same side of its sides."""
    sides = np.roll(polygon, -1, axis=0) - polygon  # (k, 2)
    apart = xy[:, None] - polygon[None]  # (n, k, 2)
    turn = sides[:, 0] * apart[..., 1] - sides[:, 1] * apart[..., 0]
    return np.flatnonzero((turn > 0).all(axis=1) | (turn < 0).all(axis=1))


def drag(page: Any, polygon: np.ndarray, held: str = "") -> None:
    """Drag the mouse along a polygon, with a key held."""
    page.mouse.move(*polygon[0])
    if held:
        page.keyboard.down(held)
    page.mouse.down()
    for corner in polygon[1:]:
        page.mouse.move(*corner, steps=6)
    page.mouse.up()
    if held:
        page.keyboard.up(held)
    page.mouse.move(2, 2)


def frame_of(xy: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """(4, 2) corners of a box around the inner half of some nodes."""
    (a, b), (c, d) = np.quantile(xy[nodes], [0.25, 0.75], axis=0)
    return np.array([[a - 3, b - 3], [c + 3, b - 3], [c + 3, d + 3], [a - 3, d + 3]])


def class_of(page: Any) -> np.ndarray:
    return np.array(page.evaluate("story.names.map((_, i) => classOf(i))"))


def lasso(page: Any, number: int) -> list[int]:
    """Lasso the middle of a class; numbers of the nodes that are in the lasso."""
    page.check("[name=tool][value=lasso]")
    xy = places(page)
    polygon = frame_of(xy, np.flatnonzero(class_of(page) == number))
    drag(page, polygon)
    return [int(i) for i in inside(polygon, xy)]


def test_a_lasso_selects_what_is_inside_and_the_rest_turns_grey(
    open_page: Callable[..., Any], file: Path, story: PageData
) -> None:
    page = open_page(file.as_uri())
    before = page.evaluate(COLORED)
    page.check("[name=tool][value=lasso]")
    xy = places(page)
    (a, b), (c, d) = np.quantile(xy, [0.2, 0.8], axis=0)
    triangle = np.array([[a, b], [c, (b + d) / 2], [a, d]])
    drag(page, triangle)
    there = inside(triangle, xy)
    assert len(there) > 10
    assert page.evaluate("chosenNodes") == there.tolist()
    assert page.inner_text("#chosen h3").lower() == f"{len(there)} nodes selected"
    line = page.inner_text("#chosen p")
    classes, sizes = np.unique(class_of(page)[there], return_counts=True)
    most = int(classes[sizes.argmax()])
    assert line.startswith(f"{sizes.max()} in {story.classes[most].name}")
    page.wait_for_timeout(60)
    # A color is left for what was selected, and for nothing else.
    assert page.evaluate(COLORED) < before * (len(there) / len(xy) + 0.2)
    page.click("#unselect")
    page.wait_for_timeout(60)
    assert page.evaluate(COLORED) == before
    assert page.locator("#chosen").is_hidden()


@pytest.mark.parametrize("by", ["key", "choice"])
def test_boxes_add_to_a_selection_and_remove_from_it(
    open_page: Callable[..., Any], file: Path, by: str
) -> None:
    page = open_page(file.as_uri())
    page.check("[name=tool][value=box]")
    xy = places(page)
    x0, y0, x1, y1 = *np.quantile(xy, 0.1, axis=0), *np.quantile(xy, 0.9, axis=0)
    mid = (x0 + x1) / 2

    def box(left: float, right: float) -> np.ndarray:
        return np.array([[left, y0], [right, y1]])

    def within(left: float, right: float) -> set[int]:
        corners = np.array([[left, y0], [right, y0], [right, y1], [left, y1]])
        return {int(i) for i in inside(corners, xy)}

    wanted: set[int] = set()
    for how, key, (left, right) in (
        ("new", "", (x0, mid)),
        ("add", "Shift", (mid, x1)),
        ("remove", "Alt", (mid - 40, mid + 40)),
        ("new", "", (mid, x1)),
    ):
        if by == "choice":
            page.select_option("#how", how)
        drag(page, box(left, right), key if by == "key" else "")
        some = within(left, right)
        wanted = {"new": some, "add": wanted | some, "remove": wanted - some}[how]
        assert set(page.evaluate("chosenNodes")) == wanted
    assert wanted
    page.check("[name=tool][value=move]")  # Shift makes a box of a movement
    drag(page, box(x0, mid), "Shift")
    assert set(page.evaluate("chosenNodes")) == within(mid, x1) | within(x0, mid)


@pytest.fixture
def half(found: tuple[nova.Model, nova.Graph], tmp_path: Path) -> Iterator[ReviewServer]:
    """The first 150 nodes, with labels, in a served run; the others come later."""
    model, graph = found
    first = graph.subgraph(np.arange(150))
    given = model.predict(first)
    given = np.where((given < 2) & (np.arange(150) % 2 == 0), given, -1)
    run = DiscoveryRun(
        "Half", model, first, label_ids=given, label_names=tuple(model.class_names[:2])
    )
    folder = RunFolder.write(tmp_path / "run", run, report=False)
    session = ReviewSession(folder.path, quiet=True)
    with ReviewServer(session.page, session.save, undo=session.undo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_lassoed_class_is_saved_and_met_on_a_later_graph(
    open_page: Callable[..., Any],
    half: ReviewServer,
    found: tuple[nova.Model, nova.Graph],
    tmp_path: Path,
) -> None:
    graph = found[1]
    page = open_page(half.url)
    there = lasso(page, 3)
    assert len(there) >= 5
    page.click("#create")
    assert page.input_value("#ask-input") == "new-5"
    page.fill("#ask-input", "new-2")
    name = page.evaluate("story.classes[2].name")
    page.fill("#ask-input", name)
    page.click("#ask-ok")
    assert "already has this name" in page.inner_text("#ask-error")
    page.fill("#ask-input", "ferns")
    page.keyboard.press("Enter")
    assert page.inner_text("#tally") == "1 decision, not saved yet"
    assert f"Make class 5 “ferns” of {len(there)} nodes." in page.text_content("#decisions")
    assert "ferns" in page.inner_text("#legend")
    assert {int(c) for c in class_of(page)[there]} == {5}
    page.click("#save")
    said(page, "Saved 1 decision to the run.")
    assert page.locator("[data-card='5'] .trust").inner_text().startswith("Yours")
    model = load_model(tmp_path / "run" / "model")
    assert model.class_of(5).name == "ferns"
    assert set(class_of(page)[there].tolist()) == {5}  # by hand, wherever the head puts them
    with np.load(tmp_path / "run" / "labels.npz") as kept:
        assert np.flatnonzero(kept["y"] == 5).tolist() == there
    later = model.predict(graph)[150:]
    assert (later == 5).sum() >= 2
    # The later nodes are of the class that the selected ones were of.
    was = found[0].predict(graph)
    assert (was[150:][later == 5] == 3).mean() > 0.5
    page.click("#take-back")
    said(page, "Undone")
    assert len(load_model(tmp_path / "run" / "model").classes) == 5


def test_selected_nodes_are_moved_and_wrong_labels_removed(
    open_page: Callable[..., Any], half: ReviewServer, tmp_path: Path
) -> None:
    with np.load(tmp_path / "run" / "labels.npz") as kept:
        given = kept["y"]
    page = open_page(half.url)
    sizes = np.bincount(class_of(page), minlength=5)
    there = lasso(page, int(sizes[:2].argmax()))
    wrong = [i for i in there if given[i] >= 0]
    assert wrong
    assert page.inner_text("#unlabel") == f"Wrong label ({len(wrong)})"
    page.click("#unlabel")
    assert "Remove the label of" in page.text_content("#decisions")
    assert page.locator("#chosen").is_hidden()
    moved = lasso(page, 2 + int(sizes[2:].argmax()))
    page.select_option("#chosen-to", "1")
    page.click("#chosen-move")
    assert {int(c) for c in class_of(page)[moved]} == {1}
    page.click("#save")
    said(page, "Saved 2 decisions to the run.")
    with np.load(tmp_path / "run" / "labels.npz") as kept:
        assert (kept["y"][np.setdiff1d(wrong, moved)] == -1).all()
        assert (kept["y"][moved] == 1).all()
        rest = np.setdiff1d(np.arange(150), [*wrong, *moved])
        assert (kept["y"][rest] == given[rest]).all()
    first = np.setdiff1d(wrong, moved).tolist()[0]
    assert page.evaluate("i => story.given[i]", first) == 0xFFFF  # also on the new page


def test_the_selection_is_exported_as_a_table(
    open_page: Callable[..., Any], file: Path, story: PageData
) -> None:
    page = open_page(file.as_uri())
    page.evaluate("selecting([3, 0, 7])")
    with page.expect_download() as download:
        page.click("#export")
    assert download.value.suggested_filename == "selection.csv"
    with Path(download.value.path()).open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert [row["node"] for row in rows] == [story.nodes.names[i] for i in (0, 3, 7)]
    classes = [story.classes[int(story.nodes.best[i, 0])] for i in (0, 3, 7)]
    assert [(row["class"], row["name"]) for row in rows] == [(str(c.id), c.name) for c in classes]
    assert [float(row["probability"]) for row in rows] == pytest.approx(
        [story.nodes.p[i, 0] for i in (0, 3, 7)], abs=2e-3
    )


def test_a_node_whose_name_is_cut_is_not_exported_under_it(
    open_page: Callable[..., Any], found: tuple[nova.Model, nova.Graph], tmp_path: Path
) -> None:
    model, graph = found
    ids = np.array(["x" * 300, *(f"node {i}" for i in range(1, 240))])
    long = replace(graph, node_ids=ids)
    path = tmp_path / "review.html"
    page_data = collect(model, long, title="x", model_hash="0")
    path.write_text(review_page(page_data), encoding="utf-8")
    page = open_page(path.as_uri())
    page.evaluate("selecting([0, 1, 2, 3])")
    with page.expect_download() as download:
        page.click("#export")
    with Path(download.value.path()).open(newline="", encoding="utf-8") as table:
        assert [row["node"] for row in csv.DictReader(table)] == ["node 1", "node 2", "node 3"]
    assert "1 node with a name that is cut on this page is not" in page.inner_text("#chosen")
    page.click("#create")
    page.keyboard.press("Enter")
    (decision,) = kept_decisions(page)
    assert decision["nodes"] == ["node 1", "node 2", "node 3"]


def test_all_nodes_of_a_class_are_selected_by_the_legend(
    open_page: Callable[..., Any], file: Path
) -> None:
    page = open_page(file.as_uri())
    page.locator("#legend button").first.click()
    page.click("#take-lit")
    assert page.evaluate("chosenNodes") == np.flatnonzero(class_of(page) == class_of(page)[
        page.evaluate("chosenNodes[0]")
    ]).tolist()  # fmt: skip


AT = """([px, py]) => {
  const canvas = document.getElementById("map");
  const {left, top, width} = canvas.getBoundingClientRect(), k = canvas.width / width;
  const at = [(px - left) * k - 2, (py - top) * k - 2];
  return [...canvas.getContext("2d").getImageData(...at, 5, 5).data];
}"""


def test_edges_of_the_open_and_of_the_hovered_node_are_drawn(
    open_page: Callable[..., Any], file: Path, found: tuple[nova.Model, nova.Graph]
) -> None:
    adjacency = found[1].adjacency
    page = open_page(file.as_uri())
    links = page.evaluate("story.names.map((_, i) => [...linked(i)].sort((a, b) => a - b))")
    wanted = [sorted(adjacency.indices[a:b].tolist()) for a, b in pairwise(adjacency.indptr)]
    assert links == wanted
    xy = places(page)
    lengths = [(np.hypot(*(xy[i] - xy[j])), i, j) for i, row in enumerate(links) for j in row]
    _, i, j = max(lengths)
    thirds = [(xy[i] * (1 - t) + xy[j] * t).tolist() for t in (0.3, 0.4, 0.5, 0.6)]

    def line() -> list[list[int]]:
        page.wait_for_timeout(60)
        return [page.evaluate(AT, there) for there in thirds]

    before = line()
    page.mouse.move(*xy[i])
    assert page.locator("#tip").is_visible()
    hovered = line()
    assert all(a != b for a, b in zip(hovered, before, strict=True))
    page.mouse.move(2, 2)
    assert line() == before
    page.evaluate("i => openNode(i)", i)
    assert all(a != b for a, b in zip(line(), before, strict=True))
    page.evaluate("closeNode()")
    page.evaluate("i => selecting([i])", i)
    chosen = line()
    page.evaluate("i => { linked = () => []; selecting([i]); }", i)
    assert line() != chosen


def test_the_view_of_classes_shows_links_and_opens_a_class(
    open_page: Callable[..., Any], file: Path, story: PageData, found: tuple[nova.Model, nova.Graph]
) -> None:
    model, graph = found
    row = model.predict(graph)
    a, b = row[graph.edge_index]
    page = open_page(file.as_uri())
    page.check("#class-view")
    page.locator("#map").scroll_into_view_if_needed()
    page.wait_for_timeout(60)
    canvas = page.locator("#map").bounding_box()
    at = {}  # a place of each circle
    for px in np.arange(canvas["x"] + 8, canvas["x"] + canvas["width"], 14):
        for py in np.arange(canvas["y"] + 8, canvas["y"] + canvas["height"], 14):
            page.mouse.move(float(px), float(py))
            text = page.text_content("#class-status")
            if ":" in text:
                at.setdefault(text.rsplit(":", 1)[0], (float(px), float(py)))
    assert set(at) == {c.name for c in story.classes}
    page.mouse.click(*at[story.classes[4].name])
    assert not page.is_checked("#class-view")
    assert page.inner_text("#card h3") == story.classes[4].name
    inner = int(((a == 4) & (b == 4)).sum()) // 2
    assert f"{inner} edge" in page.inner_text("#card p")
    between = {c.name: int(((a == 4) & (b == c.id)).sum()) for c in story.classes[:4]}
    listed = page.locator("#card .chips button").all_inner_texts()
    assert sorted(listed) == sorted(f"{name} {n}" for name, n in between.items() if n)
    assert page.evaluate("map.lit") == 4
    page.get_by_role("button", name="Go to its card").click()
    assert page.evaluate("document.activeElement.closest('[data-card]').dataset.card") == "4"


def test_decisions_change_the_view_of_classes(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(file.as_uri())
    page.click("[data-card='4'] [data-do=reject]")
    page.check("#class-view")
    page.focus("#map")
    names = set()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        names.add(page.text_content("#class-status"))
    assert len(names) == 4
    page.keyboard.press("Escape")
    assert not page.is_checked("#class-view")


def test_another_number_of_classes_and_the_view_of_classes_exclude_each_other(
    open_page: Callable[..., Any], counted: tuple[nova.NodeDiscoverer, Path]
) -> None:
    """Links are counted for the classes of the run."""
    page = open_page(counted[1].as_uri())
    slider = page.get_by_label("New classes", exact=True)
    own = slider.input_value()
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.check("#class-view")
    assert slider.input_value() == own
    assert "this run" in page.text_content("#number-text")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert not page.is_checked("#class-view")
    assert "preview" in page.text_content("#number-text")


def test_a_selection_at_another_number_becomes_a_class(
    open_page: Callable[..., Any], counted: tuple[nova.NodeDiscoverer, Path]
) -> None:
    page = open_page(counted[1].as_uri())
    page.get_by_label("New classes", exact=True).focus()
    page.keyboard.press("ArrowRight")
    new = page.evaluate("map.groupOf(0)")
    page.evaluate("g => { map.lit = g; showLegend(); }", new)
    wanted = page.evaluate("g => [...Array(count).keys()].filter(i => map.groupOf(i) === g)", new)
    page.click("#take-lit")
    assert page.evaluate("chosenNodes") == wanted
    page.click("#create")
    page.keyboard.press("Enter")
    (decision,) = kept_decisions(page)
    assert decision["do"] == "create"
    assert len(decision["nodes"]) == len(wanted)


def test_nodes_are_selected_and_decided_on_by_the_keyboard_alone(
    open_page: Callable[..., Any], file: Path
) -> None:
    page = open_page(file.as_uri())
    page.focus("#map")
    for key in ("ArrowLeft", "ArrowUp", "s", *["ArrowRight"] * 3, *["ArrowDown"] * 3):
        page.keyboard.press(key)
    page.wait_for_timeout(60)
    xy = places(page)
    canvas = page.locator("#map").bounding_box()
    cross = np.array([canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2])
    corner = cross - 180  # three steps of 60 pixels each: arrows move the view
    page.keyboard.press("s")
    (x0, y0), (x1, y1) = np.sort([cross, corner], axis=0)
    there = inside(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]), xy).tolist()
    assert len(there) >= 3
    assert page.evaluate("chosenNodes") == there
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "create":
            break
    page.keyboard.press("Enter")
    page.keyboard.type("ferns")
    page.keyboard.press("Enter")
    (decision,) = kept_decisions(page)
    assert (decision["do"], decision["name"], len(decision["nodes"])) == (
        "create", "ferns", len(there),
    )  # fmt: skip
    page.focus("#map")
    for key in ("s", "ArrowLeft", "Escape"):  # a corner that was marked is given up
        page.keyboard.press(key)
    page.keyboard.press("s")
    page.keyboard.press("s")
    assert page.evaluate("chosenNodes") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_workbench_fits_a_phone(open_page: Callable[..., Any], file: Path, scheme: str) -> None:
    page = open_page(file.as_uri(), viewport={"width": 420, "height": 800}, color_scheme=scheme)
    page.evaluate("selecting([...Array(count).keys()].slice(0, 90))")
    for name in ("create", "chosen-to", "chosen-move", "export", "unselect"):
        box = page.locator(f"#{name}").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 420
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.check("#class-view")
    page.wait_for_timeout(60)
    assert len(page.evaluate(COLOURS_ON_THE_MAP)) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_fingers_draw_a_lasso_and_zoom(open_page: Callable[..., Any], file: Path) -> None:
    page = open_page(
        file.as_uri(), has_touch=True, is_mobile=True, viewport={"width": 420, "height": 900}
    )
    page.check("[name=tool][value=lasso]")
    xy = places(page)
    polygon = frame_of(xy, np.arange(len(xy)))
    screen = page.context.new_cdp_session(page)

    def touch(kind: str, *fingers: Any) -> None:
        points = [{"x": float(px), "y": float(py), "id": i} for i, (px, py) in enumerate(fingers)]
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", polygon[0])
    for one, other in pairwise(polygon):
        for t in np.linspace(0, 1, 6):
            touch("touchMove", one * (1 - t) + other * t)
    touch("touchEnd")
    assert page.evaluate("chosenNodes") == inside(polygon, xy).tolist()
    # Two fingers zoom, whatever one finger does; the selection stays.
    before, chosen = places(page), page.evaluate("chosenNodes")
    middle = before.mean(axis=0)
    across = np.array([1.0, 0.0])
    touch("touchStart", middle - 20 * across, middle + 20 * across)
    for reach in (30, 45, 60):
        touch("touchMove", middle - reach * across, middle + reach * across)
    touch("touchEnd")
    page.wait_for_timeout(250)
    assert np.ptp(places(page)[:, 0]) > 1.5 * np.ptp(before[:, 0])
    assert page.evaluate("chosenNodes") == chosen


def test_nodes_far_outside_do_not_set_the_frame(
    open_page: Callable[..., Any], found: tuple[nova.Model, nova.Graph], tmp_path: Path
) -> None:
    model, graph = found
    xy = 0.45 + 0.1 * np.random.default_rng(0).random((240, 2))
    xy[5], xy[6] = 0.0, 1.0
    page_data = collect(model, graph, title="x", model_hash="0", layout=lambda z: xy)
    path = tmp_path / "review.html"
    path.write_text(review_page(page_data), encoding="utf-8")
    page = open_page(path.as_uri())
    hint = page.locator("#strays")
    assert hint.inner_text() == "2 nodes lie far outside. Whole map shows them."
    rest = np.setdiff1d(np.arange(240), [5, 6])
    canvas = page.locator("#map").bounding_box()

    def share(nodes: np.ndarray) -> float:
        """Share of the height of the canvas that the nodes take."""
        taken: float = np.ptp(places(page)[nodes, 1]) / canvas["height"]
        return taken

    assert share(rest) > 0.8
    page.click("#whole")
    assert hint.is_hidden()
    assert share(np.arange(240)) > 0.8
    assert share(rest) < 0.2
    page.focus("#map")
    page.keyboard.press("0")
    assert share(rest) > 0.8


def test_a_whole_session_on_the_map_asks_for_nothing(
    open_page: Callable[..., Any], file: Path
) -> None:
    page = open_page(file.as_uri())
    lasso(page, 2)
    with page.expect_download():
        page.click("#export")
    page.click("#create")
    page.keyboard.press("Enter")
    page.check("#class-view")
    page.uncheck("#class-view")
    kept_decisions(page)
    asked = [url for url in page.requests if not url.startswith(("data:", "blob:"))]
    assert asked == [file.as_uri()]
