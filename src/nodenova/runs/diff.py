"""How two runs differ, and how a later graph differs from the one that a run was made on.

Nothing here needs PyTorch; NumPy is imported only where classes are matched by their nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodenova.display import percent
from nodenova.errors import SettingError, StorageError
from nodenova.files.content import table_content
from nodenova.model.decisions import Decision, Merge, Reject, Split
from nodenova.runs.run_dir import read_predictions

if TYPE_CHECKING:
    from nodenova.runs.predictions import Predictions

UNCHANGED = "same"  # as many nodes as before
Z_95 = 1.96  # standard errors within which 95% of samples are


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Classes by id, class ids of nodes, decisions and model digests of a run, for `diff`."""

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
        id: Id of the class, in the later run if it is in both.
        name: Name of the class; its last name if it is gone.
        kind: "known" (learned from labels) or "discovered".
        before: Number of nodes in the earlier run; None if the class was not there.
        after: Number of nodes in the later run; None if the class is gone.
        stayed: Number of nodes in the class in both runs.
        moved_in: Number of nodes that were in another class.
        moved_out: Number of nodes that are in another class now.
        was: Earlier name, if it is another one, or name of the class it is a part of; else "".
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
        node: Id of the node.
        before: Name of its class in the earlier run.
        after: Name of its class in the later run.
        before_id: Id of its class in the earlier run.
        after_id: Id of its class in the later run.
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
        classes: Change of each class: those of the later run, then those that are gone.
        moves: Nodes of both runs that are in another class.
        shared: Number of nodes in both runs.
        nodes_came: Number of nodes in the later run only.
        nodes_went: Number of nodes in the earlier run only.
        continued: Whether the later run continues the earlier one, so that classes are matched by
            id. Otherwise they are matched one to one by the nodes they share.
    """

    classes: tuple[ClassChange, ...]
    moves: tuple[Move, ...]
    shared: int
    nodes_came: int
    nodes_went: int
    continued: bool

    def moves_table(self, path: Path, safe_csv: bool = False) -> bytes:
        """The nodes that moved as the content of a file, Parquet or CSV by its name."""
        columns: dict[str, list[object]] = {
            "node": [move.node for move in self.moves],
            "class_before": [move.before_id for move in self.moves],
            "name_before": [move.before for move in self.moves],
            "class": [move.after_id for move in self.moves],
            "name": [move.after for move in self.moves],
        }
        return table_content(columns, path, safe_csv)


def diff(before: Snapshot, after: Snapshot) -> RunDiff:
    """Compare two runs; nodes are matched by their ids.

    A node whose class was merged or split has not moved if it is where its class is now.

    Examples:
        >>> kinds = {0: "known", 3: "discovered", 4: "discovered"}
        >>> spring = Snapshot({0: "oak", 3: "new"}, kinds, {"a": 0, "b": 3, "c": 3})
        >>> now = {"a": 0, "b": 3, "c": 0, "d": 4}
        >>> summer = Snapshot({0: "oak", 3: "elm", 4: "ash"}, kinds, now)
        >>> changes = diff(spring, summer)
        >>> [(c.what, c.name, c.was) for c in changes.classes]
        [('grew', 'oak', ''), ('shrank', 'elm', 'new'), ('came', 'ash', '')]
        >>> changes.moves
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
    for side, ids in zip((before, after), map(set, zip(*pairs, strict=True)), strict=True):
        if unknown := sorted(ids - side.names.keys()):
            what = f"damaged, its model has no class {unknown[0]}"
            raise StorageError(f"{side.title}: predictions.csv: {what}")
    heirs = _heirs_by_decisions(before, after) if continued else _heirs_by_nodes(
        before, after, pairs
    )  # fmt: skip
    moves = tuple(
        Move(node, before.names[was], after.names[now], was, now)
        for node, (was, now) in zip(both, pairs, strict=True)
        if now not in heirs.get(was, ())
    )
    return RunDiff(
        classes=(
            *_present_classes(before, after, heirs, pairs),
            *_gone_classes(before, after, heirs, moves),
        ),
        moves=moves,
        shared=len(both),
        nodes_came=len(after.class_of) - len(both),
        nodes_went=len(before.class_of) - len(both),
        continued=continued,
    )


def _heirs_by_decisions(before: Snapshot, after: Snapshot) -> dict[int, tuple[int, ...]]:
    """{class of the earlier run: its classes in the later one}: ids stay, or were edited."""
    heirs = {}
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
        heirs[class_id] = tuple(sorted(ids & set(after.names)))
    return heirs


def _heirs_by_nodes(
    before: Snapshot, after: Snapshot, pairs: Sequence[tuple[int, int]]
) -> dict[int, tuple[int, ...]]:
    """The same for two unrelated runs: one to one, by the nodes that classes share."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows, columns = list(before.names), list(after.names)
    shared = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for was, now in pairs:
        shared[rows.index(was), columns.index(now)] += 1
    matched = zip(*linear_sum_assignment(-shared), strict=True)
    return {rows[i]: (columns[j],) for i, j in matched if shared[i, j]}


def _ancestors(after: Snapshot, heirs: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """{class of the later run: the same class in the earlier one}; parts of a split have none."""
    ancestors = {}
    for now in after.names:
        sources = [was for was, ids in heirs.items() if ids == (now,)]
        if sources:
            ancestors[now] = now if now in sources else sources[0]
    return ancestors


def _present_classes(
    before: Snapshot,
    after: Snapshot,
    heirs: Mapping[int, tuple[int, ...]],
    pairs: Sequence[tuple[int, int]],
) -> Iterator[ClassChange]:
    """Changes of the classes that the later run has."""
    size_before, size_after = Counter(before.class_of.values()), Counter(after.class_of.values())
    ancestors = _ancestors(after, heirs)
    stayed = Counter(now for was, now in pairs if now in heirs.get(was, ()))
    moved_in = Counter(now for was, now in pairs if now not in heirs.get(was, ()))
    moved_out = Counter(was for was, now in pairs if now not in heirs.get(was, ()))
    for now, name in after.names.items():
        was = ancestors.get(now)
        part_of = [before.names[one] for one, ids in heirs.items() if now in ids and len(ids) > 1]
        gain = size_after[now] - (0 if was is None else size_before[was])
        change = "grew" if gain > 0 else "shrank" if gain < 0 else UNCHANGED
        earlier_name = part_of[0] if part_of else "" if was is None else before.names[was]
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
            earlier_name if earlier_name != name else "",
        )


def _gone_classes(
    before: Snapshot,
    after: Snapshot,
    heirs: Mapping[int, tuple[int, ...]],
    moves: Sequence[Move],
) -> Iterator[ClassChange]:
    """Changes of the classes that the later run does not have."""
    ancestors, size = _ancestors(after, heirs), Counter(before.class_of.values())
    moved_out = Counter(move.before_id for move in moves)
    rejected = {edit.class_id for edit in after.edits if isinstance(edit, Reject)}
    for was, name in before.names.items():
        if was in ancestors.values():
            continue
        into = heirs.get(was, ())
        what = "split" if len(into) > 1 else "merged" if into else "went"
        if not into and was in rejected:
            what = "rejected"
        kind, out = before.kinds[was], moved_out[was]
        yield ClassChange(what, was, name, kind, size[was], None, moved_out=out, into=into)


@dataclass(frozen=True)
class Shares:
    """Numbers of nodes by class id, and number of unsure nodes."""

    counts: Mapping[int, int]
    unsure: int

    @property
    def nodes(self) -> int:
        """Number of all nodes."""
        return sum(self.counts.values())

    def of(self, class_id: int) -> float:
        """Share of a class."""
        return self.counts.get(class_id, 0) / max(self.nodes, 1)

    @property
    def unsure_share(self) -> float:
        """Share of unsure nodes."""
        return self.unsure / max(self.nodes, 1)

    @classmethod
    def read(cls, run: Path, min_confidence: float) -> Shares:
        """Shares in a run's predictions.csv."""
        table = read_predictions(run)
        unsure = sum(probability < min_confidence for probability in table["probability"])
        return cls(Counter(table["class"]), unsure)


@dataclass(frozen=True)
class Drift:
    """How far the shares of classes and of unsure nodes are from those of a run.

    Examples:
        >>> drift = Drift(Shares({0: 500, 1: 500}, 100), Shares({0: 300, 1: 700}, 120))
        >>> round(drift.distance, 2), drift.exceeds(0.1), drift.exceeds(0.3)
        (0.2, True, False)
        >>> few = Drift(Shares({0: 500, 1: 500}, 100), Shares({0: 3, 1: 7}, 1))
        >>> round(few.distance, 2), few.exceeds(0.1)  # with ten nodes, chance explains it
        (0.2, False)
    """

    before: Shares
    now: Shares

    @classmethod
    def since(cls, run: Path, predictions: Predictions, min_confidence: float) -> Drift | str:
        """Drift from a run's predictions.csv to these predictions, or why there is none."""
        if not (run / "predictions.csv").is_file():
            return no_predictions(run)
        before = Shares.read(run, min_confidence)
        classes = predictions.model.classes
        if not set(before.counts) <= {c.id for c in classes}:
            return f"{run} was reviewed without its graph, so no change can be measured"
        counts = {c.id: n for c, n in zip(classes, predictions.counts.tolist(), strict=True)}
        return cls(before, Shares(counts, int(predictions.unsure.sum())))

    @property
    def distance(self) -> float:
        """Total variation distance: the larger one of classes, and of sure and unsure nodes."""
        return max(self._classes()[0], self._unsure()[0])

    @property
    def by_chance(self) -> float:
        """The distance that chance alone would hardly exceed."""
        return max((self._classes(), self._unsure()), key=lambda both: both[0])[1]

    def exceeds(self, most: float) -> bool:
        """Whether classes or unsure nodes changed by more than `most`, and by more than chance."""
        return any(far > most and far > chance for far, chance in (self._classes(), self._unsure()))

    def sentence(self) -> str:
        """The change in words.

        Examples:
            >>> Drift(Shares({0: 50}, 10), Shares({0: 50}, 5)).sentence()
            '10.0% of nodes are unsure (was 20.0%); class shares shifted by 0.0 points'
        """
        unsure, before = self.now.unsure_share, self.before.unsure_share
        shift = 100 * self._classes()[0]
        return (
            f"{percent(unsure, 1)} of nodes are unsure (was {percent(before, 1)}); "
            f"class shares shifted by {shift:.1f} points"
        )

    def to_json(self) -> dict[str, object]:
        """The "drift" of `nodenova predict --json`."""
        return {
            "distance": round(self.distance, 4),
            "by_chance": round(self.by_chance, 4),
            "unsure_before": round(self.before.unsure_share, 4),
            "unsure": round(self.now.unsure_share, 4),
            "shares_before": {str(c): round(self.before.of(c), 4) for c in self._ids()},
        }

    def _ids(self) -> list[int]:
        return sorted({*self.before.counts, *self.now.counts})

    def _classes(self) -> tuple[float, float]:
        return self._distance([(self.before.of(c), self.now.of(c)) for c in self._ids()])

    def _unsure(self) -> tuple[float, float]:
        then, now = self.before.unsure_share, self.now.unsure_share
        return self._distance([(then, now), (1 - then, 1 - now)])

    def _distance(self, pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Total variation of pairs of shares, and 1.96 standard errors of it."""
        far = sum(abs(now - then) for then, now in pairs) / 2
        rate = 1 / max(self.before.nodes, 1) + 1 / max(self.now.nodes, 1)
        both = [(then + now) / 2 for then, now in pairs]
        errors = [math.sqrt(max(share * (1 - share), 0.0) * rate) for share in both]
        return far, Z_95 * sum(errors) / 2


def no_predictions(run: Path) -> str:
    """Why no drift can be measured from a folder without predictions.csv."""
    return f"{run} has no predictions of its own graph, so no change can be measured"
