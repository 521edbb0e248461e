"""How Prism stands against published numbers, a simple reference and goals, from rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from nodenova.bench.paper import OPEN_WORLD_FACTS, published_lines
from nodenova.bench.row import Row
from nodenova.bench.table import Cell, Column, Line, Table
from nodenova.bench.tables import MEASURES, TABLES
from nodenova.bench.titles import TABLES as HEADINGS
from nodenova.bench.titles import caption, dataset_title

# The score of each protocol that its authors compare by, and further ones that have a goal.
HEADLINES = {
    "pown": ("all", "h"),
    "openima": ("all",),
    "gnnsafe": ("auroc",),
    "hope": ("accuracy",),
    "closed": ("accuracy",),
}
OURS = ("Prism", "Prism's phase 1 alone")
COLUMNS = ("ours", "published", "reference", "goal")
HEADS = ("Protocol", "Method", "Graph", "Score", "Best published", "Reference", "Goal")
NONE = "–"


def standings(rows: Sequence[Row]) -> Table:
    """Return one line per protocol, method of ours, graph and headline score."""
    lines = []
    for protocol, scores in HEADLINES.items():
        (table,) = TABLES[protocol](rows)
        for line in table.lines:
            if line.labels[0] in OURS:
                cells = zip(table.columns, line.cells, strict=True)
                lines += [
                    _line(protocol, line.labels[0], column, cell)
                    for column, cell in cells
                    if column.score in scores and cell.mean is not None
                ]
    columns = tuple(Column("", name, name) for name in COLUMNS)
    words = (*caption("standings"), *map(_in_short, _by_score(lines)))
    return Table("Where we stand", words, HEADS, columns, tuple(lines))


def _by_score(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines of one protocol, method and score together."""
    found: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        protocol, method, _, score = line.labels[:4]
        found.setdefault((protocol, method, score), []).append(line)
    return list(found.values())


def _in_short(lines: Sequence[Line]) -> str:
    """Return a sentence that counts how often each of the three comparisons came out well."""
    protocol, method, _, score = lines[0].labels[:4]
    counts = []
    wanted = ("above", "above", "reached")
    names = ("above the best published", "above the reference", "goal reached")
    for place, (word, name) in enumerate(zip(wanted, names, strict=True), 4):
        known = [line.labels[place] for line in lines if line.labels[place] != NONE]
        if known:
            good = sum(text.startswith(word) for text in known)
            counts.append(f"{name} on {good} of {len(known)}")
    text = ", ".join(counts) or "nothing to compare with"
    return f"{protocol}, {method}, {score}: {text}."


def _line(protocol: str, method: str, column: Column, ours: Cell) -> Line:
    place = (column.group, column.score)
    others = {n: v[place] for n, v in published_lines(protocol).items() if place in v}
    best = max(others, key=lambda name: others[name], default=None)
    facts = OPEN_WORLD_FACTS[protocol]
    reference = facts.get("reference", {}).get(column.score, {}).get(column.group)
    goal = facts.get("goals", {}).get(column.score, {}).get(column.group)
    against = NONE if best is None else f"{standing(ours, others[best])} {best}"
    beside = NONE if reference is None else standing(ours, reference)
    reached = NONE if goal is None else goal_text(ours, goal)
    title = MEASURES[protocol][column.score].title
    numbers = (None if best is None else others[best], reference, goal)
    labels = (HEADINGS[protocol].title, method, dataset_title(column.group), title)
    return Line("", (*labels, against, beside, reached), (ours, *map(Cell, numbers)))


def standing(ours: Cell, number: float) -> str:
    """Return "above" a number, "level with" it (within two standard errors of ours) or "below".

    Examples:
        >>> standing(Cell(72.0, 8.4, 15), 61.28), standing(Cell(68.0, 3.0, 4), 66.5)
        ('above', 'level with')
    """
    assert ours.mean is not None
    # The error of the published number is not known; one run of ours has none.
    error = 0.0 if ours.std is None else ours.std / sqrt(ours.n)
    if abs(ours.mean - number) <= 2 * error:
        return "level with"
    return "above" if ours.mean > number else "below"


def goal_text(ours: Cell, goal: float) -> str:
    """Return "reached", or by how much the goal is missed, by what is printed."""
    assert ours.mean is not None
    missing = round(goal, 2) - round(ours.mean, 1)
    return "reached" if missing <= 0 else f"missed by {missing:.1f}"
