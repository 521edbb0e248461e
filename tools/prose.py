"""Count turns of phrase that make the source, the help and the documentation hard to read.

    python tools/prose.py                    # this checkout; exit code 1 if a count exceeds ALLOWED
    python tools/prose.py OLD_FOLDER .       # two checkouts side by side
    python tools/prose.py --list speech      # every place where one pattern occurs

The project spells in American English, except for "labelled" and "unlabelled", which are part of
public names (`LabelledGraph`, `LABELLED`).
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
# Highest count of each pattern that the check accepts.
ALLOWED = {
    "argument without a noun": 9,
    "raises without if": 0,
    "speech": 35,  # one of them is a key of model.json
    "people": 1,
    "one a line": 0,
    "so many": 0,
    "British spelling": 9,
    "space before %": 0,
    "1 edges": 2,
    "participle as a name": 64,
    "Args on a private function": 0,
}
SKIPPED = ("docs/experiments/", "docs/decisions/", "docs/changelog.md")
_ONE = r"line|file|row|run|node|class|page|seed|method|score|column|option|sentence|curve|cell|name"
PATTERNS = {
    "speech": r"\b(says?|said|saying|tells?|telling|told|hears?|heard|speaks?|spoken)\b",
    "people": r"\b(nobody|whoever|somebody|everybody|who (?:wants|knows|needs|has))\b",
    "one a line": rf"\b(?:one|two|each) an? (?:{_ONE})\b|\ban? (?:{_ONE}) each\b",
    "so many": r"\bso (?:many|much)\b",
    "British spelling": r"\b\w*(?:colour|neighbour|behaviour|favour|normalis|optimis[ei]|initialis"
    r"|generalis|recognis|organis|summaris|visualis|randomis|minimis|analys(?:e|ing)\b|centre\b"
    r"|modelling|grey\b)\w*",
    "space before %": r"(?:\d|\{\}) %(?!\w)",
    "1 edges": r"(?<![\d,.])1 (?:edges|nodes|classes|labels|columns|rows|files|seeds|runs)\b",
}
NO_NOUN = re.compile(r"(?:Of|Which|What|Where|Who|Whose|That|Those|As|How|It|Is|So|Whether\.)\b")
# Words that end like a participle and are none, or are adjectives that the field uses as nouns.
NAMES = {"seed", "need", "embed", "speed", "feed", "mixed", "labelled", "unlabelled", "weighted"}
IRREGULAR = {"said", "told", "given", "shown", "kept", "drawn", "made", "taken", "chosen"}


class Text(NamedTuple):
    """A piece of prose and its place."""

    place: str
    text: str


class Hit(NamedTuple):
    """One occurrence of a pattern."""

    pattern: str
    place: str
    text: str


def texts(folder: Path) -> Iterator[Text]:
    """Yield docstrings and strings of the source, and pages of the documentation."""
    for path in sorted((folder / "src/nodenova").rglob("*.py")):
        yield from strings(
            ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(folder))
        )
    for path in [folder / "README.md", *sorted((folder / "docs").rglob("*.md"))]:
        name = path.relative_to(folder).as_posix()
        if not name.startswith(SKIPPED):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield Text(f"{name}:{number}", line)


def strings(tree: ast.AST, name: str) -> Iterator[Text]:
    """Yield the strings of a module; fields of an f-string become {}."""
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            yield Text(f"{name}:{node.lineno}", "".join(map(str, pieces)))
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield Text(f"{name}:{node.lineno}", node.value if isinstance(node.value, str) else "")


def section(docstring: str, title: str) -> Iterator[str]:
    """Yield the texts of the entries of a section such as Args."""
    found = re.search(rf"^{title}:\n((?:(?:    .*)?\n)*)", docstring + "\n", re.M)
    yield from re.findall(r"^    (?! )\S+: (.*)", found[1] if found else "", re.M)


def definitions(folder: Path) -> Iterator[Hit]:
    """Yield hits in names and in the sections of docstrings."""
    for path in sorted((folder / "src/nodenova").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = {id(node) for node in tree.body}
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            place = f"{path.relative_to(folder)}:{node.lineno}"
            doc = ast.get_docstring(node) or ""
            for entry in (e for title in ("Args", "Attributes") for e in section(doc, title)):
                if NO_NOUN.match(entry):
                    yield Hit("argument without a noun", place, entry)
            for entry in section(doc, "Raises"):
                if not entry.startswith(("If ", "When ", "Always")):
                    yield Hit("raises without if", place, entry)
            if isinstance(node, ast.ClassDef):
                continue
            if node.name.startswith("_") and not node.name.startswith("__") and "\nArgs:" in doc:
                yield Hit("Args on a private function", place, node.name)
            args = node.args
            names = [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
            names += [node.name.lstrip("_")] if id(node) in top else []
            for name in names:
                if name in IRREGULAR or (re.fullmatch(r"[a-z]+ed", name) and name not in NAMES):
                    yield Hit("participle as a name", place, name)


def hits(folder: Path) -> list[Hit]:
    """Return every occurrence of every pattern in a checkout."""
    found = list(definitions(folder))
    for place, text in texts(folder):
        for pattern, expression in PATTERNS.items():
            found += [Hit(pattern, place, m[0]) for m in re.finditer(expression, text)]
    return found


def counts(folder: Path) -> dict[str, int]:
    """Return the number of occurrences of every pattern in a checkout."""
    found = [hit.pattern for hit in hits(folder)]
    return {pattern: found.count(pattern) for pattern in ALLOWED}


def main() -> int:
    """Print a table of counts, or the places of one pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="Checkouts to compare.")
    parser.add_argument("--list", choices=list(ALLOWED), help="Print the places of a pattern.")
    arguments = parser.parse_args()
    folders = arguments.folders or [ROOT]
    if arguments.list:
        for hit in hits(folders[-1]):
            if hit.pattern == arguments.list:
                print(f"{hit.place}: {hit.text}")
        return 0
    columns = [counts(folder) for folder in folders]
    for pattern, allowed in ALLOWED.items():
        numbers = "".join(f"{column[pattern]:8,}" for column in columns)
        print(f"{pattern:28}{numbers}   allowed {allowed:,}")
    return int(any(columns[-1][pattern] > allowed for pattern, allowed in ALLOWED.items()))


if __name__ == "__main__":
    sys.exit(main())
