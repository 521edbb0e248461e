"""Two runs of `nodenova discover` compared.

Two runs compared: classes that came, went, grew, merged and split, and the nodes that moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from nodenova.errors import SettingError
from nodenova.files import table_content
from nodenova.model.decisions import Decision, Merge, Reject, Split
from nodenova.model.saving import read_document
from nodenova.runs.folder import DiscoveryFolder

SAME = "same"  # as many nodes as before


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a run says of its nodes.

    Attributes:
        names: What each class is called, by id.
        kinds: "known" or "discovered", by id.
        class_of: The id of the class of each node, by the node's id as a text.
        edits: Decisions that are part of its model.
        digest: The sha256 of its model.
        lineage: Those of the runs that it goes on from.
        title: What messages call it.
    """

    names: Mapping[int, str]
    kinds: Mapping[int, str]
    class_of: Mapping[str, int]
    edits: Sequence[Decision] = ()
    digest: str = ""
    lineage: Sequence[str] = ()
    title: str = "run"


@dataclass(frozen=True)
class ClassChange:
    """What became of a class.

    Attributes:
        what: "came", "went", "grew", "shrank", "same", "merged", "split" or "rejected".
        id: Of the class, in the later run where it is in both.
        name: What it is called; where it is gone, what it was called.
        kind: "known" (learned from labels) or "discovered".
        before: Nodes that it had; None where it was not there.
        after: Nodes that it has; None where it is gone.
        stayed: Nodes that were in it and are.
        moved_in: Nodes that were in other classes before.
        moved_out: Nodes that are in other classes now.
        was: What it was called, where that is another name, or of which class it is a part; else
            "".
        into: Ids of the classes it was merged or split into.
    """

    what: str
    id: int
    name: str
    kind: str
    before: int | None
    after: int | None
    stayed: int = 0
    moved_in: int = 0
    moved_out: int = 0
    was: str = ""
    into: tuple[int, ...] = ()


@dataclass(frozen=True)
class Move:
    """A node that is in another class than before.

    Attributes:
        node: Its id.
        before: What its class was called.
        after: What its class is called.
        before_id: The id of the class it was in, in the earlier run.
        after_id: The id of the class it is in.
    """

    node: str
    before: str
    after: str
    before_id: int
    after_id: int


@dataclass(frozen=True)
class RunDiff:
    """How two runs differ.

    Attributes:
        classes: What became of each class: those of the later run, then those that are gone.
        moves: Nodes of both that are in another class, by their ids.
        shared: How many nodes are in both.
        nodes_came: How many are in the later one alone.
        nodes_went: How many are in the earlier one alone.
        continued: Whether the later run goes on from the earlier, so that classes are matched by
            id. Otherwise they were matched one to one by the nodes they share.
    """

    classes: tuple[ClassChange, ...]
    moves: tuple[Move, ...]
    shared: int
    nodes_came: int
    nodes_went: int
    continued: bool


def diff(before: Snapshot, after: Snapshot) -> RunDiff:
    """How a later run differs from an earlier one.

    Nodes are matched by their ids. A node whose class was merged into another, or split, has not
    moved if it is where its class is now.

    Args:
        before: The earlier run.
        after: The later one.

    Returns:
        What became of each class, and which nodes moved.

    Raises:
        SettingError: They have no node in common.

    Examples:
        >>> kinds = {0: "known", 3: "discovered", 4: "discovered"}
        >>> spring = Snapshot({0: "oak", 3: "new"}, kinds, {"a": 0, "b": 3, "c": 3})
        >>> now = {"a": 0, "b": 3, "c": 0, "d": 4}
        >>> summer = Snapshot({0: "oak", 3: "elm", 4: "ash"}, kinds, now)
        >>> found = diff(spring, summer)
        >>> [(c.what, c.name, c.was) for c in found.classes]
        [('grew', 'oak', ''), ('shrank', 'elm', 'new'), ('came', 'ash', '')]
        >>> found.moves
        (Move(node='c', before='new', after='oak', before_id=3, after_id=0),)
    """
    both = [node for node in after.class_of if node in before.class_of]
    if not both:
        raise SettingError(
            f"{before.title} and {after.title} have no node in common: nodes are matched by their "
            "ids, as texts"
        )
    continued = before.digest in after.lineage if after.lineage else before.digest == after.digest
    pairs = [(before.class_of[node], after.class_of[node]) for node in both]
    heirs = _by_decisions(before, after) if continued else _by_nodes(before, after, pairs)
    moves = tuple(
        Move(node, before.names[was], after.names[now], was, now)
        for node, (was, now) in zip(both, pairs, strict=True)
        if now not in heirs.get(was, ())
    )
    return RunDiff(
        classes=(*_there(before, after, heirs, pairs), *_gone(before, after, heirs, moves)),
        moves=moves,
        shared=len(both),
        nodes_came=len(after.class_of) - len(both),
        nodes_went=len(before.class_of) - len(both),
        continued=continued,
    )


def _by_decisions(before: Snapshot, after: Snapshot) -> dict[int, tuple[int, ...]]:
    """Which classes each class of the earlier run is in the later one: ids stay, or were edited."""
    found = {}
    for class_id in before.names:
        ids = {class_id}
        for edit in after.edits[len(before.edits) :]:
            match edit:
                case Merge(class_ids, kept=int(kept)) if ids & {*class_ids}:
                    ids = ids - {*class_ids} | {kept}
                case Split(one, parts=parts) if one in ids:
                    ids = ids - {one} | {*parts}
                case Reject(one):
                    ids -= {one}
        found[class_id] = tuple(sorted(ids & set(after.names)))
    return found


def _by_nodes(
    before: Snapshot, after: Snapshot, pairs: Sequence[tuple[int, int]]
) -> dict[int, tuple[int, ...]]:
    """Classes of two runs that were made apart, matched one to one by the nodes they share."""
    rows, columns = list(before.names), list(after.names)
    shared = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for was, now in pairs:
        shared[rows.index(was), columns.index(now)] += 1
    matched = zip(*linear_sum_assignment(-shared), strict=True)
    return {rows[i]: (columns[j],) for i, j in matched if shared[i, j]}


def _followed(
    before: Snapshot, after: Snapshot, heirs: Mapping[int, tuple[int, ...]]
) -> dict[int, int]:
    """{class of the later run: the class of the earlier one that it is}.

    A merged class is that whose id it kept; the parts of a split one are none.
    """
    found = {}
    for now in after.names:
        sources = [was for was, ids in heirs.items() if ids == (now,)]
        if sources:
            found[now] = now if now in sources else sources[0]
    return found


def _there(
    before: Snapshot,
    after: Snapshot,
    heirs: Mapping[int, tuple[int, ...]],
    pairs: Sequence[tuple[int, int]],
) -> Iterator[ClassChange]:
    """What became of the classes that the later run has."""
    size_before, size_after = Counter(before.class_of.values()), Counter(after.class_of.values())
    followed = _followed(before, after, heirs)
    stayed = Counter(now for was, now in pairs if now in heirs.get(was, ()))
    moved_in = Counter(now for was, now in pairs if now not in heirs.get(was, ()))
    moved_out = Counter(was for was, now in pairs if now not in heirs.get(was, ()))
    for now, name in after.names.items():
        was = followed.get(now)
        part_of = [before.names[one] for one, ids in heirs.items() if now in ids and len(ids) > 1]
        gain = size_after[now] - (0 if was is None else size_before[was])
        change = "grew" if gain > 0 else "shrank" if gain < 0 else SAME
        first = part_of[0] if part_of else "" if was is None else before.names[was]
        yield ClassChange(
            "came" if was is None else change,
            now,
            name,
            after.kinds[now],
            None if was is None else size_before[was],
            size_after[now],
            stayed[now],
            moved_in[now],
            0 if was is None else moved_out[was],
            first if first != name else "",
        )


def _gone(
    before: Snapshot,
    after: Snapshot,
    heirs: Mapping[int, tuple[int, ...]],
    moves: Sequence[Move],
) -> Iterator[ClassChange]:
    """What became of the classes that the later run does not have."""
    followed, size = _followed(before, after, heirs), Counter(before.class_of.values())
    moved_out = Counter(move.before_id for move in moves)
    rejected = {edit.class_id for edit in after.edits if isinstance(edit, Reject)}
    for was, name in before.names.items():
        if was in followed.values():
            continue
        into = heirs.get(was, ())
        what = "split" if len(into) > 1 else "merged" if into else "went"
        if not into and was in rejected:
            what = "rejected"
        kind, out = before.kinds[was], moved_out[was]
        yield ClassChange(what, was, name, kind, size[was], None, moved_out=out, into=into)


def snapshot(folder: DiscoveryFolder) -> Snapshot:
    """What a run says of its nodes: its predictions.csv, its model, its lineage.

    Args:
        folder: Of the run.

    Raises:
        StorageError: It has no table of predictions.
    """
    class_of, model = folder.class_of_nodes(), folder.model()
    names = zip(model.classes, folder.names(model), strict=True)
    return Snapshot(
        names={c.id: name for c, name in names},
        kinds={c.id: c.kind for c in model.classes},
        class_of=class_of,
        edits=model.edits,
        digest=read_document(folder.model_folder)["sha256"],
        lineage=tuple(folder.document.get("lineage", ())),
        title=str(folder.path),
    )


def diff_runs(before: Path, after: Path) -> RunDiff:
    """How a later run differs from an earlier one; see `nodenova.diff`.

    Args:
        before: The folder of the earlier run.
        after: That of the later one.

    Raises:
        StorageError: One of them is not the folder of a run.
        SettingError: They have no node in common.
    """
    return diff(snapshot(DiscoveryFolder(before)), snapshot(DiscoveryFolder(after)))


def moves_table(found: RunDiff, path: Path) -> bytes:
    """The nodes that moved as a file, Parquet if its name ends so, else CSV."""
    columns: dict[str, list[object]] = {
        "node": [move.node for move in found.moves],
        "class_before": [move.before_id for move in found.moves],
        "name_before": [move.before for move in found.moves],
        "class": [move.after_id for move in found.moves],
        "name": [move.after for move in found.moves],
    }
    return table_content(columns, path)
