"""SWORD varied on top of something that was set for all lines: a block of its own.

And runs beside the paper's setting.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from nodenova.bench.table import Table
from nodenova.bench.tables import (
    TABLES,
    ablation,
    class_splits,
    collapse,
    comparison,
    heads,
    layers,
    sensitivity,
)
from tests.bench.rows import bench, failed, row, seeds


def groups(table: Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in table.lines:
        found.setdefault(line.group, []).append(line.labels[-1])
    return found


def measured(table: Table, group: str) -> list[int]:
    """Of each line of a block how many runs its first cell has."""
    return [line.cells[0].n for line in table.lines if line.group == group]


@pytest.mark.parametrize(
    ("set_for_all", "title"),
    [
        ({"changed": {"eta": 0.5}}, "GCN, η=0.5"),
        ({"changed": {"similarity": "sigmoid"}}, "GCN, similarity=sigmoid"),
        ({"fit_changed": {"hidden": 64}}, "GCN, hidden 64"),
        ({"fit_changed": {"schedule": "released"}}, "GCN, released schedule"),
        ({"changed": {"eta": 0.5}, "fit_changed": {"hidden": 64}}, "GCN, η=0.5, hidden 64"),
    ],
)
def test_an_ablation_of_something_that_was_set_is_a_block_of_its_own(
    set_for_all: dict[str, Any], title: str
) -> None:
    plain = seeds(2) + seeds(3, changed={"alpha1": 0.0})
    changed = set_for_all.get("changed", {})
    more = seeds(4, **set_for_all) + seeds(
        5, **set_for_all | {"changed": changed | {"alpha1": 0.0}}
    )
    (table,) = ablation(plain + more)
    assert list(groups(table)) == ["GCN", title]
    assert measured(table, "GCN") == [0, 0, 0, 3, 0, 0, 0, 2]
    assert measured(table, title) == [0, 0, 0, 5, 0, 0, 0, 4]
    # The paper's numbers are of SWORD as it is.
    assert [line.cells[0].paper is not None for line in table.lines] == [True] * 8 + [False] * 8
    assert ablation(plain) != ablation(plain + more)
    assert ablation(plain)[0].lines == table.lines[:8]


@pytest.mark.parametrize(
    "zero", [0.0, "0"]
)  # as rows say it, and as rows of earlier versions said it of failed runs
def test_a_failed_run_of_an_ablation_is_counted_where_it_belongs(zero: object) -> None:
    rows = [
        *seeds(2),
        *seeds(2, changed={"alpha1": 0.0}),
        failed(seed=2, changed={"alpha1": zero}, schema=1),
    ]
    (table,) = ablation(rows)
    assert list(groups(table)) == ["GCN"]
    assert [line.cells[0].failed for line in table.lines] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert any(note.startswith("Failed: cora, sword on gcn, seed 2") for note in table.notes)


@pytest.mark.parametrize("value", [0.5, "0.5"])
def test_a_failed_run_of_a_curve_is_counted_where_it_belongs(value: object) -> None:
    rows = [
        *seeds(2),
        *seeds(2, changed={"eta": 0.5}),
        failed(seed=2, changed={"eta": value}, schema=1),
    ]
    (table,) = sensitivity(rows)
    assert groups(table) == {"η, GCN": ["0.2 (default)", "0.5"]}
    assert [(line.cells[0].n, line.cells[0].failed) for line in table.lines] == [(2, 0), (2, 1)]


def test_what_was_set_alone_makes_no_ablation() -> None:
    (table,) = ablation(
        [*seeds(2), *seeds(2, changed={"alpha1": 0.0}), *seeds(2, changed={"eta": 0.5})]
    )
    assert list(groups(table)) == ["GCN"]


def test_a_curve_of_something_that_was_set_is_a_block_of_its_own() -> None:
    plain = seeds(2) + seeds(2, changed={"lam": 0.1})
    values: list[dict[str, Any]] = [{}, {"lam": 0.1}, {"lam": 1.0}]
    sigmoid = [r for value in values for r in seeds(2, changed={"similarity": "sigmoid"} | value)]
    hidden = [r for value in values for r in seeds(2, changed=value, fit_changed={"hidden": 64})]
    (table,) = sensitivity(plain + sigmoid + hidden)
    assert groups(table) == {
        "λ, GCN": ["0.1", "0.4 (default)"],
        "λ, GCN, hidden 64": ["0.1", "0.4 (default)", "1"],
        "λ, GCN, similarity=sigmoid": ["0.1", "0.4 (default)", "1"],
    }


def test_two_settings_that_were_changed_at_once_are_a_curve_of_neither() -> None:
    (table,) = sensitivity(
        [*seeds(2), *seeds(2, changed={"lam": 0.1}), *seeds(2, changed={"lam": 0.1, "eta": 0.5})]
    )
    assert groups(table) == {"λ, GCN": ["0.1", "0.4 (default)"]}


def test_depths_of_something_that_was_set_are_a_block_of_their_own() -> None:
    plain = seeds(2) + seeds(2, fit_changed={"layers": 8})
    wide = seeds(2, fit_changed={"hidden": 64}) + seeds(2, fit_changed={"hidden": 64, "layers": 8})
    changed = seeds(2, changed={"alpha1": 0.2}) + seeds(
        2, changed={"alpha1": 0.2}, fit_changed={"layers": 4}
    )
    (table,) = layers(plain + wide + changed)
    assert groups(table) == {
        "SWORD, GCN": ["2", "8"],
        "SWORD, GCN, hidden 64": ["2", "8"],
        "SWORD, GCN, α1=0.2": ["2", "4"],
    }


def test_inductive_runs_have_a_table_of_their_own() -> None:
    plain = seeds(3) + seeds(3, "dtc", 30)
    inductive = seeds(2, level=20, visibility="inductive") + seeds(
        2, "prism", 60, encoder="prism", visibility="inductive"
    )
    block, identity, table = comparison(plain + inductive)
    assert [block, identity] == comparison(plain)
    assert table.title == "Comparison, inductive"
    assert groups(table) == {"GCN": ["SWORD", "Prism (own encoder)"]}
    (line,) = [line for line in table.lines if line.labels == ("SWORD",)]
    assert line.cells[0].mean == pytest.approx(fmean(r.scores()["old"] for r in inductive[:2]))
    assert any("masked" in sentence for sentence in table.caption)
    for name in ("heads", "forgetting", "collapse", "settings", "confusion"):
        assert TABLES[name](plain + inductive) == TABLES[name](plain)


def test_class_splits_say_which_visibility_they_are_of() -> None:
    rows = [
        row(seed=s, class_split=s, draw="balanced", visibility=v)
        for s in range(2)
        for v in ("transductive", "inductive")
    ]
    (table,) = class_splits(rows)
    assert list(groups(table)) == ["GCN, balanced", "GCN, balanced, inductive"]


def test_runs_of_another_hidden_size_or_schedule_are_lines_of_their_own() -> None:
    other = seeds(2, fit_changed={"hidden": 32}) + seeds(2, fit_changed={"schedule": "released"})
    both = seeds(2, fit_changed={"hidden": 32, "schedule": "released"})
    block, _ = comparison(seeds(3) + other + both)
    names = [
        "SWORD",
        "SWORD, hidden 32",
        "SWORD, released schedule",
        "SWORD, released schedule, hidden 32",
    ]
    assert groups(block) == {"GCN": names}
    assert [line.reference for line in block.lines] == [True, False, False, False]
    assert [line.cells[0].paper for line in block.lines] == [60.67, None, None, None]
    assert [line.cells[0].n for line in block.lines] == [3, 2, 2, 2]
    for tables in (heads, collapse, TABLES["forgetting"]):
        assert tables(seeds(3) + other + both) == tables(seeds(3))


def test_runs_of_another_phase_1_are_lines_of_their_own_in_the_comparison_and_nowhere_else() -> (
    None
):
    other = seeds(2, level=30, fit_changed={"head": "cosine"}) + seeds(
        2, fit_changed={"head": "cosine", "lr": 0.1}
    )
    block, _ = comparison(seeds(3) + other)
    assert groups(block) == {
        "GCN": ["SWORD", "SWORD, phase 1 head=cosine", "SWORD, phase 1 head=cosine, phase 1 lr=0.1"]
    }
    assert [line.reference for line in block.lines] == [True, False, False]
    assert block.lines[1].cells[0].mean == pytest.approx(
        fmean(r.scores()["old"] for r in other[:2])
    )
    tried = seeds(2, fit_changed={"epochs": 5})
    assert comparison(seeds(3) + tried) == comparison(seeds(3))  # fewer epochs are for trying
    for name, tables in TABLES.items():
        if name != "comparison":
            assert tables(seeds(3) + other) == tables(seeds(3))


def test_the_usual_hidden_size_is_the_papers_or_the_smallest_there_is() -> None:
    small, usual = (
        seeds(2, dataset="citeseer"),
        seeds(2, dataset="citeseer", fit_changed={"hidden": 32}),
    )
    assert groups(comparison(small + usual)[0]) == {"GCN": ["SWORD", "SWORD, hidden 16"]}
    (line, _) = comparison(small + usual)[0].lines
    assert line.cells[0].mean == pytest.approx(fmean(r.scores()["old"] for r in usual))
    large = seeds(2, dataset="citeseer", fit_changed={"hidden": 64})
    assert groups(comparison(small + large)[0]) == {"GCN": ["SWORD", "SWORD, hidden 64"]}


def test_sword_as_released_is_at_home_on_its_own_schedule() -> None:
    sees = ["graph", "new_ids", "new_labels"]
    on_it = seeds(2, "sword_as_released", sees=sees, fit_changed={"schedule": "released"})
    beside = seeds(2, "sword_as_released", sees=sees)
    assert groups(comparison(seeds(2) + on_it)[0]) == {"GCN": ["SWORD", "SWORD as released"]}
    both = groups(comparison(seeds(2) + on_it + beside)[0])["GCN"]
    assert both == ["SWORD", "SWORD as released", "SWORD as released, paper schedule"]
    assert groups(comparison(seeds(2) + beside)[0]) == {
        "GCN": ["SWORD", "SWORD as released"]
    }  # where it has no other


def test_collapse_by_hand() -> None:
    said = [
        (80, 20),
        (50, 0),
        (0, 0),
        (60, 40),
    ]  # test nodes called by the one discovered class and by the other
    rows = [
        row(
            seed=seed,
            num_new=2,
            predicted_sizes=[2, 2],
            confusion=[[100, 0, 0, 0], [0, 100, 0, 0], [0, 0, a, b]],
        )
        for seed, (a, b) in enumerate(said)
    ]
    (table,) = collapse(rows)
    assert [column.title for column in table.columns] == ["Used", "Full", "Largest"]
    (line,) = table.lines
    assert [cell.mean for cell in line.cells] == [pytest.approx(5 / 4), 50.0, pytest.approx(80.0)]
    assert [cell.n for cell in line.cells] == [4, 4, 3]
    assert [cell.std is None for cell in line.cells] == [
        False,
        True,
        False,
    ]  # a share of the seeds has no spread
    assert any(sentence.endswith("of those to be found: Cora 2.") for sentence in table.caption)
    assert not any(cell.mark for cell in line.cells)


def test_collapse_of_one_new_class_that_is_said() -> None:
    (table,) = collapse(bench())
    cells = {line.labels[0]: line.cells[:3] for line in table.lines if line.group == "GCN"}
    assert [cell.mean for cell in cells["SWORD"]] == [1.0, 100.0, 100.0]
