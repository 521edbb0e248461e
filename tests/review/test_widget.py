"""The widget: its page in a frame, decisions that come back as a value."""

from __future__ import annotations

import builtins
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.runs import widget as widgets
from nodenova.runs.folder import RunFolder

pytest.importorskip("anywidget")
CHROMIUM = os.environ.get("NODENOVA_CHROMIUM") or shutil.which("chromium")

# What a notebook gives a widget: a model with get, set, on and save_changes, and a place to be in.
HARNESS = """<!DOCTYPE html><html><body><div id="here"></div><script type="module">
const values = JSON.parse(document.getElementById("values").textContent);
window.saved = [];
const model = {get: key => values[key], set: (key, value) => { values[key] = value; },
  on() {}, off() {}, save_changes: () => window.saved.push(JSON.stringify(values.review))};
const code = document.getElementById("code").textContent;
const file = new Blob([code], {type: "text/javascript"});
const {default: widget} = await import(URL.createObjectURL(file));
window.away = widget.render({model, el: document.getElementById("here")});
</script><script type="application/json" id="values">%s</script>
<script type="text/plain" id="code">%s</script></body></html>"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> nova.RunFolder:
    data = nova.synthetic(nodes=90, classes=3, words=60, seed=2)
    y = [c if c < 2 else -1 for c in data.y.tolist()]
    path = tmp_path_factory.mktemp("widget") / "run"
    found = nova.NodeDiscoverer(num_new=1).fit(data.graph, y)
    RunFolder.write(path, found.run_, report=False)
    return nova.open_run(path)


def test_a_widget_is_made_of_a_run_its_path_or_what_found_it(run: nova.RunFolder) -> None:
    pages = {nova.review_widget(given).page for given in (run, run.path, str(run.path))}
    assert len(pages) == 1
    page = pages.pop()
    assert run.classes[-1].name in page
    assert "connect-src 'none'" in page  # it can send nothing to a server
    with pytest.raises(SettingError, match=r"not int"):
        nova.review_widget(3)


def test_the_file_on_disk_tells_nobody_what_is_decided(run: nova.RunFolder) -> None:
    page = run.report().read_text(encoding="utf-8")
    assert "postMessage" not in page
    assert "postMessage" in nova.review_widget(run).page


def test_decisions_come_back_and_are_applied(run: nova.RunFolder, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    mine = nova.open_run(tmp_path / "run")
    widget = nova.review_widget(mine)
    assert widget.decisions == []
    last = mine.model.classes[-1].id
    document = json.loads(widget.page.split('id="story">')[1].split("</script>")[0])["review"]
    decided = [{"do": "rename", "class": last, "name": "beans"}]
    widget.review = {**document, "decisions": decided}
    assert widget.decisions == decided
    assert mine.apply(widget.review).class_names[-1] == "beans"
    with pytest.raises(SettingError, match="since"):  # the widget shows the run as it was before
        mine.apply(widget.review)


def test_without_anywidget_it_says_what_to_install(
    run: nova.RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "anywidget":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    widgets._widget_class.cache_clear()
    with pytest.raises(SettingError, match=r"nodenova\[notebook\]"):
        nova.review_widget(run)
    widgets._widget_class.cache_clear()


@pytest.fixture
def page() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        made = browser.new_page()
        made.errors = []
        made.on("pageerror", lambda error: made.errors.append(str(error)))
        yield made
        browser.close()


@pytest.mark.browser
def test_in_a_browser_a_name_that_is_given_comes_back_as_a_decision(
    run: nova.RunFolder, page: Any, tmp_path: Path
) -> None:
    widget = nova.review_widget(run, height=500)
    values = json.dumps({"page": widget.page, "height": 500, "review": {}}).replace("<", "\\u003c")
    (tmp_path / "cell.html").write_text(HARNESS % (values, widget._esm), encoding="utf-8")
    page.goto((tmp_path / "cell.html").as_uri())
    frame = page.frame_locator("iframe")
    name = frame.locator("[data-card] .name").first
    name.wait_for()
    assert page.locator("iframe").bounding_box()["height"] == 500
    assert not frame.locator("#save").is_visible()
    name.fill("beans")
    name.press("Enter")
    page.wait_for_function("window.saved.length && window.saved.at(-1).includes('beans')")
    review = json.loads(page.evaluate("window.saved.at(-1)"))
    assert [decision["do"] for decision in review["decisions"]] == ["rename"]
    assert review["format"] == "nodenova review"
    frame.locator("#undo").click()
    page.wait_for_function("JSON.parse(window.saved.at(-1)).decisions.length === 0")
    # A message of somebody else is not heard.
    count = page.evaluate("window.saved.length")
    page.evaluate("window.postMessage({nodenova: {decisions: [1]}}, '*')")
    page.wait_for_timeout(100)
    assert page.evaluate("window.saved.length") == count
    assert page.errors == []
