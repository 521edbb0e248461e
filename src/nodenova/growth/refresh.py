"""A representation fitted anew on a grown graph, and what is known of classes carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.growth.carriers import MIN_MEAN, Carriers, find_carriers
from nodenova.model.classes import NodeClass
from nodenova.model.fitted_on import FittedOn, with_features
from nodenova.model.model import Model
from nodenova.model.stage import Refresh
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.passes import encode_rows
from nodenova.nn.seeding import Threads, repeatable, sample
from nodenova.nn.training import frozen
from nodenova.prism.calibration import calibrate_temperature, learn_view_scale
from nodenova.prism.cells import MAX_NODES, Cells
from nodenova.prism.classifier import lda_head, refit_on_all_nodes, refit_rows
from nodenova.prism.encoder import PrismEncoder


def check_refreshable(model: Model) -> None:
    """Raise if the representation of a model cannot be fitted anew.

    Raises:
        SettingError: Its encoder is trained.
    """
    spec = model.frozen_encoder().spec
    if spec.trainable:
        raise SettingError(
            f"the representation of {spec.name} is trained, and can be fitted anew with labels "
            "only: fit again, or give refresh=False (--refresh never)"
        )


def refreshed(
    model: Model,
    graph: Graph,
    why: str,
    *,
    met: np.ndarray | None = None,
    all_new: np.ndarray | None = None,
    told: np.ndarray | None = None,
    names: Mapping[int, str] | None = None,
    seed: int = 0,
    threads: Threads = "auto",
) -> tuple[Model, Refresh]:
    """The model with its encoder fitted anew on a grown graph, with all the features that it has.

    Statistics of the classes are taken anew from the nodes that the model was sure of before, and
    from labelled ones. Ids, names, kinds, decisions and stages of the classes stay, and so do the
    weights of views and the temperature: those were learned from labels, and sure nodes are easier
    than most. A class that no node stands for keeps its id and name, and gets no node.

    Args:
        model: Of the `prism` encoder; it stays as it is.
        graph: The grown graph.
        why: What has changed, in words.
        met: (N,) which nodes were there before; None where nobody knows.
        all_new: Numbers of nodes that are said to be new.
        told: (N,) ids of classes by the user's own labels, -1 for none.
        names: What classes are called that come with these labels, by id.
        seed: Of the cells.
        threads: "auto" for all cores; the result does not depend on it.

    Returns:
        The model, and what was done. It has no stage more: `Stage.refresh` of the next phase is the
        place for that.

    Raises:
        SettingError: The encoder is trained, or no node of any class can be told.

    Examples:
        >>> import nodenova as nova
        >>> whole = nova.synthetic(nodes=300, classes=3, seed=0)
        >>> early = np.flatnonzero(np.arange(300) < 200)
        >>> part = nova.LabelledGraph(
        ...     whole.graph.subgraph(early), whole.y[early], whole.class_names)
        >>> model = nova.fit(nova.split(part, [0, 1])[0])
        >>> again, done = refreshed(model, whole.graph, "100 nodes came")
        >>> again.fitted_on.nodes, again.class_names == model.class_names
        (300, True)
    """
    check_refreshable(model)
    graph = _with_seen_features(graph)
    carriers = find_carriers(model, graph, met=met, all_new=all_new, told=told)
    counts = carriers.counts
    if (counts >= MIN_MEAN).sum() < 2:
        raise SettingError(
            "no two classes of the model have nodes in this graph that it is sure of, so nothing "
            "can be carried over: is it the right graph? (refresh=False, --refresh never)"
        )
    with repeatable(seed, f"refresh-{len(model.stages)}", threads), torch.no_grad():
        encoder, head, memory, cells = _fitted(model, graph, carriers)
    further = _classes_of_labels(model, told, names or {})
    owner = (*model.column_class_ids, *(c.id for c in further))
    classes = tuple(sorted((*model.classes, *further), key=lambda c: (c.stage, c.id)))
    done = replace(
        model,
        _encoder=frozen(encoder),
        _head=frozen(head),
        _novel_head=None,
        _memory=memory,
        _cells=cells,
        classes=classes,
        column_class_ids=owner,
        fitted_on=FittedOn.of(graph),
    )
    each = {c.id: int(counts[[of == c.id for of in owner]].sum()) for c in classes}
    num_told = 0 if told is None else int((told >= 0).sum())
    return done, Refresh(why, tuple(each.items()), num_told, carriers.notes)


def _with_seen_features(graph: Graph) -> Graph:
    """Without features that no node has: words that are gone are unknown when they come back."""
    names = graph.feature_names
    if names is None:
        return graph
    there = np.asarray(abs(graph.x).sum(axis=0)).ravel() > 0
    return with_features(
        graph, tuple(name for name, is_in in zip(names, there, strict=True) if is_in)
    )


def _fitted(
    model: Model, graph: Graph, carriers: Carriers
) -> tuple[PrismEncoder, UnitLinearHead, Memory, Cells]:
    """Encoder, head, memory and cells, as phase 1 computes them, on the nodes that carry."""
    device, lda, was = model.device, model.lda, model.memory.classes
    counts = carriers.counts
    there = np.flatnonzero(counts >= MIN_MEAN)
    kept = np.isin(carriers.columns, there)
    ids = torch.from_numpy(carriers.ids[kept]).to(device)
    y = torch.from_numpy(carriers.columns[kept]).to(device)
    compact = torch.from_numpy(np.searchsorted(there, carriers.columns[kept])).to(device)
    views, z = PrismEncoder.fit_rows(graph, ids, device)
    encoder, z = views.whitened(z, compact)
    multirank, n = encoder.spec.multirank, carriers.num_columns
    memory = Memory.of(z, y, n, multirank)
    if len(was.view_scale) == multirank.views:
        scale, temperature = was.view_scale, float(was.temperature)
    else:  # a model of a version that had other views
        prior = encoder.spec.prior_weight
        scale = learn_view_scale(multirank, z, compact, len(there), prior, lda)
        temperature = calibrate_temperature(multirank, z, compact, len(there), scale, lda)
    classes = memory.classes.with_view_scale(scale).with_temperature(temperature)
    at, of = (torch.from_numpy(a).to(device) for a in (carriers.sample, carriers.sample_columns))
    some = sample(graph.num_nodes, MAX_NODES, device)
    z_all, every, z_at = encode_rows(frozen(encoder), graph, refit_rows(graph), some, at)
    head = refit_on_all_nodes(
        [lda_head(multirank, classes, classes, temperature, lda)], z_all, scale
    )
    cells = Cells.of(multirank, classes, every, z_at, of, lda)
    return encoder, head, Memory(memory.replay, classes), cells


def _classes_of_labels(
    model: Model, told: np.ndarray | None, names: Mapping[int, str]
) -> list[NodeClass]:
    """Classes that the user's labels bring: known ones, whatever stage it is."""
    if told is None:
        return []
    known = {c.id for c in model.classes}
    further = sorted(set(told[told >= 0].tolist()) - known)
    return [NodeClass(class_id, names[class_id], 0) for class_id in further]
