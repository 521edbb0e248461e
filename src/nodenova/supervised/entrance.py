"""Phase 2 for methods that are given labels."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace

import numpy as np

from nodenova.data.labels import LabelledNewTask
from nodenova.errors import SettingError, one_of
from nodenova.model.model import Model, Stage
from nodenova.nn.sampling import batch_size, check_batches
from nodenova.nn.seeding import Threads, repeatable
from nodenova.progress import DISCOVER, Progress, no_progress, reporting_to
from nodenova.settings import check_arguments
from nodenova.supervised import LABELLED, NEEDS, LabelledMethod

WORDS = {
    "new_labels": "the labels of the new nodes",
    "old_nodes": "old nodes",
    "old_labels": "the labels of old nodes",
    "validation": "validation nodes of old and new classes with their labels",
}


def discover_supervised(
    model: Model,
    task: LabelledNewTask,
    method: LabelledMethod,
    *,
    seed: int = 0,
    threads: Threads = "auto",
    progress: Progress = no_progress,
) -> Model:
    """Learn `task.num_new` new classes with a method that is given labels.

    The method gets the parts of `task` that its `needs` names; the others are None. The stage
    records them in `sees`. The same model, task, method and seed give the same result bit for bit.

    Args:
        model: Model of the classes known so far, from `fit` or an earlier stage.
        task: Graph, new nodes and labels, from `labelled_new_task`.
        method: Instance of a class in `LABELLED`, or another `LabelledMethod`.
        seed: Seed of every random number in phase 2.
        threads: Number of threads, "auto" for all cores; the result does not depend on it.
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Returns:
        A model of the old and the new classes.

    Raises:
        SettingError: If `method` is not a method, if it needs a part that `task` lacks, or if
            labels contradict the model or `task.num_new`.
        NumericsError: If a number became NaN or infinite; it names the term and the epoch.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, _, exam = nova.split(graph, [0, 1])
        >>> task = nova.labelled_new_task(graph, [0, 1])
        >>> gem = nova.LABELLED["gem"](epochs=5)
        >>> model = nova.discover_supervised(nova.fit(old, "gcn", epochs=20), task, gem)
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> model.stages[-1].sees
        ('graph', 'new_ids', 'new_labels', 'old_nodes', 'old_labels')
    """
    others = {name: value for name, value in locals().items() if name != "method"}
    check_arguments(discover_supervised, others)
    is_method = isinstance(method, LabelledMethod)
    if not is_method or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(
            "a method with labels is a dataclass instance with needs and learn, like GEM(); "
            f"got {method!r}"
        )
    name = LABELLED.name_of(type(method)) or type(method).__name__
    check_batches(batch_size(model.frozen_encoder()), method, name)
    task = replace(task, graph=model.aligned(task.graph))
    visible = select_needs(task, method.needs, name)
    if model.column_class_ids != tuple(range(len(model.classes))):
        raise SettingError(
            "methods with labels need the classes of the original model: "
            "use it before merging, splitting or rejecting classes"
        )
    n_old = len(model.classes)
    found = 0 if visible.y is None else len(np.unique(visible.y))
    if visible.y is not None and (found != task.num_new or visible.y.max() >= task.num_new):
        raise SettingError(
            f"num_new is {task.num_new}, but the labels of the new nodes name {found} classes"
        )
    if visible.old_y is not None and visible.old_y.max() >= n_old:
        raise SettingError(
            f"an old node has class {visible.old_y.max()}, but the model knows {n_old} classes"
        )
    # The word is part of the seed: another one would give other results.
    with repeatable(seed, f"teach-{len(model.stages)}", threads), reporting_to(progress, DISCOVER):
        grown = method.learn(model, visible).check_numbers()
    if len(grown.classes) != n_old + task.num_new:
        raise SettingError(
            f"{method!r} returned {len(grown.classes)} classes for {n_old} + {task.num_new}"
        )
    sees = ("graph", "new_ids", *(need for need in NEEDS if need in method.needs))
    return grown.with_last_stage(Stage(name, asdict(method), seed, sees))


def select_needs(task: LabelledNewTask, needs: tuple[str, ...], name: str) -> LabelledNewTask:
    """Return the task with the parts in `needs` only; raise if one of them is missing."""
    parts = {
        "new_labels": task.y,
        "old_nodes": task.old_ids,
        "old_labels": task.old_y,
        "validation": task.val_ids,
    }
    for need in needs:
        if need not in parts:
            raise one_of(f"need of {name}", need, NEEDS)
        if parts[need] is None:
            raise SettingError(f"{name} needs {WORDS[need]}, which the task does not have")
    if "old_labels" in needs and "old_nodes" not in needs:
        raise SettingError(
            f"{name} needs the labels of old nodes, and must then need old_nodes too"
        )
    y, old_ids, old_y, val_ids = (parts[need] if need in needs else None for need in NEEDS)
    val_y = task.val_y if val_ids is not None else None
    part = (task.graph, task.ids, task.num_new)
    return LabelledNewTask(*part, y, old_ids, old_y, val_ids, val_y)
