"""A representation refitted on a graph that has grown, with its classes carried over.

Classes are carried over by anchor nodes: nodes that the model is sure of, and labelled ones. Nodes
that are new, look new, or have unusually many unknown features are no anchors, since a model can be
sure of nodes of a class that it has never met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodenova.display import percent
from nodenova.encoders.prism.calibration import calibrate_temperature, learn_view_scale
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.lda import lda_head, refit_on_all_nodes, refit_rows
from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.model.classes import NodeClass
from nodenova.model.model import FitSignature, Model, Refresh, with_features
from nodenova.nn.class_memory import Memory
from nodenova.nn.encode_cache import encode, encode_rows
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.seeding import Threads, repeatable, sample
from nodenova.nn.training import freeze
from nodenova.open_world.novelty import MAX_NODES, Partition, cell_novelty, probability_of_new

MAX_UNKNOWN = 0.05  # share of the features' mass in features the model does not know
MAX_NEW = 1 / 3  # share of nodes, or of edges, that are new
MIN_DOUBT = 0.3  # probability of a new class from which on "none" is not believed without a refit
REFRESH = ("auto", True, False)
IN_DOUBT = "the nodes that came may be of a class it does not know"
ON_REQUEST = "it was requested"


@dataclass(frozen=True)
class Change:
    """How a graph differs from the one that an encoder was fitted on.

    Attributes:
        unknown: Share of the sum of all absolute feature values that is in unknown features.
        nodes: Share of nodes that are new.
        edges: Share of edges that are new.
        matched: Whether nodes were matched by their ids; otherwise `nodes` and `edges` follow from
            how many there are.

    Examples:
        >>> Change(unknown=0.09, nodes=0.2, edges=0.2, matched=True).why()
        '9% of what the nodes have is in features the model did not know'
        >>> Change(unknown=0.0, nodes=0.2, edges=0.2, matched=True).is_much
        False
    """

    unknown: float
    nodes: float
    edges: float
    matched: bool

    @property
    def is_much(self) -> bool:
        """Whether the representation should be refitted."""
        return self.unknown > MAX_UNKNOWN or max(self.nodes, self.edges) > MAX_NEW

    def why(self) -> str:
        """The change in words."""
        what = (
            f"{percent(self.unknown)} of what the nodes have is in features the model did not know"
        )
        if self.unknown > MAX_UNKNOWN:
            return what
        share, name = max((self.nodes, "nodes"), (self.edges, "edges"))
        grown = f"{percent(share)} of the {name} are new"
        if not self.matched:
            more = f"{percent(share / (1 - share))} more {name}" if share < 1 else f"{name} now"
            grown = f"the graph has {more}"
        return grown if share > MAX_NEW else f"{ON_REQUEST} ({what}, {grown})"


def change_of(fit_signature: FitSignature, graph: Graph, before: Graph | None = None) -> Change:
    """Change of a graph since an encoder was fitted; nodes are matched by id with `before`.

    Examples:
        >>> import nodenova as nova
        >>> whole = nova.synthetic(nodes=200, classes=4, seed=0).graph
        >>> part = whole.subgraph(np.arange(150))
        >>> change_of(FitSignature.of(part), whole, part).nodes
        0.25
    """
    mass = masses(graph)
    unknown = float(unknown_shares(fit_signature, graph) @ mass / max(mass.sum(), 1e-12))
    met = None if before is None else is_met(graph, before)
    if before is None or met is None or not met.any():
        was = (fit_signature.nodes, fit_signature.edges)
        sizes = zip(was, (graph.num_nodes, graph.num_edges), strict=True)
        nodes, edges = (max(0.0, 1 - old / now) if now else 0.0 for old, now in sizes)
        return Change(unknown, nodes, edges, matched=False)
    return Change(unknown, 1 - float(met.mean()), _new_edges(graph, before), matched=True)


def masses(graph: Graph) -> np.ndarray:
    """(N,) sum of the absolute values of each node's features."""
    return np.asarray(abs(graph.x).sum(axis=1), dtype=np.float64).ravel()


def unknown_shares(fit_signature: FitSignature, graph: Graph) -> np.ndarray:
    """(N,) share of each node's mass in features that an encoder does not know, by name."""
    if fit_signature.feature_names is None or graph.feature_names is None:
        return np.zeros(graph.num_nodes)
    known = set(fit_signature.feature_names)
    unknown = np.array([name not in known for name in graph.feature_names])
    x = abs(graph.x)
    part = sp.csr_array(x) @ unknown if sp.issparse(x) else x @ unknown
    return np.asarray(part, dtype=np.float64) / np.maximum(masses(graph), 1e-12)


def is_met(graph: Graph, before: Graph) -> np.ndarray:
    """(N,) which nodes were in an earlier graph, by their ids as texts."""
    return np.isin(graph.node_ids.astype(str), before.node_ids.astype(str))


def _new_edges(graph: Graph, before: Graph) -> float:
    """Share of edges that an earlier graph does not have."""
    if not graph.num_edges:
        return 0.0
    number = {node: i for i, node in enumerate(before.node_ids.astype(str).tolist())}
    was = np.array([number.get(node, -1) for node in graph.node_ids.astype(str).tolist()])
    ends = was[graph.edge_index]
    keys = ends[0] * before.num_nodes + ends[1]
    there = (ends >= 0).all(axis=0)
    old = before.edge_index[0] * before.num_nodes + before.edge_index[1]
    return 1 - float((there & np.isin(keys, old)).mean())


def check_refresh(refresh: object) -> None:
    """Raise unless `refresh` is "auto", True or False."""
    if not any(refresh is known or refresh == known == "auto" for known in REFRESH):
        raise SettingError(f'refresh is "auto", True or False, not {refresh!r}')


SURE = 0.7  # probability from which on the model is sure of a node
LOOKS_NEW = 0.5  # chance from which on a node looks new, if it is not known which nodes are
MIN_CARRIERS = 5  # per class; if fewer are sure, the likeliest others are taken
MIN_MEAN = 2  # nodes that a class needs


@dataclass(frozen=True, eq=False)
class AnchorNodes:
    """Anchor nodes of a grown graph, and the column of the joint head that each stands for."""

    ids: np.ndarray  # (n,) ascending: nodes that the statistics of classes are computed from
    columns: np.ndarray  # (n,) their columns; those of classes that come with labels are last
    sample: np.ndarray  # (m,) ascending: a fair sample of the known classes, sure or not
    sample_columns: np.ndarray  # (m,) their columns
    num_columns: int  # number of columns, with those that come with labels
    notes: tuple[str, ...]  # a sentence on each class with hardly any anchor node

    @property
    def counts(self) -> np.ndarray:
        """(columns,) number of anchor nodes of each."""
        return np.bincount(self.columns, minlength=self.num_columns)


@torch.no_grad()
def find_anchor_nodes(
    model: Model,
    graph: Graph,
    *,
    met: np.ndarray | None = None,
    all_new: np.ndarray | None = None,
    label_ids: np.ndarray | None = None,
) -> AnchorNodes:
    """Anchor nodes of a grown graph; at least the labelled ones.

    `met` (N,): nodes of the earlier graph; if None, nodes that look new are no anchors. `all_new`:
    numbers of nodes named as new. `label_ids` (N,): class ids of labels, -1 for none; an id that
    the model does not have is that of a class which comes with its labels.
    """
    class_ids = [c.id for c in model.classes]
    logits = torch.from_numpy(model._run_head(graph, lambda columns: columns))
    p = model._by_class(logits).softmax(dim=1).numpy()
    best = p.argmax(axis=1)
    column = _columns(model, logits, np.array(class_ids)[best])
    may = _may_carry(model, graph, met)
    if all_new is not None:
        may[all_new] = False
    num_columns = model.num_columns
    if label_ids is not None:
        labelled = label_ids >= 0
        further = sorted(set(label_ids[labelled].tolist()) - set(class_ids))
        known = labelled & np.isin(label_ids, class_ids)
        column[known] = _columns(model, logits[torch.from_numpy(known)], label_ids[known])
        for number, class_id in enumerate(further):
            column[label_ids == class_id] = num_columns + number
        num_columns += len(further)
        may |= labelled
    probability = p.max(axis=1)
    sure = may & (probability >= SURE)
    if label_ids is not None:
        sure |= label_ids >= 0
    notes = []
    for c in model.classes:
        mine = [j for j, of in enumerate(model.column_class_ids) if of == c.id]
        of_class = np.isin(column, mine)
        if (sure & of_class).sum() < MIN_CARRIERS:
            others = np.flatnonzero(may & of_class & ~sure)
            likely = others[np.argsort(-probability[others], kind="stable")]
            lacking = MIN_CARRIERS - int((sure & of_class).sum())
            sure[likely[:lacking]] = True
            notes.append(_note(c.id, c.name, int((sure & of_class).sum())))
    ids, sample = np.flatnonzero(sure), np.flatnonzero(may)
    return AnchorNodes(ids, column[ids], sample, column[sample], num_columns, tuple(notes))


def _note(class_id: int, name: str, count: int) -> str:
    title = f"class {class_id} ({name})"
    if count < MIN_MEAN:
        return f"{title}: the grown graph has no node of it, so it will hardly be recognized again"
    return f"{title}: the grown graph has only {count} nodes of it, and not all of them are sure"


def _columns(model: Model, logits: Tensor, of: np.ndarray) -> np.ndarray:
    """(n,) likeliest column of each node among those of its class."""
    owner = np.array(model.column_class_ids)
    allowed = torch.from_numpy(owner[None] == of[:, None]).to(logits.device)
    return logits.masked_fill(~allowed, -torch.inf).argmax(dim=1).cpu().numpy()


def _may_carry(model: Model, graph: Graph, met: np.ndarray | None) -> np.ndarray:
    """(N,) nodes that seem to be of a known class, judged without labels."""
    may = np.ones(graph.num_nodes, dtype=bool) if met is None else met.copy()
    if model.fit_signature is not None:
        unknown = unknown_shares(model.fit_signature, graph)
        may &= unknown <= unknown.mean() + 1e-9
    cells, known = model.cells, model.memory.classes
    if met is None and cells is not None:
        multirank = model.frozen_encoder().spec.multirank
        z = encode(model.frozen_encoder(), model.aligned(graph))
        chance = probability_of_new(cell_novelty(multirank, known, cells, model.lda, z))
        may &= chance < LOOKS_NEW
    return may


def check_refreshable(model: Model) -> None:
    """Raise if the encoder of a model is trained: it cannot be refitted without labels."""
    spec = model.frozen_encoder().spec
    if spec.trainable:
        raise SettingError(
            f"the representation of {spec.name} is trained, and can be refitted with labels only: "
            "fit again, or give refresh=False (--refresh never)"
        )


def refit_if_changed(
    model: Model,
    graph: Graph,
    refresh: bool | str = "auto",
    *,
    before: Graph | None = None,
    names: Mapping[int, str] | None = None,
    **anchors: Any,
) -> tuple[Model, Refresh | None]:
    """The model, refitted if `refresh` or the change since `before` asks for it, and what was done.

    `names` are those of classes that come with labels, by id; `anchors` as `refit_encoder`.
    """
    check_refresh(refresh)
    if names:
        listed = ", ".join(map(repr, names.values()))
        if refresh is False:
            raise SettingError(
                f"labels name classes that the earlier run does not have ({listed}): the "
                "representation must be refitted, which refresh=False (--refresh never) forbids"
            )
        check_refreshable(model)
        why = f"labels name classes that it did not know ({listed})"
        return refit_encoder(model, graph, why, names=names, **anchors)
    if refresh is True:
        check_refreshable(model)
    elif not refresh or model.fit_signature is None or model.frozen_encoder().spec.trainable:
        return model, None
    if model.fit_signature is None:
        return refit_encoder(model, graph, ON_REQUEST, **anchors)
    change = change_of(model.fit_signature, graph, before)
    if refresh is not True and not change.is_much:
        return model, None
    return refit_encoder(model, graph, change.why(), **anchors)


def may_refit(model: Model, graph: Graph, refresh: bool | str, before: Graph | None = None) -> bool:
    """Whether the model may be refitted though the graph has changed little: if nodes came."""
    if refresh != "auto" or model.fit_signature is None or model.frozen_encoder().spec.trainable:
        return False
    return change_of(model.fit_signature, graph, before).nodes > 0


def refit_encoder(
    model: Model,
    graph: Graph,
    why: str,
    *,
    met: np.ndarray | None = None,
    all_new: np.ndarray | None = None,
    label_ids: np.ndarray | None = None,
    names: Mapping[int, str] | None = None,
    seed: int = 0,
    threads: Threads = "auto",
) -> tuple[Model, Refresh]:
    """The model with its `prism` encoder refitted on a grown graph, and what was done.

    Statistics of the classes are computed again from anchor nodes (see `find_anchor_nodes`). Ids,
    names, kinds, decisions and stages of classes stay. So do the weights of views and the
    temperature: they were learned from labels, and sure nodes are easier than most. A class without
    anchor nodes keeps its id and name, and gets no node. The model has no further stage:
    `Stage.refresh` of the next phase records what was done.
    """
    check_refreshable(model)
    graph = _with_seen_features(graph)
    anchors = find_anchor_nodes(model, graph, met=met, all_new=all_new, label_ids=label_ids)
    counts = anchors.counts
    if (counts >= MIN_MEAN).sum() < 2:
        raise SettingError(
            "the model is sure of no node of two classes in this graph, so no class can be carried "
            "over: is it the right graph? Otherwise give refresh=False (--refresh never)"
        )
    with repeatable(seed, f"refresh-{len(model.stages)}", threads), torch.no_grad():
        encoder, head, memory, cells = _fit_parts(model, graph, anchors)
    further = _classes_of_labels(model, label_ids, names or {})
    owner = (*model.column_class_ids, *(c.id for c in further))
    classes = tuple(sorted((*model.classes, *further), key=lambda c: (c.stage, c.id)))
    done = replace(
        model,
        _encoder=freeze(encoder),
        _head=freeze(head),
        _novel_head=None,
        _memory=memory,
        _cells=cells,
        classes=classes,
        column_class_ids=owner,
        fit_signature=FitSignature.of(graph),
    )
    each = {c.id: int(counts[[of == c.id for of in owner]].sum()) for c in classes}
    num_labels = 0 if label_ids is None else int((label_ids >= 0).sum())
    return done, Refresh(why, tuple(each.items()), num_labels, anchors.notes)


def _with_seen_features(graph: Graph) -> Graph:
    """The graph without features that no node has: they count as unknown if they come back."""
    names = graph.feature_names
    if names is None:
        return graph
    there = np.asarray(abs(graph.x).sum(axis=0)).ravel() > 0
    return with_features(graph, tuple(np.array(names, dtype=object)[there]))


def _fit_parts(
    model: Model, graph: Graph, anchors: AnchorNodes
) -> tuple[PrismEncoder, UnitLinearHead, Memory, Partition]:
    """Encoder, head, memory and cells as phase 1 computes them, on the anchor nodes."""
    device, lda, was = model.device, model.lda, model.memory.classes
    counts = anchors.counts
    there = np.flatnonzero(counts >= MIN_MEAN)
    kept = np.isin(anchors.columns, there)
    ids = torch.from_numpy(anchors.ids[kept]).to(device)
    y = torch.from_numpy(anchors.columns[kept]).to(device)
    compact = torch.from_numpy(np.searchsorted(there, anchors.columns[kept])).to(device)
    views, z = PrismEncoder.fit_rows(graph, ids, device)
    encoder, z = views.whiten(z, compact)
    multirank, n = encoder.spec.multirank, anchors.num_columns
    memory = Memory.of(z, y, n, multirank)
    if len(was.view_scale) == multirank.views:
        scale, temperature = was.view_scale, float(was.temperature)
    else:  # a model of a version with other views
        prior = encoder.spec.prior_weight
        scale = learn_view_scale(multirank, z, compact, len(there), prior, lda)
        temperature = calibrate_temperature(multirank, z, compact, len(there), scale, lda)
    classes = memory.classes.with_view_scale(scale).with_temperature(temperature)
    at, of = (torch.from_numpy(a).to(device) for a in (anchors.sample, anchors.sample_columns))
    some = sample(graph.num_nodes, MAX_NODES, device)
    z_all, every, z_at = encode_rows(freeze(encoder), graph, refit_rows(graph), some, at)
    head = refit_on_all_nodes(
        [lda_head(multirank, classes, classes, temperature, lda)], z_all, scale
    )
    cells = Partition.of(multirank, classes, every, z_at, of, lda)
    return encoder, head, Memory(memory.replay, classes), cells


def _classes_of_labels(
    model: Model, label_ids: np.ndarray | None, names: Mapping[int, str]
) -> list[NodeClass]:
    """Known classes that come with the user's labels."""
    if label_ids is None:
        return []
    known = {c.id for c in model.classes}
    further = sorted(set(label_ids[label_ids >= 0].tolist()) - known)
    return [NodeClass(class_id, names[class_id], 0) for class_id in further]
