"""Values as text, and as tables in a notebook."""

from __future__ import annotations

import re

import pytest

import nodenova as nova
from nodenova.display import MAX_ROWS, html_table, percent

HOSTILE = "<script>alert(1)</script>"


def test_values_are_shown_as_text_and_numbers_stand_at_the_right() -> None:
    shown = html_table(("name", "nodes"), [(HOSTILE, 1200), (None, 0.12345)], HOSTILE)
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 2
    assert '<td style="text-align:right">1,200</td>' in shown
    assert "<td>–</td>" in shown
    assert "0.123" in shown


def test_no_table_has_a_color_of_its_own() -> None:
    assert not re.search(r"color|background|#[0-9a-f]{3}", html_table(("a",), [("b",)], "c"))


def test_long_tables_say_how_much_longer_they_are() -> None:
    shown = html_table(("i",), [(i,) for i in range(MAX_ROWS + 7)], "many")
    assert "and 7 more" in shown
    assert shown.count("<tr>") == MAX_ROWS + 2


def test_models_classes_counts_and_grades_show_themselves(
    tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam],
    discovered: nova.Model,
    labelled: nova.LabelledGraph,
) -> None:
    renamed = discovered.rename(2, HOSTILE)
    assert "&lt;script&gt;" in renamed._repr_html_()
    assert "<script>" not in renamed._repr_html_()
    infos = renamed.class_info(labelled.graph)
    shown = infos._repr_html_()
    assert "<script>" not in shown
    assert all(f">{info.size:,}<" in shown for info in infos)
    graded = nova.grade(discovered, tasks[2])
    assert f"{graded.scores()['all']:.1f}" in graded._repr_html_()
    count = nova.ClassCountEstimate(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
    assert "50%" in count._repr_html_()


def test_tasks_say_how_large_they_are_and_no_answer(
    tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam], labelled: nova.LabelledGraph
) -> None:
    old, new, exam = tasks
    said = [repr(each) for each in (*tasks, labelled)]
    assert said[0].startswith(f"OldTask({len(old.train_ids)} labelled nodes of 2 classes, Graph(")
    assert said[1].startswith(f"NewTask({len(new.ids)} unlabelled nodes, 2 classes, Graph(")
    assert said[2].startswith(f"Exam({len(exam.ids)} nodes of 4 classes, Graph(")
    assert said[3] == f"LabelledGraph('synthetic', {labelled.graph!r}, 4 classes)"
    assert not any("array" in text for text in said)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "0%"),
        (0.001, "<1%"),
        (0.005, "<1%"),
        (0.42, "42%"),
    ],
)
def test_a_share_is_a_percentage(value: float | None, text: str) -> None:
    assert percent(value) == text
