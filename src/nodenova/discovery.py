"""Phase 2's only entrance for methods that are given no labels."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace

import torch

from nodenova.errors import SettingError
from nodenova.graph import Graph, NewTask
from nodenova.growth import change_of, check_refresh, check_refreshable, is_met, refit_encoder
from nodenova.methods import METHODS, Method
from nodenova.methods.prism import Prism
from nodenova.model.model import Model, Refresh, Stage
from nodenova.nn.encode_cache import encode_rows, shared_passes
from nodenova.nn.seeding import Threads, repeatable, sample
from nodenova.open_world.count import (
    MAX_SAMPLED,
    ClassCountEstimate,
    collect_evidence,
    estimate_count,
)
from nodenova.progress import DISCOVER, Progress, no_progress, reporting_to

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

    The method gets the model and the task, and nothing else: neither type has a field for a label.
    Call it again on the result for a further stage, on the same graph or on one that has grown:
    features are matched by name, and where much has changed the representation is fitted anew.

    Args:
        model: What `fit`, or an earlier `discover`, made.
        task: The graph, the numbers of the unlabelled nodes, whether known classes are among them
            (`mixed`), and how many new classes there are; with num_new=None as many are looked for
            as `count_new` says, and `model.stages[-1].count` keeps what it said.
        method: How to find them; `Prism()` unless given.
        refresh: Whether the representation is fitted anew on the graph of the task, and what is
            known of classes carried over by the nodes that the model is sure of. "auto": where the
            graph has changed much (see `nodenova.growth`) and the encoder is `prism`.
            `model.stages[-1].refresh` says that it was done, why, and by how many nodes.
        before: The graph that the model was made on, if it is at hand: a node with the id of one of
            its nodes is the same, and only such nodes carry classes over.
        seed: The same model, task, method and seed give the same result, bit for bit.
        threads: "auto" for all cores; the result does not depend on it.
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Returns:
        A bigger model: the classes of `model`, and the new ones. Where nothing seems new, the
        classes it had, and one stage more. `model` stays as it was.

    Raises:
        SettingError: The method is none, cannot do a mixed task, or returned another number of
            classes; or the model cannot count, or cannot be refreshed as asked.
        GraphError: The graph has no feature that the model knows, or no names and another number
            of features.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.discover(nova.fit(old), new)
        Model(prism, 4 classes, 2 of them discovered)
    """
    method = Prism() if method is None else method
    if not isinstance(method, Method) or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(
            "a method is a dataclass instance with a discover function, like Sword(); "
            f"got {method!r}"
        )
    name = method_name(method)
    if task.mixed:
        check_mixed(method)
    model, done = _up_to_date(model, task, refresh, before, seed, threads)
    task = replace(task, graph=model.aligned(task.graph))
    count = None
    # One pass is kept for counting and for the method.
    with shared_passes(task.graph, wanted=task.num_new is None), reporting_to(progress, DISCOVER):
        if task.num_new is None:
            count = count_new(model, task, seed=seed, threads=threads)
            task = replace(task, num_new=count.number or None)
        with repeatable(seed, f"discover-{len(model.stages)}", threads):
            grown = _unchanged(model) if task.num_new is None else method.discover(model, task)
    found, before, wanted = len(grown.classes), len(model.classes), task.num_new or 0
    if found != before + wanted:
        raise SettingError(f"{method!r} returned {found} classes for {before} + {wanted}")
    stage = Stage(name, asdict(method), seed, SEES, count=count, mixed=task.mixed, refresh=done)
    return grown.with_last_stage(stage)


def _up_to_date(
    model: Model,
    task: NewTask,
    refresh: bool | str,
    before: Graph | None,
    seed: int,
    threads: Threads,
) -> tuple[Model, Refresh | None]:
    """The model, its representation fitted anew where that is asked for or due; what was done."""
    check_refresh(refresh)
    fit_signature = model.fit_signature
    if refresh is True:
        check_refreshable(model)
    elif refresh is False or fit_signature is None or model.frozen_encoder().spec.trainable:
        return model, None
    if fit_signature is None:
        why = "it was asked for"
    else:
        change = change_of(fit_signature, task.graph, before)
        if refresh is not True and not change.is_much:
            return model, None
        why = change.why()
    return refit_encoder(
        model,
        task.graph,
        why,
        met=None if before is None else is_met(task.graph, before),
        all_new=None if task.mixed else task.ids,
        seed=seed,
        threads=threads,
    )


def count_new(
    model: Model, task: NewTask, *, seed: int = 0, threads: Threads = "auto"
) -> ClassCountEstimate:
    """How many new classes there seem to be among the unlabelled nodes of a task.

    Args:
        model: Phase1Result with the `prism` encoder.
        task: Where every node is new (mixed=False), the answer is at least 1; in a mixture it may
            be 0. Its `num_new` is not looked at.
        seed: The same model, task and seed give the same answer.
        threads: "auto" for all cores; the result does not depend on it.

    Returns:
        Probabilities of 0 to 15 new classes, the likeliest number, and `sentence()`, which says it
        to a person.

    Raises:
        SettingError: The model does not keep what is needed.

    Examples:
        >>> import nodenova as nova
        >>> old, new, _ = nova.split(nova.synthetic(nodes=200, classes=4, words=80), old=[0, 1])
        >>> count = count_new(nova.fit(old), new)
        >>> len(count.probabilities), round(sum(count.probabilities), 6)
        (16, 1.0)
    """
    graph = model.aligned(task.graph)
    g, cells = model.frozen_encoder(), model.cells
    check_countable(g.spec.name, g.spec.trainable)
    if task.mixed and cells is None:
        raise SettingError(
            "this model was saved before models kept where labelled nodes were, so it cannot tell "
            "whether anything is new: fit it again, or give num_new"
        )
    with repeatable(seed, f"count-{len(model.stages)}", threads), torch.no_grad():
        ids = torch.from_numpy(task.ids).to(model.device)
        ids = ids[sample(len(ids), MAX_SAMPLED, ids.device)]
        (z,) = encode_rows(g, graph, ids)
        known = model.memory.classes
        evidence = collect_evidence(g.spec.multirank, known, cells, z, task.mixed, model.lda)
    count = estimate_count(evidence)
    return replace(count, nodes=len(task.ids)).capped(len(task.ids))


def check_mixed(method: Method) -> None:
    """Raise if a method takes every node it is given for new.

    Raises:
        SettingError: It does.
    """
    if not getattr(method, "mixed", False):
        raise SettingError(
            f"{method_name(method)} takes every node it is given for new, and this task is mixed: "
            "give it new nodes only (mixed=False), or use prism"
        )


def check_countable(encoder: str, trainable: bool) -> None:
    """Raise if new classes cannot be counted on an encoder.

    Raises:
        SettingError: It is trained.
    """
    if trainable:
        raise SettingError(
            "the number of new classes can be estimated on the prism encoder only, "
            f"not on {encoder}: give num_new"
        )


def _unchanged(model: Model) -> Model:
    """The model after a stage that found nothing."""
    return model.grown(encoder=model.frozen_encoder(), head=model.head(), memory=model.memory)


def method_name(method: Method) -> str:
    """The short name of a method, as on the command line.

    A user's own method is called by its class.

    Examples:
        >>> method_name(Prism())
        'prism'
    """
    return METHODS.name_of(type(method)) or type(method).__name__
