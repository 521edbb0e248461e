"""A namer, as a function and as a command: cards in, names out, and what becomes of them."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import NamerError, SettingError
from nodenova.runs.folder import RunFolder
from nodenova.runs.naming import ClassCard, CommandNamer, class_cards, suggest_names
from nodenova.runs.run import DiscoveryRun
from tests.runs.tables import COLUMNS, discover_spring, files, nodenova, write_tables

QUICK = nova.Prism(restarts=2, n_resamples=0)


def first_words(cards: Sequence[ClassCard]) -> dict[int, str]:
    """A small deterministic namer."""
    return {card.id: f"about {card.keywords[0]}" for card in cards}


@pytest.fixture(scope="module")
def found() -> nova.NodeDiscoverer:
    data = nova.synthetic(nodes=160, classes=5, words=60, seed=1)
    y = np.where((data.y < 2) & (np.arange(160) % 2 == 0), data.y, -1)
    return nova.NodeDiscoverer(3, method=QUICK, namer=first_words).fit(data.graph, y)


@pytest.fixture
def run(found: nova.NodeDiscoverer) -> DiscoveryRun:
    """The run without the names."""
    return replace(found.run_, suggested_names={})


def command(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


COMMAND = """
import json, sys
document = json.load(sys.stdin)
assert document["format"] == "nodenova class cards" and document["version"] == 1
print(json.dumps({c["id"]: "about " + c["keywords"][0] for c in document["classes"]}))
"""


def test_names_take_the_place_of_automatic_ones(
    found: nova.NodeDiscoverer, run: DiscoveryRun
) -> None:
    cards = class_cards(run)
    assert [card.id for card in cards] == [2, 3, 4]
    wanted = first_words(cards)
    assert found.run_.suggested_names == wanted
    assert list(found.classes_[2:]) == list(wanted.values())
    named = {info.id: info for info in found.class_info()}
    assert all(named[c].name == named[c].auto_name == name for c, name in wanted.items())
    assert "3 names are suggested by the namer" in found.notes_
    assert {*found.run_.predictions.columns()["name"]} >= {*wanted.values()}
    # The model has no name: a person has accepted none.
    assert [c.name for c in found.model_.classes[2:]] == ["new-2", "new-3", "new-4"]


def test_a_card_has_keywords_members_and_the_other_classes(run: DiscoveryRun) -> None:
    card = class_cards(run)[0]
    info = run.classes[2]
    assert card.keywords == tuple(word.name for word in info.keywords[:10])
    assert len(card.exemplars) == 5
    assert {*card.siblings} == {c.name for c in run.classes} - {info.name}
    nearest = next(c.name for c in run.classes if c.id == info.nearest)
    assert next(iter(card.siblings)) == nearest
    for text in (*card.keywords, *card.exemplars, *card.siblings):
        assert text in card.prompt


def test_members_are_shown_by_their_texts(run: DiscoveryRun) -> None:
    titles = [f"Title {i}" for i in range(run.graph.num_nodes)]
    card = class_cards(run.with_page(None, {"title": titles, "year": ["1999"] * len(titles)}))[0]
    assert all(one.startswith("Title ") and one.endswith(" · 1999") for one in card.exemplars)


def test_a_name_of_a_person_goes_first(found: nova.NodeDiscoverer, tmp_path: Path) -> None:
    found.report(tmp_path / "run")
    folder = nova.open_run(tmp_path / "run")
    folder.apply([{"do": "rename", "class": 3, "name": "mine"}])
    assert folder.class_names[3] == "mine"
    assert folder.class_names[2] == found.run_.suggested_names[2]
    assert folder.name_classes(lambda cards: {c.id: "other" for c in cards}) == [
        "0 names are suggested by the namer"
    ]
    assert folder.class_names[3] == "mine"
    folder.undo()
    assert nova.open_run(tmp_path / "run").class_names[3] == found.run_.suggested_names[3]


def test_a_class_that_was_merged_is_another_one(found: nova.NodeDiscoverer, tmp_path: Path) -> None:
    found.report(tmp_path / "run")
    folder = nova.open_run(tmp_path / "run")
    folder.apply([{"do": "merge", "classes": [2, 3]}])
    names = found.run_.suggested_names
    assert names[2] not in folder.class_names
    assert names[4] in folder.class_names
    folder.undo()
    assert folder.class_names[2:] == list(names.values())


def test_an_opened_run_is_named_and_keeps_the_names(
    run: DiscoveryRun, tmp_path: Path, found: nova.NodeDiscoverer
) -> None:
    folder = RunFolder.write(tmp_path / "run", run)
    assert "suggested_names" not in folder.document
    notes = folder.name_classes(first_words)
    assert notes == ["3 names are suggested by the namer"]
    again = nova.open_run(tmp_path / "run")
    assert again.run.suggested_names == found.run_.suggested_names
    for name in found.run_.suggested_names.values():
        assert name in (tmp_path / "run/predictions.csv").read_text()
        assert name in (tmp_path / "run/classes.csv").read_text()
        assert name in (tmp_path / "run/report.html").read_text()
    assert class_cards(again.run) == []  # a second namer is not asked about them


def test_a_name_is_not_that_of_another_class(run: DiscoveryRun) -> None:
    known, automatic = run.classes[0].name, run.classes[4].name
    names, notes = suggest_names(run, lambda cards: [known.upper(), "Fish", "fish"])
    assert names == {3: "Fish"}
    assert notes == [
        f"the namer's name '{known.upper()}' is the name of class 0: class 2 keeps its automatic "
        "name",
        "the namer's name 'fish' is the name of class 3: class 4 keeps its automatic name",
    ]
    names, notes = suggest_names(run, lambda cards: {"2": automatic, 4: None, 3: "  "})
    assert names == {}
    assert len(notes) == 1
    names, notes = suggest_names(run, lambda cards: {2: "x" * 101, 3: " two\n words\x1b "})
    assert names == {3: "two words"}
    assert "has 101 characters, at most 100 are accepted" in notes[0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("plants", "the namer must give names by class id, not 'plants'"),
        (["plants"], "the namer gave 1 name for 3 classes"),
        ({0: "plants"}, "the namer named class 0, which it was not asked about"),
        ({"x": "plants"}, "the namer named class 'x', which it was not asked about"),
        ({2: 5}, "the namer's name for class 2 is no text: 5"),
        ({2: "\ud800"}, "cannot be written as UTF-8"),
    ],
)
def test_an_answer_without_names_is_an_error(
    run: DiscoveryRun, answer: object, message: str
) -> None:
    with pytest.raises(NamerError, match=message):
        suggest_names(run, lambda cards: answer)  # type: ignore[arg-type,return-value]


def test_a_namer_that_fails_costs_no_discovery() -> None:
    def fails(cards: Sequence[ClassCard]) -> dict[int, str]:
        raise ConnectionError("no route to the model")

    data = nova.synthetic(nodes=90, classes=3, words=40)
    y = np.where(data.y < 2, data.y, -1)
    found = nova.NodeDiscoverer(1, method=QUICK, namer=fails).fit(data.graph, y)
    assert found.notes_[-1] == (
        "the namer failed (ConnectionError: no route to the model); "
        "the classes keep their automatic names"
    )
    assert found.run_.suggested_names == {}
    with pytest.raises(SettingError, match="namer is a function"):
        nova.NodeDiscoverer(1, namer="x").fit(data.graph, y)  # type: ignore[arg-type]


def test_a_command_is_a_namer(run: DiscoveryRun) -> None:
    assert suggest_names(run, CommandNamer(command(COMMAND)))[0] == first_words(class_cards(run))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no key')", "--namer ended with exit code 1: 'no key'"),
        ("print('plants')", "the answer of --namer: damaged, not readable as JSON"),
        ("print('[1]')", "the answer of --namer"),
        ("print('{\"2\": [1]}')", "the answer of --namer"),
        ("print('\"' + 'x' * 2**20 + '\"')", "--namer answered more than 1 MiB"),
    ],
)
def test_a_command_that_fails_has_its_own_sentence(
    run: DiscoveryRun, code: str, message: str
) -> None:
    with pytest.raises(NamerError, match=message):
        suggest_names(run, CommandNamer(command(code)))


def test_a_command_has_a_time_limit_and_leaves_nothing_behind(
    run: DiscoveryRun, tmp_path: Path
) -> None:
    mark = tmp_path / "late"
    child = f"import time, pathlib; time.sleep(0.6); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(NamerError, match=r"--namer took longer than 0\.2 seconds and was stopped"):
        suggest_names(run, CommandNamer(command(code), seconds=0.2))
    time.sleep(0.7)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no-such-program -x", "--namer: there is no program 'no-such-program'"),
        ("", "--namer is a command, and it is empty"),
        ("python 'half", "--namer .*: No closing quotation"),
    ],
)
def test_what_is_no_command_is_refused_before_anything_is_read(
    tmp_path: Path, text: str, message: str
) -> None:
    nowhere = ["--nodes", tmp_path / "nowhere.csv", "--edges", tmp_path / "nowhere.csv"]
    with pytest.raises(SettingError, match=message):
        nodenova("discover", *nowhere, "--out", tmp_path / "run", "--namer", text)


def test_no_shell_reads_the_command(run: DiscoveryRun, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(NamerError, match="damaged"):
        suggest_names(run, CommandNamer(f"echo plants; touch {mark}"))
    assert not mark.exists()


def test_the_command_line_names_classes(tmp_path: Path) -> None:
    data = write_tables(tmp_path / "spring", last=90)
    found = ["--num-new", 1, "--set", "n_resamples=0", "--out", tmp_path / "run"]
    code = COMMAND + "open(sys.argv[1], 'w').write(json.dumps(document))"
    asked = tmp_path / "asked.json"
    named = f"{command(code)} {asked}"
    printed = nodenova("discover", *files(data), *COLUMNS, *found, "--namer", named)
    assert "1 name is suggested by the namer" in printed
    run = nova.open_run(tmp_path / "run")
    (name,) = run.suggested_names.values()
    assert name.startswith("about ")
    assert name in printed
    assert run.class_names[2] == name
    (card,) = json.loads(asked.read_text())["classes"]
    texts = {row.split(",")[2] for row in (data / "nodes.csv").read_text().splitlines()}
    assert {*card["exemplars"]} <= texts  # the text column, as on the page
    assert card["prompt"].startswith("Name a class of nodes")


def test_a_run_is_named_later(tmp_path: Path) -> None:
    run = discover_spring(tmp_path)
    failed = nodenova("classes", run, "--namer", command("print('{\"2\": null}')"))
    assert "0 names are suggested" in failed
    printed = nodenova("classes", run, "--namer", command(COMMAND))
    assert "1 name is suggested by the namer" in printed
    (name,) = nova.open_run(run).suggested_names.values()
    assert name in printed
    with pytest.raises(SettingError, match="--namer names the classes of the run"):
        nodenova("classes", run, "--num-new", 2, "--namer", "cat")


def test_named_classes_stay_when_a_run_continues(tmp_path: Path) -> None:
    data = nova.synthetic(nodes=160, classes=4, words=80, seed=2)
    first = np.flatnonzero(data.y < 3)
    y = np.where((data.y < 2) & (np.arange(160) % 2 == 0), data.y, -1)
    found = nova.NodeDiscoverer(1, method=QUICK, namer=first_words)
    found.fit(data.graph.subgraph(first), y[first]).report(tmp_path / "run")
    later = nova.open_run(tmp_path / "run").continue_with(
        data.graph, num_new=1, method=QUICK, namer=lambda cards: ["autumn" for card in cards]
    )
    assert list(later.run.names[2:]) == [*found.run_.suggested_names.values(), "autumn"]
    assert "1 name is suggested by the namer" in later.notes


@pytest.fixture
def model_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a language model that answers with the first keyword, and its questions."""
    questions: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            questions.append(body | {"key": self.headers["Authorization"]})
            prompt = body["messages"][0]["content"]
            first = prompt.partition("typical features: ")[2].partition(",")[0]
            answer = {"choices": [{"message": {"content": f' **"About {first}."**\nBecause.'}}]}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *parts: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions", questions
        server.shutdown()
        thread.join()


def test_the_recipe_of_the_docs_asks_a_language_model(
    run: DiscoveryRun,
    model_server: tuple[str, list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, questions = model_server
    page = (Path(__file__).parents[2] / "docs/classes.md").read_text(encoding="utf-8")
    recipe = page.partition("```python\n# namer.py")[2].partition("```")[0]
    (tmp_path / "namer.py").write_text(f"#{recipe}", encoding="utf-8")
    for name, value in {"URL": url, "MODEL": "small", "KEY": "secret"}.items():
        monkeypatch.setenv(f"NAMER_{name}", value)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    namer = CommandNamer(shlex.join([sys.executable, str(tmp_path / "namer.py")]))
    names, notes = suggest_names(run, namer)
    cards = class_cards(run)
    assert names == {card.id: f"About {card.keywords[0]}" for card in cards}
    assert notes == []
    assert [q["messages"][0]["content"] for q in questions] == [card.prompt for card in cards]
    assert {(q["model"], q["key"]) for q in questions} == {("small", "Bearer secret")}
