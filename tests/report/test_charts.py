"""Drawings are whole SVG, say what they are given and leave out what is not there."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np
import pytest

from nodenova.evaluation import metrics
from nodenova.report.charts import before_and_after_matching, confusion, loss_curves, score_curves
from nodenova.report.node_map import map_data, node_map
from nodenova.report.tsne import differ, positions

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</svg><script>alert(1)</script>\"'&"


@dataclass(frozen=True)
class Cell:
    mean: float | None = None
    std: float | None = None


def lines(figure: str) -> list[str]:
    """The curves, not the keys under them."""
    return re.findall(r'<path d="([^"]*)" class="curve', figure.split("</svg><ul")[0])


def test_losses_that_break_off_leave_gaps() -> None:
    drawn = loss_curves(
        {"a < b": [1.0, math.nan, 0.5, 0.25], "c": [3.0, 2.0, 1.0, math.inf]}, "Losses"
    )
    assert [line.count("M") for line in lines(drawn)] == [2, 1]
    assert [line.count("L") for line in lines(drawn)] == [1, 2]
    assert "nan" not in drawn
    assert "inf" not in drawn
    assert "a &lt; b" in drawn


def test_losses_far_apart_are_drawn_on_a_logarithmic_scale() -> None:
    (line,) = lines(loss_curves({"a": [100.0, 10.0, 0.0, 1.0]}, "Losses"))
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]
    assert heights[1] - heights[0] == pytest.approx(
        heights[2] - heights[1], abs=0.11
    )  # 100, 10, 1; 0 is a gap
    (line,) = lines(loss_curves({"a": [1.0, -1.0, 0.0]}, "Losses"))
    assert line.count("L") == 2


def test_one_epoch_is_a_dot_and_no_epoch_is_nothing() -> None:
    assert lines(loss_curves({"a": [1.0]}, "Losses")) == ["M54.0 10.0h0"]
    assert lines(loss_curves({"flat": [0.0, 0.0, 0.0]}, "Losses"))[0].count("L") == 2
    assert loss_curves({}, "Losses") == loss_curves({"a": [math.nan]}, "Losses") == ""


def test_curves_leave_out_what_was_not_measured() -> None:
    cells = [Cell(50.0, 2.0), Cell(), Cell(120.0)]
    drawing = ElementTree.fromstring(
        score_curves("x", "k", ["1", "2 (default)", "<3>"], {"Old": cells, "H": cells[:0]})
    )
    texts = [t.text for t in drawing.iter(f"{SVG}text")]
    assert {"1", "2", "<3>", "default", "Old", "H"} <= set(texts)
    assert "nan" not in ElementTree.tostring(drawing, "unicode")


def test_maps_of_many_classes_and_of_one_point() -> None:
    names = [f"class {i}" for i in range(16)]
    drawing = node_map("x", np.random.default_rng(0).normal(size=(16, 2)), np.arange(16), names, 9)
    looks = set(re.findall(r'(?:fill|stroke)="(#\w+)"(?: stroke-width="1.2")? opacity', drawing))
    assert len(looks) == 7
    assert drawing.count("class 15 (new)") == 1
    ElementTree.fromstring(node_map("x", np.zeros((1, 2)), np.zeros(1, int), names, 9))


def test_shades_go_from_light_to_dark() -> None:
    drawing = confusion("x", np.array([[0.0, 100.0], [50.0, 50.0]]), ["a", "b"], 1)
    assert {"#f2f6fb", "#0b4a8b", "#7fb2da"} <= set(re.findall(r'<rect[^>]*fill="(#\w+)"', drawing))


def cells(drawing: str) -> list[str]:
    return [
        t.text or ""
        for t in ElementTree.fromstring(drawing).iter(f"{SVG}text")
        if t.get("pointer-events") == "none"
    ]


def test_a_confusion_is_drawn_before_and_after_matching() -> None:
    counts = np.array(
        [[5, 0, 0, 1], [0, 0, 7, 0], [1, 1234, 0, 0]]
    )  # three true classes, one old; three found
    before, after = before_and_after_matching(
        counts, [HOSTILE, "b", "c"], 1, (1, 2), (1, 3)
    ).values()
    assert cells(before) == ["5", "1", "7", "1", "1,234"]
    matched = metrics.match_block(counts, (1, 2), (1, 3))
    assert cells(after) == [
        f"{n:,}" for n in metrics.matched_confusion(counts, matched).ravel() if n
    ]
    texts = [t.text for t in ElementTree.fromstring(after).iter(f"{SVG}text")]
    assert {"b = new-2", "c = new-1", "new-3, no partner"} <= set(texts)
    hints = [t.text for t in ElementTree.fromstring(before).iter(f"{SVG}title")]
    assert f"true c, predicted {HOSTILE}: 1 of 1,235 nodes (0.1%)" in hints


def test_a_class_that_was_not_found_is_said_to_be_so() -> None:
    after = before_and_after_matching(
        np.array([[5, 0], [0, 7], [0, 2]]), ["a", "b", "c"], 1, (1, 2), (1, 1)
    )
    texts = [
        t.text for t in ElementTree.fromstring(after["After matching (block)"]).iter(f"{SVG}text")
    ]
    assert {"a", "b = new-1", "c, not found"} <= set(texts)


def test_names_in_drawings_are_text() -> None:
    drawn = [
        confusion(HOSTILE, np.full((2, 2), 50.0), [HOSTILE, "b"], 1),
        node_map(HOSTILE, np.zeros((2, 2)), np.arange(2), [HOSTILE, "b"], 1),
        score_curves(HOSTILE, HOSTILE, [HOSTILE], {HOSTILE: [Cell(1.0)]}),
        loss_curves({HOSTILE: [1.0, 2.0]}, HOSTILE),
    ]
    for drawing in drawn:
        tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(drawing).iter()}
        assert tags <= {"svg", "title", "text", "path", "rect", "figure", "ul", "li"}


def test_what_is_not_known_of_a_map_is_not_in_its_data() -> None:
    data = map_data(
        ["a", "b"], np.zeros((2, 2)), [(0, "x", False, 1), (5, "y", True, 1)], np.array([[0], [1]])
    )
    assert data["p"] is None
    assert data["true"] is None
    assert data["classes"][1] == {"id": 5, "name": "y", "isNew": True, "size": 1}


@pytest.mark.parametrize("z", [np.zeros((3, 4)), np.ones((50, 4)), np.full((50, 4), np.nan)])
def test_there_is_nothing_to_lay_out(z: np.ndarray) -> None:
    assert not differ(z)


def test_embeddings_of_one_dimension_can_be_laid_out() -> None:
    z = np.random.default_rng(0).normal(size=(12, 1))
    assert differ(z)
    assert np.isfinite(positions(z)).all()
