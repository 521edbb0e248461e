"""Phase 2's entrance for methods that are given labels."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace

import numpy as np

from nodenova.data.labels import LabelledNewTask
from nodenova.errors import SettingError, one_of
from nodenova.model.model import Model, Stage
from nodenova.nn.seeding import Threads, repeatable
from nodenova.progress import DISCOVER, Progress, no_progress, reporting_to
from nodenova.supervised import LABELLED, NEEDS, LabelledMethod

WORDS = {
    "new_labels": "the labels of the new nodes",
    "old_nodes": "old nodes",
    "old_labels": "the labels of old nodes",
    "validation": "validation nodes of old and new classes with their labels",
}


def discover_supervised(
    model: Model,
    given: LabelledNewTask,
    method: LabelledMethod,
    *,
    seed: int = 0,
    threads: Threads = "auto",
    progress: Progress = no_progress,
) -> Model:
    """`discover` with labels: learn `given.num_new` new classes from what the method needs.

    The method gets of `given` what its `needs` names, and the rest as None; the stage's `sees` says
    what that was. The same model, task, method and seed give the same result bit for bit.

    Args:
        model: Of the classes known so far: what `fit` returned, or an earlier stage.
        given: The graph, the new nodes, and the labels: what `labelled_new_task` made.
        method: One of `LABELLED`, or another `LabelledMethod`.
        seed: Of every random number in it.
        threads: "auto" for all cores; the result does not depend on it.
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Returns:
        A model that knows the new classes too.

    Raises:
        SettingError: The method is none, or needs what `given` does not give; or labels do not fit
            the model or `given.num_new`.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, _, exam = nova.split(graph, [0, 1])
        >>> given = nova.labelled_new_task(graph, [0, 1])
        >>> gem = nova.LABELLED["gem"](epochs=5)
        >>> model = nova.discover_supervised(nova.fit(old, "gcn", epochs=20), given, gem)
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> model.stages[-1].sees
        ('graph', 'new_ids', 'new_labels', 'old_nodes', 'old_labels')
    """
    is_method = isinstance(method, LabelledMethod)
    if not is_method or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(
            "a method with labels is a dataclass instance with needs and learn, like GEM(); "
            f"got {method!r}"
        )
    name = LABELLED.name_of(type(method)) or type(method).__name__
    given = replace(given, graph=model.aligned(given.graph))
    handed = handed_over(given, method.needs, name)
    if model.column_class_ids != tuple(range(len(model.classes))):
        raise SettingError(
            "methods with labels count classes as they were learned: "
            "not after merging, splitting or rejecting"
        )
    n_old = len(model.classes)
    found = 0 if handed.y is None else len(np.unique(handed.y))
    if handed.y is not None and (found != given.num_new or handed.y.max() >= given.num_new):
        raise SettingError(
            f"num_new is {given.num_new}, but the labels of the new nodes name {found} classes"
        )
    if handed.old_y is not None and handed.old_y.max() >= n_old:
        raise SettingError(
            f"an old node has class {handed.old_y.max()}, but the model knows {n_old} classes"
        )
    # The word is part of the seed: another one would give other results.
    with repeatable(seed, f"teach-{len(model.stages)}", threads), reporting_to(progress, DISCOVER):
        grown = method.learn(model, handed)
    if len(grown.classes) != n_old + given.num_new:
        raise SettingError(
            f"{method!r} returned {len(grown.classes)} classes for {n_old} + {given.num_new}"
        )
    sees = ("graph", "new_ids", *(need for need in NEEDS if need in method.needs))
    return grown.with_last_stage(Stage(name, asdict(method), seed, sees))


def handed_over(given: LabelledNewTask, needs: tuple[str, ...], name: str) -> LabelledNewTask:
    """The task without what was not asked for; an error if it was asked for and is not there."""
    parts = {
        "new_labels": given.y,
        "old_nodes": given.old_ids,
        "old_labels": given.old_y,
        "validation": given.val_ids,
    }
    for need in needs:
        if need not in parts:
            raise one_of(f"need of {name}", need, NEEDS)
        if parts[need] is None:
            raise SettingError(f"{name} needs {WORDS[need]}, which the task does not give")
    if "old_labels" in needs and "old_nodes" not in needs:
        raise SettingError(
            f"{name} needs the labels of old nodes, and must then need old_nodes too"
        )
    y, old_ids, old_y, val_ids = (parts[need] if need in needs else None for need in NEEDS)
    return LabelledNewTask(
        given.graph,
        given.ids,
        given.num_new,
        y,
        old_ids,
        old_y,
        val_ids,
        given.val_y if val_ids is not None else None,
    )
