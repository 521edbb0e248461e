"""The skeleton of pages: a room's own templates and scripts, and the shared ones."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from nodenova.report import html

ROOMS = ("nodenova.report", "nodenova.review", "nodenova.bench")


def templates() -> dict[str, str]:
    folders = [Path(str(files(room))) / "templates" for room in ROOMS]
    return {path.name: path.read_text("utf-8") for folder in folders for path in folder.iterdir()}


def test_there_is_one_skeleton_and_one_style_sheet() -> None:
    extends = '{% extends "base.html.j2" %}'
    pages = [name for name, source in templates().items() if extends in source]
    assert sorted(pages) == ["bench.html.j2", "review.html.j2", "run.html.j2"]
    assert [name for name, source in templates().items() if "<html" in source] == ["base.html.j2"]
    source = Path(str(files("nodenova")))
    assert [path.name for path in source.rglob("*.css")] == ["page.css"]


def test_no_two_rooms_have_templates_or_scripts_of_one_name() -> None:
    found = [
        path.name
        for room in ROOMS
        for folder in ("templates", "assets")
        for path in (Path(str(files(room))) / folder).glob("*")
    ]
    assert len(found) == len(set(found))


def test_templates_escape_everything() -> None:
    for source in templates().values():
        assert not re.search(r"\|\s*safe|autoescape|Markup", source)


def test_a_value_that_the_template_needs_and_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'lead' is undefined"):
        html.render_page("nodenova.bench", "bench.html.j2", "t", kind="bench")


def test_a_page_has_the_scripts_of_its_room_and_the_shared_ones() -> None:
    own, shared = (
        html.asset("nodenova.review", "review.js"),
        html.asset("nodenova.review", "map.js"),
    )
    assert shared == html.asset("nodenova.report", "map.js")
    assert own != shared
    with pytest.raises(FileNotFoundError):
        html.asset("nodenova.bench", "review.js")
