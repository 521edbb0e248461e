"""Discovered classes of an earlier run, searched again when its graph has grown.

Phase 1 is computed again on the grown graph: from the labels, and from nodes of the classes that a
person has decided on. All other discovered classes are given up, and discovery finds them again, or
others. A class that is found again keeps its id and name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.data.tasks import tasks_from_labels
from nodenova.discovery import count_new
from nodenova.display import plural
from nodenova.errors import SplitError
from nodenova.fitting import fit
from nodenova.graph import Graph, NewTask
from nodenova.growth import MIN_MEAN, refit_if_changed
from nodenova.model.classes import NodeClass, make_unique
from nodenova.model.edits import without_classes
from nodenova.model.model import Model, Refresh

REVISION = "discovered classes are revised"
MIN_CAME = 0.05  # share of nodes that came, from which on new classes are counted again


@dataclass(frozen=True, eq=False)
class Revision:
    """A model before discovery, and what it gave up and kept.

    model:    the known classes, and those that were decided on.
    earlier:  the model of the earlier run.
    freed:    the classes that are searched again.
    examples: (N,) whether an unlabelled node stands for a class that was decided on.
    refresh:  record of the refit; None if the representation stays.
    """

    model: Model
    earlier: Model
    freed: Sequence[NodeClass]
    examples: np.ndarray
    refresh: Refresh | None

    @property
    def decided_ids(self) -> list[int]:
        """Ids of the discovered classes that were decided on."""
        return [c.id for c in self.model.classes if c.is_new]

    def finish(self, found: Model, was: np.ndarray, now: np.ndarray) -> Model:
        """The model after discovery, with the ids, stages and decisions of the earlier run.

        A class keeps the id and name of a freed class if each has more than half of the other's
        nodes. `was` and `now` (n,) are the class ids of the nodes of both runs.
        """
        known = {c.id for c in self.model.classes}
        same = _same_classes(
            [c.id for c in found.classes if c.id not in known], self.freed, was, now
        )
        first = max(self.earlier.next_id, 1 + max(known))
        fresh = iter(range(first, first + len(same)))
        ids = {c: next(fresh) if one is None else one.id for c, one in same.items()}
        taken = [*self.model.class_names, *(one.name for one in same.values() if one is not None)]
        names = {
            ids[c]: make_unique([f"new-{ids[c]}"], taken)[0] if one is None else one.name
            for c, one in same.items()
        }
        stage = len(self.earlier.stages)
        newest = [NodeClass(c, names[c], stage) for c in sorted(names)]
        last = found.stages[-1]
        last = replace(
            last,
            refresh=self.refresh,
            found_in={ids[c]: times for c, times in last.found_in.items()},
            revised=tuple(c.id for c in self.freed),
        )
        return replace(
            found,
            classes=(*self.model.classes, *newest),
            column_class_ids=tuple(ids.get(c, c) for c in found.column_class_ids),
            stages=(*self.earlier.stages, last),
            _novel_head=None,  # its columns are in another order
        )

    def sentence(self, model: Model) -> str:
        """What became of the classes that were revised."""
        stayed = len({c.id for c in self.freed} & {c.id for c in model.classes})
        came = len(model.classes) - len(self.model.classes) - stayed
        return (
            f"revised {plural(len(self.freed), 'discovered class', 'discovered classes')} that you "
            f"have not decided on: {stayed} stayed, {len(self.freed) - stayed} went, {came} came"
        )


def undecided_classes(model: Model, label_ids: np.ndarray) -> list[NodeClass]:
    """Discovered classes that no decision and none of the (N,) labels, by class id, is about."""
    decided = {class_id for edit in model.edits for class_id in edit.ids} | {*label_ids.tolist()}
    return [c for c in model.classes if c.is_new and c.id not in decided]


def start_revision(
    model: Model,
    graph: Graph,
    label_ids: np.ndarray,
    earlier_ids: np.ndarray,
    *,
    names: Mapping[int, str],
    refresh: bool | str,
    seed: int,
) -> Revision:
    """Phase 1 again, without the discovered classes that were not decided on.

    `label_ids` (N,) are class ids of labels, `earlier_ids` (N,) those of the earlier run, -1 for
    none; `names` are those of classes that come with labels, by id.
    """
    freed = undecided_classes(model, label_ids)
    if refresh is False or model.frozen_encoder().spec.trainable:
        stays, _ = refit_if_changed(model, graph, refresh, names=names)
        none = np.zeros(graph.num_nodes, dtype=bool)
        return Revision(without_classes(stays, [c.id for c in freed]), model, freed, none, None)
    classes = [c for c in model.classes if c not in freed]
    classes += [NodeClass(class_id, name, 0) for class_id, name in names.items()]
    y = _examples(classes, label_ids, earlier_ids)
    unlabelled = np.flatnonzero(y == UNKNOWN)
    called = tuple(c.name for c in classes)
    user = UserGraph(graph, y, called, new_ids=unlabelled, new_named=False)
    old, _, _ = tasks_from_labels(user, seed=seed)
    fitted = fit(old, "prism", seed=seed, device=str(model.device), **asdict(model.lda))
    by_name = {c.name: c for c in classes}
    there = [by_name[name] for name in old.class_names]
    fitted = replace(
        fitted,
        classes=tuple(sorted(there, key=lambda c: (c.stage, c.id))),
        column_class_ids=tuple(c.id for c in there),
        edits=model.edits,
    )
    gone = [c for c in classes if c not in there]
    notes = tuple(f"class {c.id} ({c.name}) has no node in this graph and is gone" for c in gone)
    carried = tuple((c.id, int((y == classes.index(c)).sum())) for c in there)
    done = Refresh(REVISION, carried, int((label_ids >= 0).sum()), notes)
    return Revision(fitted, model, freed, (y != UNKNOWN) & (label_ids < 0), done)


def number_note(
    earlier: Model, model: Model, graph: Graph, label_ids: np.ndarray, earlier_ids: np.ndarray,
    **given: Any,
) -> str:  # fmt: skip
    """A sentence if all unlabelled nodes together seem to have another number of new classes.

    `model` is the one after discovery, `given` as for `start_revision`. "" if the number agrees, or
    cannot be estimated.
    """
    came = float((earlier_ids == -1).mean())
    if came < MIN_CAME or earlier.cells is None or earlier.frozen_encoder().spec.trainable:
        return ""
    try:
        start = start_revision(earlier, graph, label_ids, earlier_ids, refresh="auto", **given)
    except SplitError:  # too few nodes of known classes are left
        return ""
    ids = np.flatnonzero((label_ids < 0) & ~start.examples)
    task = NewTask(graph, ids, None, mixed=True)
    count = count_new(start.model, task, seed=given["seed"])
    found, now = count.number, len(undecided_classes(model, label_ids))
    too_few, too_many = found >= max(2 * now, 1), 2 * found <= now and now > count.high
    if not found or not (too_few or too_many):
        return ""
    return (
        f"counted together, the {plural(len(ids), 'unlabelled node')} have probably "
        f"{plural(found, 'new class', 'new classes')}, and this run has {now} that you have not "
        "decided on: --revise searches for them again, --revise --num-new N for N classes"
    )


def _examples(
    classes: Sequence[NodeClass], label_ids: np.ndarray, earlier_ids: np.ndarray
) -> np.ndarray:
    """(N,) number of the class that a node stands for, -1 for none.

    Labelled nodes stand for known classes. Nodes of the earlier run stand for classes that were
    decided on, and for known ones without labels: at most as many as a class has labels, so that
    they count alike.
    """
    labels = label_ids[label_ids >= 0]
    most = int(np.bincount(labels).max()) if len(labels) else len(label_ids)
    y = np.full(len(label_ids), UNKNOWN)
    for number, c in enumerate(classes):
        mine = label_ids == c.id
        y[mine] = number
        lacking = most - int(mine.sum())
        if lacking > 0 and (c.is_new or mine.sum() < MIN_MEAN):
            others = np.flatnonzero((earlier_ids == c.id) & (label_ids < 0))
            y[others[:: -(-len(others) // lacking) or 1]] = number  # every n-th of them
    return y


def _same_classes(
    found_ids: Sequence[int], earlier: Sequence[NodeClass], was: np.ndarray, now: np.ndarray
) -> dict[int, NodeClass | None]:
    """The earlier class that each found class is again, if more than half of both are shared."""
    same: dict[int, NodeClass | None] = dict.fromkeys(found_ids)
    for found in found_ids:
        for one in earlier:
            shared = 2 * int(((was == one.id) & (now == found)).sum())
            if shared > max((was == one.id).sum(), (now == found).sum()):
                same[found] = one
    return same
