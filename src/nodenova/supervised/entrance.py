"""Phase 2's door for methods that are given labels."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass

import numpy as np

from nodenova.data.labels import GivenTask
from nodenova.errors import SettingError, one_of
from nodenova.model.model import Model, Stage
from nodenova.nn.seeding import repeatable
from nodenova.nn.training import Watcher, watched_by
from nodenova.supervised import LABELLED, NEEDS, LabelledMethod

WORDS = {
    "new_labels": "the labels of the new nodes",
    "old_nodes": "old nodes",
    "old_labels": "the labels of old nodes",
    "validation": "validation nodes of old and new classes with their labels",
}


def teach(
    model: Model,
    given: GivenTask,
    method: LabelledMethod,
    *,
    seed: int = 0,
    threads: int = 1,
    watcher: Watcher | None = None,
) -> Model:
    """Learn `given.num_new` new classes from what the method needs, and return a bigger model: `discover` with labels.

    The method gets of `given` what its `needs` names, and the rest as None; the stage's `sees` says what that was.
    The same model, task, method and seed give the same result bit for bit.
    """
    if not isinstance(method, LabelledMethod) or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(f"a method with labels is a dataclass instance with needs and learn, like Gem(); got {method!r}")
    name = {cls: name for name, cls in LABELLED.items()}.get(type(method), type(method).__name__)
    handed = handed_over(given, method.needs, name)
    model.check(given.graph)
    if model.columns != tuple(range(len(model.classes))):
        raise SettingError(
            "methods with labels count classes as they were learnt: not after merging, splitting or rejecting"
        )
    n_old, found = len(model.classes), 0 if handed.y is None else len(np.unique(handed.y))
    if handed.y is not None and (found != given.num_new or handed.y.max() >= given.num_new):
        raise SettingError(f"num_new is {given.num_new}, but the labels of the new nodes name {found} classes")
    if handed.old_y is not None and handed.old_y.max() >= n_old:
        raise SettingError(f"an old node has class {handed.old_y.max()}, but the model knows {n_old} classes")
    with repeatable(seed, f"teach-{len(model.stages)}", threads), watched_by(watcher):
        grown = method.learn(model, handed)
    if len(grown.classes) != n_old + given.num_new:
        raise SettingError(f"{method!r} returned {len(grown.classes)} classes for {n_old} + {given.num_new}")
    sees = ("graph", "new_ids", *(need for need in NEEDS if need in method.needs))
    return grown.with_last_stage(Stage(name, asdict(method), seed, sees))


def handed_over(given: GivenTask, needs: tuple[str, ...], name: str) -> GivenTask:
    """The task without what was not asked for; an error if something was asked for that is not there."""
    parts = {"new_labels": given.y, "old_nodes": given.old_ids, "old_labels": given.old_y, "validation": given.val_ids}
    for need in needs:
        if need not in parts:
            raise one_of(f"need of {name}", need, NEEDS)
        if parts[need] is None:
            raise SettingError(f"{name} needs {WORDS[need]}, which the task does not give")
    if "old_labels" in needs and "old_nodes" not in needs:
        raise SettingError(f"{name} needs the labels of old nodes, and must then need old_nodes too")
    y, old_ids, old_y, val_ids = (parts[need] if need in needs else None for need in NEEDS)
    return GivenTask(
        given.graph, given.ids, given.num_new, y, old_ids, old_y, val_ids, given.val_y if val_ids is not None else None
    )
