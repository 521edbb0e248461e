"""Five settings in one table.

What phase 2 is given makes the groups, what the exam tells the columns.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

from nodenova.bench.registry import NCD
from nodenova.bench.row import Row
from nodenova.bench.tables import TABLES, settings
from nodenova.bench.titles import LABEL_GROUPS
from tests.bench.rows import row, seeds

SEES = {
    "sword": ["graph", "new_ids"],
    "dtc": ["graph", "new_ids"],
    "gem": ["graph", "new_ids", "new_labels"],
    "oracle": ["graph", "new_ids", "new_labels", "old_nodes", "old_labels", "validation"],
    "autonovel_ncd": ["graph", "new_ids", "old_nodes", "old_labels"],
    "ncl_ncd": ["graph", "new_ids", "old_nodes", "old_labels"],
    "dtc_ncd": ["graph", "new_ids", "old_nodes", "old_labels"],
}


def bench() -> list[Row]:
    """Every kind of method on GCN, and Prism on its own encoder."""
    rows = [
        r
        for i, (name, sees) in enumerate(SEES.items())
        for r in seeds(3, name, 30 + 5 * i, sees=sees)
    ]
    return rows + seeds(3, "prism", 70, encoder="prism")


def test_what_phase_2_is_given_makes_three_groups() -> None:
    (table,) = settings(bench())
    found: dict[str, list[str]] = {}
    for line in table.lines:
        found.setdefault(line.group, []).append(line.labels[0])
    labels, ncd, none = (f"{group}, GCN" for group in LABEL_GROUPS.values())
    assert list(found) == [labels, ncd, none]
    assert found[labels] == ["GEM", "oracle (ceiling)"]
    assert found[ncd] == ["AutoNovel, NCD", "NCL, NCD", "DTC, NCD"]
    assert found[none] == ["DTC", "SWORD", "Prism (own encoder)"]
    assert [line.given_labels for line in table.lines] == [True] * 5 + [False] * 3


def test_groups_keep_encoders_apart() -> None:
    (table,) = settings(
        bench() + seeds(2, "gem", encoder="gat", sees=SEES["gem"]) + seeds(2, encoder="gat")
    )
    groups = list(dict.fromkeys(line.group for line in table.lines))
    labels, ncd, none = LABEL_GROUPS.values()
    assert groups == [
        f"{labels}, GCN",
        f"{labels}, GAT",
        f"{ncd}, GCN",
        f"{none}, GCN",
        f"{none}, GAT",
    ]


def test_told_and_not_told_stand_side_by_side() -> None:
    rows = bench()
    (table,) = settings(rows)
    assert [column.title for column in table.columns] == [
        "Old-N",
        "New-N",
        "All-N",
        "Old",
        "New",
        "All",
        "H",
    ]
    (line,) = [line for line in table.lines if line.labels == ("SWORD",)]
    mine = [r.scores() for r in rows if r.method == "sword"]
    for column, cell in zip(table.columns, line.cells, strict=True):
        assert cell.mean == pytest.approx(fmean(scores[column.score] for scores in mine))
        assert cell.n == 3
    assert not any(
        cell.mark or cell.tests for line in table.lines for cell in line.cells
    )  # groups answer other questions


def test_only_methods_as_they_are_in_the_papers_setting() -> None:
    other: list[dict[str, Any]] = [
        {"changed": {"new_rows": "untrained"}},
        {"fit_changed": {"layers": 4}},
        {"fit_changed": {"hidden": 64}},
        {"visibility": "induced"},
        {"class_split": 1},
    ]
    for more in other:
        assert settings([*bench(), row("dtc", 7, **more)]) == settings(bench())


def test_ncd_methods_are_in_this_table_and_in_no_other() -> None:
    shown = {
        name: [line.labels[-1] for table in tables(bench()) for line in table.lines]
        for name, tables in TABLES.items()
    }
    assert sum("NCD" in label for label in shown["settings"]) == len(NCD)
    assert {name for name, labels in shown.items() if any("NCD" in label for label in labels)} == {
        "settings"
    }
    assert not any("NCD" in table.title for table in TABLES["confusion"](bench()))
    split = [replace(r, class_split=0, key=f"s{i}") for i, r in enumerate(bench())]
    assert not any(
        "NCD" in line.labels[0] for table in TABLES["class-splits"](split) for line in table.lines
    )
    mapped = [replace(r, map="m.npz") for r in bench()]
    assert not any(
        "NCD" in line.labels[0] for table in TABLES["tsne"](mapped) for line in table.lines
    )
