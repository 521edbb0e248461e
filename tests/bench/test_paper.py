"""The paper's numbers are copied right, as far as their own arithmetic can tell.

And the remarks are true.
"""

from __future__ import annotations

import os
from statistics import fmean
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.paper import (
    FACTS,
    OLD_SHARE,
    PAPER,
    RERUN,
    RERUN_WITH_LEAK,
    TEST_NODES,
    VALIDATION,
    Measured,
    constant_class,
    expected_all,
    printed_number,
    remarks,
)
from nodenova.bench.plan import RELEASED_EPOCHS

FOUR = ("cora", "citeseer", "pubmed", "wikics")
COMPARED = PAPER["comparison"]


def test_every_table_is_whole() -> None:
    assert {name: len(table) for name, table in PAPER.items()} == {
        "comparison": 3 * 9 * 5, "forgetting": 3 * 9 * 5, "heads": 4 * 2, "ablation": 8 * 2
    }  # fmt: skip
    assert printed_number("comparison", "gat", "sword", "pubmed", "new") == 45.70
    assert printed_number("forgetting", "sage", "sword", "cora", "af") == -16.60
    assert printed_number("comparison", "gcn", "sword", "cora", "h") is None
    assert printed_number("comparison", "gcn", "prism", "cora", "all") is None
    assert printed_number("layers", "gcn", "sword", "cora", "all") is None


@pytest.mark.parametrize("table", ["comparison", "forgetting"])
def test_averages_are_those_of_the_four_datasets(table: str) -> None:
    wrong = {
        (encoder, method, score)
        for (encoder, method, dataset), cell in PAPER[table].items()
        if dataset == "average"
        for score, value in cell.items()
        if abs(value - fmean(PAPER[table][encoder, method, d][score] for d in FOUR)) > 0.0151
    }
    # Two that the paper itself adds up wrong.
    assert wrong == (
        {("gat", "restune", "af"), ("sage", "restune", "aa")} if table == "forgetting" else set()
    )


def test_all_is_what_old_and_new_give_but_for_the_cells_that_are_remarked() -> None:
    found = {key for key, cell in COMPARED.items() if expected_all(cell, key[2]) is not None}
    assert found == {
        ("gcn", "sword", "wikics"), ("gat", "sword", "wikics"), ("sage", "sword", "wikics"),
        ("gcn", "restune", "pubmed"), ("gcn", "restune", "wikics"), ("gcn", "dtc", "wikics"),
        ("gat", "autonovel", "wikics"), ("gat", "dtc", "wikics"),
        ("gat", "sword", "citeseer"), ("gat", "sword", "pubmed"),
        ("sage", "restune", "cora"), ("sage", "sword", "cora"), ("sage", "sword", "pubmed"),
    }  # fmt: skip
    for encoder, method, dataset in found:
        assert "contradicts its own Old and New" in " ".join(
            remarks("comparison", encoder, method, dataset, "all")
        )
        assert not any(
            "contradicts" in r for r in remarks("comparison", encoder, method, dataset, "old")
        )


def test_aa_is_the_mean_of_old_and_new() -> None:
    wrong = [
        key
        for key, cell in PAPER["forgetting"].items()
        if key[2] != "average"
        and abs(cell["aa"] - (COMPARED[key]["old"] + COMPARED[key]["new"]) / 2) > 0.0151
    ]
    assert wrong == [("sage", "restune", "cora")]
    assert remarks("forgetting", *wrong[0], "aa") == [
        "The paper's AA is not the mean of the Old and New of its comparison."
    ]


def test_28_of_72_cells_of_the_baselines_are_constant_predictors() -> None:
    cells = {
        key: cell for key, cell in COMPARED.items() if key[1] != "sword" and key[2] in TEST_NODES
    }
    constant = {key: constant_class(cell, key[2]) for key, cell in cells.items()}
    assert len(cells) == 72
    assert sum(c is not None for c in constant.values()) == 28
    assert constant["gcn", "ncl", "cora"] == 3
    assert constant["gat", "twp", "pubmed"] == 2
    assert all(
        constant_class(cell, key[2]) is None for key, cell in COMPARED.items() if key[1] == "sword"
    )
    (text,) = remarks("comparison", "gcn", "ncl", "cora", "new")
    constant = "The paper's cell equals a constant predictor: "
    assert text == constant + "every test node of cora is called class 3."
    assert remarks("forgetting", "gcn", "ncl", "cora", "af")


@pytest.mark.parametrize(("cell", "fraction"), VALIDATION.items())
def test_fractions_of_validation_nodes_give_the_printed_numbers(
    cell: tuple[str, str, str, str, str], fraction: tuple[int, int]
) -> None:
    value = printed_number(*cell)
    right, nodes = fraction
    assert value == round(100 * right / nodes, 2)
    assert f"{right}/{nodes}, an accuracy on validation nodes" in " ".join(remarks(*cell))
    counts, n_old = TEST_NODES[cell[3]]
    if cell[4] != "all":  # and no number of test nodes gives it
        total = sum(counts[:n_old] if cell[4] == "old" else counts[n_old:])
        assert all(round(100 * k / total, 2) != value for k in range(total + 1))


def test_what_is_as_it_claims_has_no_remark() -> None:
    assert not any(
        remarks("comparison", "gcn", "sword", d, s) for d in FOUR[:3] for s in ("old", "new", "all")
    )
    assert remarks("comparison", "gcn", "prism", "cora", "all") == []


@pytest.mark.parametrize("dataset", list(TEST_NODES))
def test_counts_of_test_nodes(dataset: str) -> None:
    if dataset != "citeseer" and not os.environ.get("NODENOVA_DATA"):
        pytest.skip("needs NODENOVA_DATA")
    counts, n_old = TEST_NODES[dataset]
    exam = nova.split(nova.load_dataset(dataset), range(n_old))[2]
    assert np.bincount(exam.y).tolist() == list(counts)


def test_every_block_of_facts_says_where_it_is_from() -> None:
    assert set(FACTS) == {"paper", "test_nodes", "released", "rerun"}
    for block in FACTS.values():
        assert len(block["source"].split()) > 8  # a sentence, not a word
    assert "CIKM 2024" in FACTS["paper"]["source"]
    assert all(
        "github.com/name-is-what/NC2D" in FACTS[name]["source"] for name in ("released", "rerun")
    )
    assert {
        cell["dataset"] for cells in list(FACTS["rerun"].values())[1:] for cell in cells
    } <= set(FOUR)


def test_the_re_run_has_every_cell_that_is_known_also_the_unfavourable_ones() -> None:
    assert {place: cell["all"].mean for place, cell in RERUN.items()} == {
        ("cora", "gcn"): 59.4, ("cora", "gat"): 60.2, ("cora", "sage"): 59.8,
        ("citeseer", "gcn"): 49.9, ("citeseer", "gat"): 52.4, ("citeseer", "sage"): 51.2,
        ("pubmed", "gcn"): 63.0,
    }  # fmt: skip
    assert {cell["all"].seeds for cell in RERUN.values()} == {4, 5, 9, 10}
    assert RERUN["citeseer", "gat"]["new"] == Measured(38.6, 4.6, 5)
    assert RERUN.keys() == RERUN_WITH_LEAK.keys()
    assert RERUN_WITH_LEAK["cora", "gcn"]["all"] == Measured(63.1, 3.8, 10)


def test_the_re_run_used_the_released_epochs() -> None:
    for cell in (*FACTS["rerun"]["without_leak"], *FACTS["rerun"]["with_leak"]):
        dataset, encoder = cell["dataset"], cell["encoder"]
        is_configured = encoder != "sage"  # there is no configuration file for GraphSAGE
        assert cell["epochs"] == (RELEASED_EPOCHS[dataset, encoder] if is_configured else 600)


@pytest.mark.parametrize(
    "table", [FACTS["rerun"]["without_leak"], FACTS["rerun"]["with_leak"]], ids=["without", "with"]
)
def test_what_was_measured_together_adds_up(table: list[dict[str, Any]]) -> None:
    """All is the mean of Old and New by their test nodes; that holds for means over seeds too."""
    assert len(table) == 7
    for cell in table:
        share = OLD_SHARE[cell["dataset"]]
        assert share * cell["old"][0] + (1 - share) * cell["new"][0] == pytest.approx(
            cell["all"][0], abs=0.1
        )
