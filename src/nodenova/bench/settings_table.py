"""Five settings of learning classes in two phases, in one table.

What phase 2 is given makes three groups of methods; whether the exam says of a node that its class
is old or new makes two kinds of scores. Task-IL and class-IL, NCDwF and NC-NCD are the same runs,
read by the one or by the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nodenova.bench.cells import Entry, Table, table
from nodenova.bench.row import Row
from nodenova.bench.select import by_method, of_the_paper, unchanged

# What phase 2 is given, by whether it has labels of new nodes and of old ones.
GROUPS = {
    (True, True): "Labels of new classes (told: task-IL, not told: class-IL)",
    (False, True): "Old nodes with labels, new ones without (NCD: New-N alone)",
    (False, False): "New nodes without labels (told: NCDwF, not told: NC-NCD)",
}
CAPTION = (
    "Percent of the test nodes, mean ± sample standard deviation over seeds (how many: column n).",
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed.",
    "Told, at the exam, whether a node's class is old or new: Old-N, New-N, All-N. "
    "Not told: Old, New, All and H.",
    "† was given labels (or old nodes) in phase 2.",
)


def settings(rows: Sequence[Row]) -> list[Table]:
    """Methods by what phase 2 is given, scored with and without being told old from new."""
    entries = by_method(unchanged(of_the_paper(rows)))
    placed = [
        replace(entry, group=f"{GROUPS[_given(entry)]}, {entry.group}", reference=False)
        for entry in entries
    ]
    order = list(GROUPS.values())
    placed.sort(
        key=lambda entry: next(i for i, group in enumerate(order) if entry.group.startswith(group))
    )
    scores = ("old_n", "new_n", "all_n", "old", "new", "all", "h")
    return [table("settings", "Settings", CAPTION, ("Method",), placed, scores)]


def _given(entry: Entry) -> tuple[bool, bool]:
    sees = {what for row in entry.rows for what in row.sees}
    labelled = "new_labels" in sees
    return labelled, labelled or "old_labels" in sees
