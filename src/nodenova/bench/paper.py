"""Published numbers of others, and remarks on single cells.

published.json has the numbers of Hou et al. (CIKM 2024, one run each, matched by identity) and
re-runs of their code; open_world.json has the numbers of the open-world protocols. `remarks` names
cells that are not what they claim: a constant predictor, an All that its own Old and New
contradict (both found by arithmetic), or a listed accuracy on validation nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeAlias

Printed: TypeAlias = "Mapping[str, float]"
Keys: TypeAlias = "tuple[str, str, str]"

FACTS: Mapping[str, Any] = json.loads(
    (resources.files("nodenova.bench") / "published.json").read_text("utf-8")
)

OPEN_WORLD_FACTS: Mapping[str, Any] = json.loads(
    (resources.files("nodenova.bench") / "open_world.json").read_text("utf-8")
)
FOUR = ("cora", "citeseer", "pubmed", "wikics", "average")


def _read(table: Mapping[str, Any]) -> dict[Keys, Printed]:
    """{(encoder, line, dataset): {score: printed number}}."""
    scores = table["scores"]
    found: dict[Keys, Printed] = {}
    for encoder, line, *numbers in table["lines"]:
        for i, dataset in enumerate(table["datasets"]):
            cell = numbers[i * len(scores) : (i + 1) * len(scores)]
            found[encoder, line, dataset] = dict(zip(scores, cell, strict=True))
    return found


# {table: {(encoder, method or losses left out, dataset): {score: printed number}}}
PAPER: dict[str, dict[Keys, Printed]] = {
    name: _read(table) for name, table in FACTS["paper"]["tables"].items()
}
LEFT_OUT = tuple(line for _, line, dataset in PAPER["ablation"] if dataset == "cora")

# Test nodes of each class on the public splits, and the number of old classes.
# Of Wiki-CS only the share is known.
TEST_NODES = {
    name: (tuple(count["classes"]), count["old"])
    for name, count in FACTS["test_nodes"]["counts"].items()
}
OLD_SHARE = {name: sum(counts[:old]) / sum(counts) for name, (counts, old) in TEST_NODES.items()}
OLD_SHARE |= FACTS["test_nodes"]["old_share"]

# Cells that are accuracies on validation nodes, (table, encoder, line, dataset, score):
# correct nodes and all nodes.
VALIDATION: dict[tuple[str, str, str, str, str], tuple[int, int]] = {
    (table, encoder, line, dataset, score): (right, nodes)
    for table, encoder, line, dataset, score, right, nodes in FACTS["paper"]["validation"]["cells"]
}


def published_lines(bench: str) -> dict[str, Mapping[tuple[str, str], float]]:
    """Return the published lines of an open-world bench: {name: {(dataset, measure): number}}.

    H is computed where accuracy on known and on unknown nodes is published.
    """
    facts = OPEN_WORLD_FACTS.get(bench, {"scores": [], "datasets": [], "lines": []})
    places = [(dataset, score) for dataset in facts["datasets"] for score in facts["scores"]]
    found: dict[str, Mapping[tuple[str, str], float]] = {}
    for name, *numbers in facts["lines"]:
        cells = zip(places, numbers, strict=True)
        mine = {place: value for place, value in cells if value is not None}
        both = [(d, mine[d, "known"], mine[d, "unknown"]) for d, s in mine if s == "known"]
        found[name] = mine | {(d, "h"): 2 * old * new / (old + new) for d, old, new in both}
    return found


def published_source(bench: str) -> str:
    """Return the source of the published lines of an open-world bench; "" without any."""
    return str(OPEN_WORLD_FACTS.get(bench, {}).get("source", ""))


def printed_number(table: str, encoder: str, line: str, dataset: str, score: str) -> float | None:
    """Return the paper's number for a cell, None where it has none (it has no H)."""
    return PAPER.get(table, {}).get((encoder, line, dataset), {}).get(score)


def remarks(table: str, encoder: str, line: str, dataset: str, score: str) -> list[str]:
    """Return sentences on a printed number that is not what it claims; mostly none.

    `line` is a method, or in the ablation the losses left out, with + between them.
    """
    cell = PAPER.get(table, {}).get((encoder, line, dataset), {})
    if score not in cell:
        return []
    found = []
    fraction = VALIDATION.get((table, encoder, line, dataset, score))
    if fraction:
        found.append(
            f"The paper's number is {fraction[0]}/{fraction[1]}, an accuracy on validation nodes."
        )
    if (constant := constant_class(cell, dataset)) is not None:
        found.append(
            "The paper's cell equals a constant predictor: "
            f"every test node of {dataset} is called class {constant}."
        )
    if score == "all" and not fraction and (should_be := expected_all(cell, dataset)) is not None:
        found.append(
            "The paper's All contradicts its own Old and New: "
            f"{100 * OLD_SHARE[dataset]:.2f}% of the test nodes of {dataset} "
            f"are of old classes, which makes it {should_be:.1f}."
        )
    if score == "new_n" and (alone := constant_new(cell["new_n"], dataset)) is not None:
        found.append(
            "The paper's New-N equals calling every test node of a new class "
            f"class {alone} ({dataset})."
        )
    if table == "forgetting":
        compared = PAPER["comparison"][encoder, line, dataset]
        if constant_class(compared, dataset) is not None:
            found.append(
                "The paper's AA and AF are those of a constant predictor (see the comparison)."
            )
        if score == "aa" and abs(cell["aa"] - (compared["old"] + compared["new"]) / 2) > 0.0151:
            found.append("The paper's AA is not the mean of the Old and New of its comparison.")
    return found


def constant_class(cell: Printed, dataset: str) -> int | None:
    """Return the class that, predicted for every test node, gives the cell's Old, New and All."""
    if dataset not in TEST_NODES or not {"old", "new", "all"} <= cell.keys():
        return None
    counts, n_old = TEST_NODES[dataset]
    old, new, everything = sum(counts[:n_old]), sum(counts[n_old:]), sum(counts)
    for c, count in enumerate(counts):
        sides = (count / old, 0.0) if c < n_old else (0.0, count / new)
        scores = {"old": sides[0], "new": sides[1], "all": count / everything}
        if all(abs(100 * score - cell[name]) < 0.00501 for name, score in scores.items()):
            return c
    return None


def constant_new(new_n: float, dataset: str) -> int | None:
    """Return the new class that, predicted for every new test node, gives this New-N."""
    if dataset not in TEST_NODES:
        return None
    counts, n_old = TEST_NODES[dataset]
    total = sum(counts[n_old:])
    fits = [c for c in range(n_old, len(counts)) if abs(100 * counts[c] / total - new_n) < 0.00501]
    return fits[0] if fits else None


def expected_all(cell: Printed, dataset: str) -> float | None:
    """Return the All that Old and New give, if it is not the printed one (one decimal)."""
    if dataset not in OLD_SHARE or not {"old", "new", "all"} <= cell.keys():
        return None
    share = OLD_SHARE[dataset]
    should_be = share * cell["old"] + (1 - share) * cell["new"]
    return should_be if abs(should_be - cell["all"]) > 0.06 else None


@dataclass(frozen=True)
class Measured:
    """Result of a re-run of the authors' code in percent, matched `block`."""

    mean: float
    std: float
    seeds: int


def _measurements(cells: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, Measured]]:
    """{(dataset, encoder): {score: measurement}}."""
    return {
        (cell["dataset"], cell["encoder"]): {
            score: Measured(cell[score][0], cell[score][1], cell["seeds"])
            for score in ("old", "new", "all")
        }
        for cell in cells
    }


# The authors' released code without its label leak, and as it is.
RERUN = _measurements(FACTS["rerun"]["without_leak"])
RERUN_WITH_LEAK = _measurements(FACTS["rerun"]["with_leak"])
