"""Tables of the bench: each number is what the rows say, and each mark what the rule says."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from nodenova.bench.table import Cell, Line, Table
from nodenova.bench.tables import (
    TABLES,
    ablation,
    class_splits,
    comparison,
    confusion,
    heads,
    layers,
    sensitivity,
)
from nodenova.evaluation.significance import holm, paired_t, signed_rank
from tests.bench.rows import bench, failed, row, seeds


def find(table: Table, label: str, dataset: str, score: str, group: str = "GCN") -> Cell:
    (line,) = [line for line in table.lines if line.labels[-1] == label and line.group == group]
    (j,) = [j for j, c in enumerate(table.columns) if (c.group, c.score) == (dataset, score)]
    return line.cells[j]


def labels(table: Table) -> list[tuple[str, str]]:
    return [(line.group, line.labels[-1]) for line in table.lines]


def test_means_and_spreads_of_the_rows() -> None:
    rows = seeds(4) + seeds(4, "dtc", 30)
    block, identity = comparison(rows)
    values = [r.scores()["h"] for r in rows[:4]]
    cell = find(block, "SWORD", "cora", "h")
    assert (cell.mean, cell.std, cell.n) == (
        pytest.approx(fmean(values)),
        pytest.approx(stdev(values)),
        4,
    )
    assert identity.matching == "identity"


def test_by_identity_a_discovered_class_must_have_the_number_of_the_true_one() -> None:
    swapped = [[10, 0, 0, 0], [0, 10, 0, 0], [0, 0, 2, 8], [0, 0, 9, 1]]
    four = {"sizes": [2, 2], "predicted_sizes": [2, 2], "num_new": 2}
    block, identity = comparison(seeds(2, confusion=swapped, **four))
    assert find(block, "SWORD", "cora", "new").mean == pytest.approx(85)
    assert find(identity, "SWORD", "cora", "new").mean == pytest.approx(15)
    assert (
        find(identity, "SWORD", "cora", "old").mean
        == find(block, "SWORD", "cora", "old").mean
        == 100
    )


def test_a_method_on_its_own_encoder_closes_every_block_and_labels_come_after_no_labels() -> None:
    block, _ = comparison(bench())
    assert labels(block) == [
        ("GCN", "DTC"), ("GCN", "SWORD"), ("GCN", "GEM"), ("GCN", "Prism (own encoder)"),
        ("GAT", "DTC"), ("GAT", "SWORD"), ("GAT", "Prism (own encoder)"),
    ]  # fmt: skip
    assert [line.given_labels for line in block.lines] == [
        False,
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_best_and_second_are_never_given_labels() -> None:
    block, _ = comparison(bench())
    marks = {
        line.labels[0]: [c.mark for c in line.cells[:4]]
        for line in block.lines
        if line.group == "GCN"
    }
    assert marks["GEM"] == ["", "", "", ""]
    assert marks["Prism (own encoder)"] == ["", "", "best", "best"]
    assert marks["SWORD"] == ["", "", "second", "second"]
    assert marks["DTC"] == ["", "", "", ""]


def test_what_prints_the_same_is_marked_the_same() -> None:
    values = {"sword": 50.04, "dtc": 50.01, "ncl": 49.9}
    rows = [
        row(method, old=value, new=value) for method, value in values.items()
    ]  # and H is that, too
    block, _ = comparison(rows)
    assert [find(block, m, "cora", "h").mark for m in ("SWORD", "DTC", "NCL")] == [
        "best",
        "best",
        "second",
    ]


def test_the_papers_numbers_and_notes_stand_beside() -> None:
    block, _ = comparison(seeds(2, encoder="gat") + seeds(2, "ncl", encoder="gat"))
    cell = find(block, "SWORD", "cora", "new", "GAT")
    assert cell.paper == 30.54
    assert (
        block.notes[cell.notes[0] - 1]
        == "The paper's number is 51/167, an accuracy on validation nodes."
    )
    constant = find(block, "NCL", "cora", "all", "GAT")
    assert constant.paper == 13.0
    assert "constant predictor" in block.notes[constant.notes[0] - 1]
    assert find(block, "SWORD", "cora", "h", "GAT").paper is None


def test_averages_are_over_the_datasets_shown() -> None:
    rows = seeds(3) + seeds(3, dataset="citeseer", level=30) + seeds(3, "dtc", 20)
    block, _ = comparison(rows)
    cell = find(block, "SWORD", "average", "all")
    assert cell.mean == pytest.approx(
        fmean(find(block, "SWORD", d, "all").mean or 0 for d in ("cora", "citeseer"))
    )
    both = [find(block, "SWORD", d, "all").std or 0 for d in ("cora", "citeseer")]
    assert cell.std == pytest.approx((both[0] ** 2 + both[1] ** 2) ** 0.5 / 2)
    assert cell.paper == pytest.approx((53.5 + 51.2) / 2)
    assert find(block, "DTC", "average", "all").mean is None  # it has no CiteSeer
    assert find(block, "DTC", "citeseer", "all") == Cell(paper=41.0)


def test_a_failed_run_is_counted_and_told() -> None:
    block, _ = comparison([*seeds(3), failed(seed=3), *seeds(4, "dtc", 20)])
    cell = find(block, "SWORD", "cora", "h")
    assert (cell.n, cell.failed) == (3, 1)
    assert (
        block.notes[cell.notes[0] - 1]
        == "Failed: cora, sword on gcn, seed 3: RuntimeError: 50% of_it & <b>x</b>"
    )
    (block, _) = comparison([failed(seed=0)])
    assert find(block, "SWORD", "cora", "h").failed == 1
    assert find(block, "SWORD", "cora", "h").mean is None


def test_of_two_rows_of_one_cell_the_later_counts_and_else_order_does_not() -> None:
    assert comparison([failed(), row()]) == comparison([row()])
    rows = bench()
    shuffled = rows[:]
    random.Random(0).shuffle(shuffled)
    for tables in TABLES.values():
        assert tables(shuffled) == tables(rows)


@pytest.mark.parametrize("other", [
    {"changed": {"eta": 0.5}}, {"fit_changed": {"layers": 4}}, {"class_split": 1},
    {"visibility": "induced"}, {"draw": "balanced"},
])  # fmt: skip
def test_rows_of_another_setting_do_not_get_in(other: dict[str, Any]) -> None:
    assert comparison([*seeds(2), row(seed=2, key="other", **other)])[:2] == comparison(seeds(2))


def test_settings_that_a_command_asked_for_are_lines_of_the_comparison() -> None:
    moved = seeds(5, level=70, changed={"eta": 0.5, "draws": 7})
    rows = [*seeds(5), *moved, *seeds(5, level=20, changed={"eta": 1.0})]
    block, identity = comparison(rows, run_keys={row.key for row in moved})
    said = "SWORD, η=0.5, draws=7"
    assert labels(block) == labels(identity) == [("GCN", "SWORD"), ("GCN", said)]
    cell = find(block, said, "cora", "all")
    assert (cell.n, cell.paper) == (5, None)  # the paper has no such run
    assert cell.tests is not None  # against SWORD as it is
    assert find(block, "SWORD", "cora", "all").paper is not None
    assert labels(comparison(rows)[0]) == [("GCN", "SWORD")]


def test_settings_asked_for_stand_beside_other_sizes_and_in_the_induced_table() -> None:
    more = {"changed": {"joint": "strict", "lr": 0.1}, "fit_changed": {"hidden": 64}}
    wide = seeds(2, "dtc", **more)
    induced = seeds(2, changed={"k": 2}, visibility="induced")
    tables = comparison([*seeds(2), *wide, *induced], {row.key for row in [*wide, *induced]})
    said = ("GCN", "DTC, joint head alone, lr=0.1, hidden 64")
    assert labels(tables[0]) == [said, ("GCN", "SWORD")]
    assert labels(tables[2]) == [("GCN", "SWORD, k=2")]


def test_runs_that_are_not_of_one_thing_are_told() -> None:
    block, _ = comparison([row(seed=0), row(seed=1, settings={"lam": 9.0})])
    assert block.notes == (
        "The runs of this cell differ in settings: they are not runs of one thing.",
    )


def test_tests_are_paired_with_sword_and_corrected_over_the_table() -> None:
    rows = bench()
    block, _ = comparison(rows)

    def difference(method: str, encoder: str, dataset: str, score: str, to: str) -> list[float]:
        def of(m: str, e: str) -> list[float]:
            mine = [r for r in rows if (r.method, r.encoder, r.dataset) == (m, e, dataset)]
            plain = [
                r for r in mine if not r.changed and not r.fit_changed and r.class_split is None
            ]
            return [r.scores()[score] for r in plain]

        return [a - b for a, b in zip(of(method, encoder), of("sword", to), strict=True)]

    lines = [
        ("dtc", "gcn", "gcn"), ("gem", "gcn", "gcn"), ("prism", "prism", "gcn"),
        ("dtc", "gat", "gat"), ("prism", "prism", "gat"),
    ]  # fmt: skip
    family = [
        difference(m, e, d, s, to)
        for m, e, to in lines
        for d in ("cora", "citeseer")
        for s in ("all", "h")
    ]
    corrected = holm([paired_t(d) for d in family])
    tests = find(block, "Prism (own encoder)", "citeseer", "h").tests
    at = [*family].index(difference("prism", "prism", "citeseer", "h", "gcn"))
    assert tests is not None
    assert tests.pairs == 6
    assert tests.t == pytest.approx(paired_t(family[at]))
    assert tests.t_holm == pytest.approx(corrected[at])
    assert tests.wilcoxon == signed_rank(family[at]) == 0.03125
    assert tests.sign == "▲"
    assert find(block, "DTC", "cora", "all").tests.sign == "▼"  # type: ignore[union-attr]
    assert sum(c.tests is not None for line in block.lines for c in line.cells) == len(family)


def test_few_common_seeds_claim_nothing_and_five_only_by_the_t_test() -> None:
    few, _ = comparison([*seeds(4), *seeds(10, "dtc", 90)])
    assert find(few, "DTC", "cora", "h").tests is None
    five, _ = comparison([*seeds(5), *seeds(10, "dtc", 90)])
    tests = find(five, "DTC", "cora", "h").tests
    assert tests is not None
    assert (tests.pairs, tests.sign) == (5, "△")


def test_heads_and_forgetting_have_their_own_scores() -> None:
    (table,) = heads(bench())
    assert [c.title for c in table.columns[:3]] == ["Old", "New-N", "All"]
    assert find(table, "SWORD", "cora", "new_n").paper == 48.42
    (table,) = TABLES["forgetting"](bench())
    assert find(table, "SWORD", "cora", "af").paper == -24.71
    assert find(table, "SWORD", "cora", "aa").mean == pytest.approx(50, abs=3)


def test_ablation_has_the_papers_eight_lines() -> None:
    (table,) = ablation(bench())
    ticks = ["".join(tick or "-" for tick in line.labels) for line in table.lines]
    assert ticks == ["✓✓✓✓-", "✓✓✓-✓", "✓✓✓--", "✓✓-✓✓", "✓✓---", "✓-✓✓✓", "-✓✓✓✓", "✓✓✓✓✓"]
    measured = {tick: line.cells[0].n for tick, line in zip(ticks, table.lines, strict=True)}
    assert {tick for tick, n in measured.items() if n} == {
        "✓✓✓--",
        "✓✓-✓✓",
        "✓✓✓✓✓",
    }  # lam = 0 is neither Re nor Ds
    assert [line.reference for line in table.lines] == [False] * 7 + [True]
    assert table.lines[6].cells[0].paper == 72.07
    assert {line.group for line in table.lines} == {
        "GCN"
    }  # no block of encoders on which nothing was left out
    both = ablation([*seeds(2), *seeds(2, changed={"replay": 0.0, "omega": 0.0})])[0]
    assert both.lines[2].cells[0].n == 2


def test_sensitivity_marks_the_default_even_if_one_of_its_runs_failed() -> None:
    (table,) = sensitivity(
        [*seeds(2), failed(seed=2), *seeds(2, changed={"eta": 0.5}), *seeds(2, dataset="pubmed")]
    )
    assert labels(table) == [("η, GCN", "0.2 (default)"), ("η, GCN", "0.5")]
    assert {column.group for column in table.columns} == {"cora"}  # nothing was varied on PubMed
    assert table.lines[0].cells[0].failed == 1


def test_layers_by_encoder() -> None:
    (table,) = layers(bench())
    assert labels(table) == [("SWORD, GCN", "2"), ("SWORD, GCN", "8")]


def test_settings_that_a_later_version_added_do_not_make_another_run() -> None:
    rows = seeds(2)
    later = replace(rows[1], fit_settings={**rows[1].fit_settings, "prior": 500.0})
    block, _ = comparison([rows[0], later])
    assert find(block, "SWORD", "cora", "all").notes == ()
    other = replace(later, fit_settings={**later.fit_settings, "hidden": 99})
    assert find(comparison([rows[0], other])[0], "SWORD", "cora", "all").notes


def test_class_splits_average_the_seeds_of_a_split_first() -> None:
    values = {(0, 0): 10.0, (0, 1): 30.0, (1, 0): 60.0}
    rows = [
        row(seed=s, class_split=c, draw="balanced", old=h, new=h) for (c, s), h in values.items()
    ]
    (table,) = class_splits([*rows, *seeds(3)])
    cell = find(table, "SWORD", "cora", "h", "GCN, balanced")
    assert (cell.mean, cell.n, cell.std) == (40.0, 2, pytest.approx(stdev([20.0, 60.0])))


def test_confusion_is_matched_and_in_shares() -> None:
    counts = [[5, 0, 5, 0], [0, 10, 0, 0], [0, 2, 2, 6], [1, 1, 8, 0]]
    names = list("abcd")
    rows = seeds(2, confusion=counts, class_names=names, sizes=[2, 2], predicted_sizes=[2, 2])
    (table,) = confusion(rows)
    means = [[cell.mean for cell in line.cells] for line in table.lines]
    assert means == [[50, 0, 0, 50], [0, 100, 0, 0], [0, 20, 60, 20], [10, 10, 0, 80]]
    assert [line.group for line in table.lines] == ["old classes"] * 2 + ["new classes"] * 2
    titles = [table.title for table in confusion(bench())]
    assert "Confusion: Cora, GCN, SWORD without L_Se" in titles
    assert "Confusion: Cora, GCN, GEM †" in titles


def test_more_classes_found_than_there_are() -> None:
    (table,) = confusion(
        seeds(1, confusion=[[5, 0, 0, 5], [0, 10, 0, 0], [0, 0, 8, 2]], predicted_sizes=[2, 2])
    )
    assert [c.title for c in table.columns] == ["a", "b", "c", "no partner"]
    assert [cell.mean for cell in table.lines[0].cells] == [50, 0, 0, 50]


def test_no_rows_no_lines() -> None:
    assert all(not table.lines for tables in TABLES.values() for table in tables([]))


def test_how_many_runs_a_line_has() -> None:
    assert Line("", ("x",), (Cell(n=5), Cell(n=10), Cell())).n == "5–10"
    assert Line("", ("x",), (Cell(n=5),)).n == "5"
    assert Line("", ("x",), (Cell(),)).n == "–"
