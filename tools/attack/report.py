"""docs/reliability.md from the results of the attack.

    python -m tools.attack report

Every number on the page comes from results/attack/*.json; tools/attack/items.toml has the defects
of the first attack with the tests of each, which must exist.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ITEMS = Path(__file__).with_name("items.toml")
PAGE = ROOT / "docs" / "reliability.md"
MISSING = "This part has not been run yet."

INTRODUCTION = """\
# Reliability

nodenova is attacked by its own tools. `make attack` mutates every input, kills every command, lets
two processes work on one folder, checks relations between inputs that are the same graph, runs for
a long time in one process, and plants mutants in the source. This page is written from the results
by `python -m tools.attack report`; [contributing](contributing.md) describes the tools.
"""

FUZZ = """\
Each case is a file, a command line, a call, an object or a request with a few mutations. It must be
accepted, or refused by one sentence of at most 400 characters. A TypeError for a Python value of
another type than the signature has is counted apart. The other columns must be 0: longer messages,
warnings, other errors, more than {megabytes} MB of memory, crashes of the interpreter, and cases
of more than {seconds:.0f} seconds.
"""

KILLS = """\
A command is killed (SIGKILL) at a change of the file system or at a random time. Afterwards the
folder must hold the old result or the new one, nothing else may be loaded, and the same command
must succeed with the same bits. On a full disk the command must end with a sentence.
"""

RACES = """\
One process is stopped at a change of the file system while a second one works on the same folder.
Nothing may be lost, and one of the two must be refused by a sentence.
"""

RELATIONS = """\
Share of the nodes that change class, in percent; discovered classes are matched as well as
possible. The relations above the line must change nothing. Those below it are another input, to
compare with.
"""

MUTANTS = """\
A mutant is one small change of the source. It is killed if a test fails.
"""


def write(results: Path, page: Path = PAGE) -> Path:
    """Write the page from a folder of results and return its path."""
    page.write_text(make_page(results, load_items()), encoding="utf-8")
    return page


def make_page(results: Path, items: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the page.

    Raises:
        SystemExit: If an item names a test that does not exist.
    """
    parts = {path.stem: json.loads(path.read_text()) for path in results.glob("*.json")}
    sections = [
        INTRODUCTION,
        "## Mutated inputs\n", *_fuzz(parts.get("fuzz")),
        "## Killed commands\n", *_kills(parts.get("killer")),
        "## Two processes on one folder\n", *_races(parts.get("races")),
        "## Relations\n", *_relations(parts.get("metamorphic")),
        "## A long run\n", *_long_run(parts.get("long_run")),
        "## Mutants\n", *_mutants(parts.get("mutants")),
        *_measured(parts.get("measured")),
        "## Defects of the first attack\n", *_items(items),
    ]  # fmt: skip
    return "\n".join(sections).rstrip() + "\n"


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; numbers have thousands separators."""

    def line(cells: Sequence[object]) -> str:
        texts = [f"{c:,}" if isinstance(c, int) else str(c).replace("|", "\\|") for c in cells]
        return f"| {' | '.join(texts)} |"

    rule = "|" + "---|" * len(header)
    return "\n".join([line(header), rule, *map(line, rows)]) + "\n"


def _origin(result: Mapping[str, Any]) -> str:
    commits = ", ".join(part[:10] for part in str(result["commit"]).split(", "))
    return f"Seed {result['seed']}, commit {commits}.\n"


def _fuzz(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return [MISSING + "\n"]
    verdicts = list(result["totals"])
    rows = [
        [form, sum(counts.values()), *(counts.get(v, 0) for v in verdicts)]
        for form, counts in result["formats"].items()
    ]
    rows.append(["**all**", result["cases"], *result["totals"].values()])
    text = FUZZ.format(**result["bounds"])
    found = [text, _origin(result), table(["input", "tried", *verdicts], rows)]
    return found + _failures(result, ("what", "error", "place", "cases"))


def _failures(result: Mapping[str, Any], columns: Sequence[str], most: int = 20) -> list[str]:
    """A table of failures, if there are any."""
    failures = result.get("failures", [])
    if not failures:
        return []
    rows = [[one.get(column, "") for column in columns] for one in failures[:most]]
    title = f"Failures: {len(failures)}" + (f", the first {most}" if len(failures) > most else "")
    return [f"{title}.\n", table(columns, rows)]


def _kills(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return [MISSING + "\n"]
    commands: Mapping[str, Mapping[str, Any]] = result["commands"]
    names = ("kills", "at commit points", "at other changes", "at random times", "full disks",
             "broken")  # fmt: skip
    rows = [[command, *(figures.get(n, 0) for n in names)] for command, figures in commands.items()]
    rows.append(["**all**", *(sum(int(f.get(n, 0)) for f in commands.values()) for n in names)])
    found = [KILLS, _origin(result), table(["command", *names], rows)]
    return found + _failures(result, ("command", "how", "at", "found"))


def _races(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return [MISSING + "\n"]
    rows = []
    for race, figures in result["races"].items():
        kinds = [f"{n} {kind}" for kind, n in figures.items() if kind not in ("tried", "wrong")]
        rows.append([race, figures["tried"], ", ".join(kinds), figures["wrong"]])
    found = [RACES, _origin(result), table(["race", "tried", "outcomes", "wrong"], rows)]
    places = result.get("places", {})
    if places:
        found += ["Odd places:\n", table(["place", "result"], places.items())]
    return found


def _relations(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return [MISSING + "\n"]
    graphs: Mapping[str, Mapping[str, float]] = result["graphs"]
    names = list(next(iter(graphs.values())))
    exact = set(result["exact"])

    def row(name: str) -> list[object]:
        return [name, *(f"{100 * figures[name]:.1f}" for figures in graphs.values())]

    rows = [row(name) for name in names if name in exact]
    rows += [["—"] * (len(graphs) + 1), *(row(name) for name in names if name not in exact)]
    return [RELATIONS, _origin(result), table(["relation", *graphs], rows)]


def _long_run(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return [MISSING + "\n"]
    text = (
        f"{result['rounds']} rounds in one process: fit, discover, write, open, review, undo, "
        "save, load, train.\n"
    )
    measured: Mapping[str, Mapping[str, float]] = result["measured"]
    rows = [[when, *figures.values()] for when, figures in measured.items()]
    header = ["", *next(iter(measured.values()))]
    return [text, _origin(result), table(header, rows), *_failures(result, ("what", "line"))]


def _mutants(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return [MISSING + "\n"]
    names = list(result["all"])
    rows = [[group, *figures.values()] for group, figures in result["groups"].items()]
    rows.append(["**all**", *result["all"].values()])
    found = [MUTANTS, _origin(result), table(["part", *names], rows)]
    survivors = [
        [f"{one['module']}:{one['line']}", one["function"], f"`{one['before']}`",
         f"`{one['after']}`", one["status"]]
        for one in result["survivors"]
    ]  # fmt: skip
    if survivors:
        found += [
            "Survivors:\n",
            table(["place", "function", "source", "mutant", "why"], survivors),
        ]
    return found


def _measured(result: Mapping[str, Any] | None) -> list[str]:
    """Further tables: costs, and scores before and after."""
    found = []
    for one in (result or {}).get("tables", ()):
        found += [f"## {one['title']}\n", f"{one['text']}\n", table(one["header"], one["rows"])]
    return found


def _items(items: Sequence[Mapping[str, Any]]) -> list[str]:
    check_tests(items)
    rows = []
    for item in items:
        tests = [f"`{test.rsplit('::', 1)[-1]}`" for test in item["tests"]]
        kept = "<br>".join(tests) or item.get("reason", "open")
        rows.append([item["number"], item["title"], kept])
    mended = sum(bool(item["tests"]) for item in items)
    text = f"{mended} of {len(items)} have a test.\n"
    return [text, table(["", "defect", "tests"], rows)]


def load_items(path: Path = ITEMS) -> list[dict[str, Any]]:
    """Read the defects of the first attack."""
    items: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["item"]
    return items


def check_tests(items: Iterable[Mapping[str, Any]], root: Path = ROOT) -> None:
    """Raise SystemExit if an item names a test that does not exist."""
    for item in items:
        for test in item["tests"]:
            file, _, name = test.partition("::")
            path = root / "tests" / file
            if not path.is_file() or name not in _functions(path):
                raise SystemExit(f"item {item['number']}: there is no test {test}")


@cache
def _functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
