"""Docstrings of this project as Markdown, for the API reference (an extension of Griffe, named in mkdocs.yml).

- Fields of a dataclass have a comment each (settings, for a method); they become a table below its docstring.
- Lists of the form "name:  what it is" become lists, and references like :func:`name` links.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*):\s+(?P<text>\S.*)$", re.MULTILINE)
WIDE = re.compile(r"(?<=\S) {5,}(?=\S)")  # between a formula and what is said of it
MAX_COLUMNS = 96  # that a page shows of a formula
REFERENCE = re.compile(r":(?:class|func):`([\w.]+)`")


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Rewrites the docstrings of everything that was read, once it has been read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        rewrite(pkg)


def rewrite(found: griffe.Module | griffe.Class) -> None:
    for member in found.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Module | griffe.Class):
            rewrite(member)
        if member.docstring is not None:
            member.docstring.value = as_markdown(member.docstring.value, member)
        if isinstance(member, griffe.Class) and "dataclass" in member.labels:
            add_settings(member)


def as_markdown(text: str, owner: griffe.Object) -> str:
    text = "\n".join(WIDE.sub("    ", line) if len(line) > MAX_COLUMNS else line for line in spaced(text).split("\n"))
    paragraphs = [as_list(part) if ENTRY.match(part) else part for part in text.split("\n\n")]
    return REFERENCE.sub(lambda m: f"[`{m[1]}`][{full_name(m[1], owner)}]", "\n\n".join(paragraphs))


def spaced(text: str) -> str:
    """An empty line before a list that follows a sentence directly, which Markdown asks for."""
    return re.sub(r"^(?![- ])(.+)\n(?=- )", r"\1\n\n", text, flags=re.MULTILINE)


def as_list(paragraph: str) -> str:
    """One item an entry; indented lines go on with the one above."""
    lines = []
    for line in paragraph.split("\n"):
        entry = ENTRY.match(line)
        names = entry and ", ".join(f"`{name}`" for name in entry["names"].split(", "))
        lines.append(f"- {names}: {entry['text']}" if entry else f"    {line.strip()}")
    return "\n".join(lines)


def full_name(name: str, owner: griffe.Object) -> str:
    return name if name.startswith("nodenova.") else f"{owner.module.path}.{name}"


def add_settings(found: griffe.Class) -> None:
    """A table of the fields of a method, or of any dataclass that has comments behind its fields."""
    rows, said = [], "prefers" in found.attributes
    for field in found.attributes.values():
        if field.lineno is None or field.name.startswith("_") or "instance-attribute" not in field.labels:
            continue
        comment = found.lines_collection[found.filepath][field.lineno - 1].partition("  # ")[2].replace("|", "\\|")
        default = "" if field.value is None else f"`{plain(str(field.value), found.module)}`"
        kind = str(field.annotation).replace("|", "\\|")
        rows.append(f"| `{field.name}` | `{kind}` | {default} | {comment} |")
        said |= bool(comment)
    if rows and said and found.docstring is not None:
        found.docstring.value += "\n\n" + "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows])


def plain(value: str, module: griffe.Module) -> str:
    """The default as a value: RANKS[0] is looked up where the module has RANKS from."""
    named = re.match(r"^([A-Z_]+)(?:\[(\d)\])?$", value)
    if named is None:
        return value
    constant = ast.literal_eval(str(module[named[1]].value))
    return repr(constant if named[2] is None else constant[int(named[2])])
