"""The documentation is true: pages run, links lead somewhere, commands and options exist.

A page that is walked through: a block with a title is written as a file of that name; lines of
console blocks that begin with "$ " are run in order, must end with exit code 0 (or as "# exit code
3" says), and what stands below must be in the output.
"""

from __future__ import annotations

import io
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from nodenova import METHODS
from nodenova.cli import app, main
from nodenova.encoders import registry
from nodenova.supervised import LABELLED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(
    r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def of_page(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True)
class Step:
    command: list[str]
    code: int
    shown: list[str]


def steps_of(console: str) -> list[Step]:
    """
    >>> steps_of("$ nodenova classes runs/x  # exit code 2\\nerror\\n")
    [Step(command=['nodenova', 'classes', 'runs/x'], code=2, shown=['error'])]
    """
    steps: list[Step] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            command, _, comment = line[2:].partition("  # ")
            code = re.match(r"exit code (\d+)", comment)
            steps.append(Step(shlex.split(command), int(code[1]) if code else 0, []))
        elif line.strip():
            steps[-1].shown.append(line.strip())
    return steps


def run(command: list[str]) -> tuple[int, str]:
    """Exit code and output of a command.

    Ours run in this process: PyTorch takes longer to load than they to run.
    """
    if command[0] != "nodenova" and command[1][-3:] != ".py":
        command = [sys.executable if command[0] == "python" else command[0], *command[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    said = io.StringIO()
    arguments = command if command[0] == "nodenova" else command[1:]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        patch.setattr(registry, "_OWN", {})  # a process of its own knows no class of the user
        patch.setattr(sys, "argv", arguments)
        try:
            main() if command[0] == "nodenova" else runpy.run_path(command[1], run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0), said.getvalue()
    return 0, said.getvalue()


def walk(text: str) -> int:
    """Do what a page says, here; how many commands there were."""
    commands = 0
    for block in BLOCK.finditer(text):
        if block["title"]:
            Path(block["title"]).write_text(block["text"])
        elif block["kind"] == "console":
            for step in steps_of(block["text"]):
                code, said = run(step.command)
                assert code == step.code, f"{step.command} ended with {code}:\n{said}"
                for line in step.shown:
                    assert line in said, f"{step.command} said:\n{said}"
                commands += 1
    return commands


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "page", ["own-graph.md", "growth.md", "estimator.md", "own-method.md", "own-encoder.md"]
)
def test_walk_throughs_run(page: str) -> None:
    assert walk((DOCS / page).read_text()) >= 3


SLOW = ("Papers with links", "Accounts")  # the only ones above a second
RECIPES = {
    section.partition("\n")[0]: section
    for section in (DOCS / "cookbook.md").read_text().split("\n## ")[1:]
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "title",
    [pytest.param(t, marks=pytest.mark.slow) if t in SLOW else t for t in RECIPES],
)
def test_recipes_run_and_print_what_the_page_shows(title: str) -> None:
    assert walk(RECIPES[title]) == 1


def test_there_are_recipes_for_six_problems() -> None:
    words = ("Papers", "Packages", "Products", "Accounts", "knowledge graph", "Documents")
    assert len(RECIPES) == 6
    assert all(any(word in title for title in RECIPES) for word in words)


def test_six_wishes_are_answered_by_commands() -> None:
    """Each bold question of the first part is followed by a block with a command."""
    page = (DOCS / "questions.md").read_text()
    first = page.split("\n## ")[1]
    answers = re.split(r"^\*\*", first, flags=re.M)[1:]
    assert len(answers) == 6
    assert all(re.search(r"^```bash\nnodenova ", answer, re.M) for answer in answers)


@pytest.mark.usefixtures("here")
def test_a_walk_through_can_fail() -> None:
    for call in ("python -c 'print(1)'", "python one.py"):
        console = f'```python title="one.py"\nprint(1)\n```\n\n```console\n$ {call}\n%s\n```\n'
        assert walk(console % "1") == 1
        with pytest.raises(AssertionError, match="said:"):
            walk(console % "2")
    missing = "```console\n$ nodenova classes nowhere%s\n```\n"
    with pytest.raises(AssertionError, match="ended with 2"):
        walk(missing % "")
    assert (
        walk(
            missing
            % "  # exit code 2\nnowhere is not a run of `nodenova discover`: it does not exist"
        )
        == 1
    )


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("path", [ROOT / "README.md", DOCS / "index.md"], ids=of_page)
def test_the_first_python_runs_and_prints_what_the_page_shows(path: Path) -> None:
    """All blocks run in order; a `text` block right after one is what it prints."""
    names: dict[str, object] = {}
    blocks = list(BLOCK.finditer(path.read_text()))
    assert any(block["kind"] == "python" for block in blocks)
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block["kind"] == "python":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(block["text"], names)
            if after is not None and after["kind"] == "text":
                assert printed.getvalue() == after["text"]


@pytest.mark.parametrize("path", PAGES, ids=of_page)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", path.read_text())):
        if not target.startswith(("http:", "https:", "#")):
            file, _, anchor = target.partition("#")
            there = path.parent / file
            assert there.exists(), f"{of_page(path)} links to {target}"
            assert not anchor or anchor in anchors_of(there), f"{of_page(path)} links to {target}"


def anchors_of(path: Path) -> set[str]:
    """What a heading is called in a link, as Python-Markdown does it."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {
        re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        for heading in headings
    }


PROGRAM = typer.main.get_command(app)
COMMANDS = {
    name: {
        option
        # Of a group: the options of its commands, too.
        for one in (command, *(getattr(command, "commands", {}).values() if name else ()))
        for parameter in one.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    | {"--help"}
    for name, command in {"": PROGRAM, **PROGRAM.commands}.items()  # type: ignore[attr-defined]
}
# A changelog speaks of what was.
TODAY = [path for path in PAGES if path != DOCS / "changelog.md"]


def strange_options(text: str) -> list[str]:
    """Commands and options a page speaks of that do not exist.

    >>> strange_options("`nodenova predict x --max-unsure 0.1`, `nodenova predit`, `--max-unsur`")
    ['predit', '--max-unsur']
    """
    strange = []
    spoken = [
        block["text"] for block in BLOCK.finditer(text) if block["kind"] in ("", "bash", "console")
    ]
    said = re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    for line in [*"\n".join(spoken).splitlines(), *said]:
        line = line.removeprefix("$ ").partition(" # ")[0]
        options = re.findall(r"(?<!\S)--[a-z][\w-]*", line)
        call = re.match(r"nodenova ([a-z][\w-]*)", line)
        if call:
            known = COMMANDS.get(call[1])
            strange += (
                [call[1]]
                if known is None
                else [option for option in options if option not in known]
            )
        elif line.startswith("--") and line != "--8":
            strange += [
                option
                for option in options
                if not any(option in known for known in COMMANDS.values())
            ]
    return strange


@pytest.mark.parametrize("path", TODAY, ids=of_page)
def test_commands_and_options_exist(path: Path) -> None:
    assert strange_options(path.read_text()) == []


def test_strange_options_are_found() -> None:
    assert strange_options(
        "`nodenova predict x --max-unsure 0.1`, `nodenova predit`, `--max-unsur`"
    ) == [
        "predit",
        "--max-unsur",
    ]
    assert strange_options(
        "```bash\nnodenova inspect --nods a.csv  # --this is a comment\n```\n"
    ) == ["--nods"]


def strange_in_help(name: str) -> list[str]:
    """Commands and options that the help of a command speaks of and that do not exist.

    An option belongs to this command or to one that is named beside it.
    """
    command = PROGRAM.commands[name] if name else PROGRAM  # type: ignore[attr-defined]
    strange = []
    for text in (getattr(one, "help", None) or "" for one in (command, *command.params)):
        text = text.replace("grade.py --json", "grade.py")  # the exported script, not ours
        named = re.findall(r"nodenova ([a-z][\w-]+)", text)
        known = set().union(*(COMMANDS.get(one, set()) for one in (name, *named)))
        strange += [one for one in named if one not in COMMANDS]
        strange += [one for one in re.findall(r"--[a-z][\w-]*", text) if one not in known]
    return strange


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_only_what_is_there(name: str) -> None:
    assert strange_in_help(name) == []


def test_strange_words_in_help_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "See `nodenova clases`, `nodenova classes --use`, --nodes and --nods."
    monkeypatch.setattr(PROGRAM.commands["inspect"], "help", text)  # type: ignore[attr-defined]
    assert strange_in_help("inspect") == ["clases", "--nods"]


@pytest.mark.parametrize("name", [*METHODS, *LABELLED])
def test_every_method_has_a_page_that_shows_its_settings(name: str) -> None:
    cls = {**METHODS, **LABELLED}[name]
    shown = (DOCS / "methods" / f"{name}.md").read_text()
    assert (
        f"::: nodenova.{cls.__name__}\n" in shown
        or f"::: {cls.__module__}.{cls.__name__}\n" in shown
    )
    assert "TODO" not in shown  # as `nodenova new-method` begins a page


DECISIONS = sorted(DOCS.glob("decisions/*.md"))
MAX_LINES = 25  # half a page


def test_a_decision_is_half_a_page_with_its_context_its_reasons_and_what_it_costs() -> None:
    texts = {path.stem: path.read_text() for path in DECISIONS}
    parts = ("**Context.**", "**Decision.**", "**Why.**", "**Cost.**")
    assert {stem: part for stem, text in texts.items() for part in parts if part not in text} == {}
    lines = {stem: [line for line in text.splitlines() if line] for stem, text in texts.items()}
    assert {stem: len(each) for stem, each in lines.items() if len(each) > MAX_LINES} == {}
    assert {stem for stem, each in lines.items() if max(map(len, each)) > 100} == set()
    numbers = [int(text.split(".")[0].removeprefix("# ")) for text in texts.values()]
    assert numbers == list(range(1, len(texts) + 1))


def test_a_decision_and_its_log_link_to_each_other() -> None:
    logs = {path.name: path.read_text() for path in DOCS.glob("experiments/*.md")}
    behind = re.compile(r"log behind \[decision \d+\]\(\.\./decisions/(\S+)\)")
    links = {path.name: path.read_text() for path in DECISIONS}
    assert logs
    for name, log in logs.items():
        there = [
            decision for decision, text in links.items() if f"](../experiments/{name})" in text
        ]
        assert there == behind.findall(log), name


def test_every_public_name_is_in_the_reference() -> None:
    import nodenova as nova

    shown = "\n".join(
        path.read_text() for path in [*DOCS.glob("reference/*.md"), *DOCS.glob("methods/*.md")]
    )
    missing = [name for name in nova.__all__ if f"::: nodenova.{name}\n" not in shown]
    assert missing == ["NodenovaError"]  # with the other errors: their module is shown


def test_every_command_stays_or_may_change() -> None:
    page = (DOCS / "stability.md").read_text()
    public, _, rest = page.partition("## May change")
    kept = re.search(r"^\| commands for your own graph \|.*$", public, re.M)
    changing = re.search(r"^\| research \|.*$", rest, re.M)
    assert kept
    assert changing
    named = [re.findall(r"`([a-z][a-z-]+)`", line[0]) for line in (kept, changing)]
    assert sorted([*named[0], *named[1]]) == sorted(name for name in COMMANDS if name)
    for page_of_contract in ("own-method.md", "own-encoder.md"):
        assert f"]({page_of_contract})" in public
