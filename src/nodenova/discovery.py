"""Phase 2 without labels: discover new classes, and estimate their number."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace
from typing import Any

import torch

from nodenova.errors import SettingError, brief
from nodenova.graph import Graph, NewTask
from nodenova.growth import (
    IN_DOUBT,
    MIN_DOUBT,
    is_met,
    may_refit,
    refit_encoder,
    refit_if_changed,
)
from nodenova.methods import METHODS, Method
from nodenova.methods.prism import Prism
from nodenova.model.model import Model, Refresh, Stage
from nodenova.nn.encode_cache import encode_rows, shared_passes
from nodenova.nn.sampling import batch_size, check_batches
from nodenova.nn.seeding import Threads, repeatable, sample
from nodenova.open_world.count import (
    MAX_SAMPLED,
    ClassCountEstimate,
    collect_evidence,
    estimate_count,
)
from nodenova.progress import DISCOVER, Progress, no_progress, reporting_to
from nodenova.settings import check_arguments

SEES = ("graph", "new_ids")


def discover(
    model: Model,
    task: NewTask,
    method: Method | None = None,
    *,
    refresh: bool | str = "auto",
    before: Graph | None = None,
    seed: int = 0,
    threads: Threads = "auto",
    progress: Progress = no_progress,
) -> Model:
    """Find `task.num_new` new classes among the unlabelled nodes `task.ids`.

    The method gets the model and the task only; neither type has a field for a label. Call it
    again on the result for a further stage, on the same graph or on one that has grown: features
    are matched by name, and if much has changed the representation is refitted.

    Args:
        model: Model that `fit`, or an earlier `discover`, returned.
        task: The graph, the numbers of the unlabelled nodes, whether they may belong to known
            classes (`mixed`), and the number of new classes. With num_new=None `count_new`
            estimates it, and `model.stages[-1].count` has the estimate.
        method: Method that finds them; `Prism()` by default.
        refresh: Whether the representation is refitted on the graph of the task, with classes
            carried over by the nodes that the model is sure of: True, False, or "auto" if the
            graph has changed much, or nodes that came may be of a new class (see
            `nodenova.growth`), and the encoder is `prism`.
            `model.stages[-1].refresh` records it.
        before: Graph that the model was made on, if it is available. Nodes are matched by id, and
            only nodes of this graph carry classes over.
        seed: Random seed; the same model, task, method and seed give the same result, bit for bit.
        threads: Number of threads, or "auto" for all cores; the result does not depend on it.
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Returns:
        A bigger model: the classes of `model` and the new ones. If nothing seems new, it has the
        same classes and one stage more. `model` is not changed.

    Raises:
        SettingError: If the method cannot be used for this task or returned a wrong number of
            classes, or the model cannot count or be refitted.
        GraphError: If the graph has no feature that the model knows, or features without names
            whose number differs.
        NumericsError: If a number became NaN or infinite; it names the term and the epoch.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.discover(nova.fit(old), new)
        Model(prism, 4 classes, 2 of them discovered)
    """
    check_arguments(discover, {**locals(), "method": None})  # a method is looked at below
    method = Prism() if method is None else method
    check_method(method)
    if task.mixed:
        check_mixed(method)
    anchors: dict[str, Any] = {
        "met": None if before is None else is_met(task.graph, before),
        "all_new": None if task.mixed else task.ids,
        "seed": seed,
        "threads": threads,
    }
    model, done = refit_if_changed(model, task.graph, refresh, before=before, **anchors)
    if done is None and task.num_new is None and may_refit(model, task.graph, refresh, before):
        model, done = refit_if_in_doubt(model, task, **anchors)
    return search(model, task, method, done, seed=seed, threads=threads, progress=progress)


def refit_if_in_doubt(
    model: Model, task: NewTask, *, seed: int = 0, **anchors: Any
) -> tuple[Model, Refresh | None]:
    """The model, refitted if no class seems new among what came but one may well be.

    A representation that was fitted without a class hardly shows it, also where its features are
    known. `anchors` as `refit_encoder`.
    """
    if not task.mixed or model.cells is None:
        return model, None
    with shared_passes():
        count = count_new(model, task, seed=seed)
    if count.number or count.p_new < MIN_DOUBT:
        return model, None
    return refit_encoder(model, task.graph, IN_DOUBT, seed=seed, **anchors)


def search(
    model: Model,
    task: NewTask,
    method: Method,
    refresh: Refresh | None = None,
    *,
    seed: int,
    threads: Threads = "auto",
    progress: Progress = no_progress,
) -> Model:
    """`discover` with a model that is up to date; `refresh` is the record of its refit."""
    check_method(method)
    name, settings = method_name(method), asdict(method)  # type: ignore[call-overload]
    check_batches(batch_size(model.frozen_encoder()), method, name)
    task = replace(task, graph=model.aligned(task.graph))
    count = None
    # One pass is kept for counting and for the method.
    with shared_passes(task.graph, wanted=task.num_new is None), reporting_to(progress, DISCOVER):
        if task.num_new is None:
            count = count_new(model, task, seed=seed, threads=threads)
            task = replace(task, num_new=count.number or None)
        with repeatable(seed, f"discover-{len(model.stages)}", threads):
            grown = _add_stage(model) if task.num_new is None else method.discover(model, task)
            grown.check_numbers()
    found, known, wanted = len(grown.classes), len(model.classes), task.num_new or 0
    if found != known + wanted:
        raise SettingError(f"{method!r} returned {found} classes for {known} + {wanted}")
    stage = Stage(name, settings, seed, SEES, count=count, mixed=task.mixed, refresh=refresh)
    return grown.with_last_stage(stage)


def count_new(
    model: Model, task: NewTask, *, seed: int = 0, threads: Threads = "auto"
) -> ClassCountEstimate:
    """Estimate the number of new classes among the unlabelled nodes of a task.

    Args:
        model: Model with the `prism` encoder.
        task: Task whose `num_new` is ignored. If every node is new (mixed=False) the estimate is
            at least 1; in a mixture it may be 0.
        seed: Random seed; the same model, task and seed give the same estimate.
        threads: Number of threads, or "auto" for all cores; the result does not depend on it.

    Returns:
        Probabilities of 0 to 40 new classes, the likeliest number, and `sentence()`.

    Raises:
        SettingError: If the model does not have what is needed.
        NumericsError: If a number became NaN or infinite.

    Examples:
        >>> import nodenova as nova
        >>> old, new, _ = nova.split(nova.synthetic(nodes=200, classes=4, words=80), old=[0, 1])
        >>> count = count_new(nova.fit(old), new)
        >>> len(count.probabilities), round(sum(count.probabilities), 6)
        (41, 1.0)
    """
    check_arguments(count_new, locals())
    graph = model.aligned(task.graph)
    g, cells = model.frozen_encoder(), model.cells
    check_countable(g.spec.name, g.spec.trainable)
    if task.mixed and cells is None:
        raise SettingError(
            "this model was saved by a version that cannot estimate the number of new classes in "
            "a mixture: fit it again, or give num_new"
        )
    with repeatable(seed, f"count-{len(model.stages)}", threads), torch.no_grad():
        ids = torch.from_numpy(task.ids).to(model.device)
        ids = ids[sample(len(ids), MAX_SAMPLED, ids.device)]
        (z,) = encode_rows(g, graph, ids)
        known = model.memory.classes
        evidence = collect_evidence(g.spec.multirank, known, cells, z, task.mixed, model.lda)
    count = estimate_count(evidence)
    return replace(count, nodes=len(task.ids)).capped(len(task.ids))


def check_method(method: object) -> None:
    """Raise unless it is an instance of a method."""
    if not isinstance(method, Method) or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(
            "a method is a dataclass instance with a discover function, like Sword(); "
            f"got {brief(method)}"
        )


def check_mixed(method: Method) -> None:
    """Raise if a method assumes that all nodes of a task are new."""
    if not getattr(method, "mixed", False):
        raise SettingError(
            f"{method_name(method)} assumes that all nodes are new, and this task is mixed: "
            "give it new nodes only (mixed=False), or use prism"
        )


def check_countable(encoder: str, trainable: bool) -> None:
    """Raise if new classes cannot be counted on an encoder."""
    if trainable:
        raise SettingError(
            "the number of new classes can be estimated on the prism encoder only, "
            f"not on {encoder}: give num_new"
        )


def _add_stage(model: Model) -> Model:
    """The model after a stage that found nothing."""
    return model.grown(encoder=model.frozen_encoder(), head=model.head(), memory=model.memory)


def method_name(method: Method) -> str:
    """Short name of a method, as on the command line; the class name of a user's own."""
    return METHODS.name_of(type(method)) or type(method).__name__
