"""A representation fitted anew on a grown graph, and what is known of classes carried over.

How much a graph has changed since a representation was fitted on it. No label is asked.

By which nodes of a grown graph what is known of classes is carried into a new representation.

Those that the model is sure of, by the representation it had. A node of a class that nobody has met
lies somewhere in it too, and with confidence as often as not; so nodes that are new, look new or
have unusually many features the model does not know carry nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
REFRESH = ("auto", True, False)


@dataclass(frozen=True)
class Change:
    """How a graph differs from the one that an encoder was fitted on.

    Attributes:
        unknown: Share of the mass of its features (the sum of their absolute values) that is in
            features the encoder does not know.
        nodes: Share of its nodes that are new.
        edges: Share of its edges that are new.
        matched: Whether nodes were told apart by their ids; otherwise `nodes` and `edges` are by
            how much there are more of them.

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
        """Whether a representation should be fitted anew."""
        return self.unknown > MAX_UNKNOWN or max(self.nodes, self.edges) > MAX_NEW

    def why(self) -> str:
        """What has changed, in words."""
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
        return grown if share > MAX_NEW else f"it was asked for ({what}, {grown})"


def change_of(shown: FitSignature, graph: Graph, before: Graph | None = None) -> Change:
    """How much a graph has changed.

    Args:
        shown: What is kept of the graph that an encoder was fitted on.
        graph: As it is now, with all its features.
        before: As it was, if that is at hand: nodes of the same id are the same.

    Examples:
        >>> import nodenova as nova
        >>> whole = nova.synthetic(nodes=200, classes=4, seed=0).graph
        >>> part = whole.subgraph(np.arange(150))
        >>> change_of(FitSignature.of(part), whole, part).nodes
        0.25
    """
    mass = masses(graph)
    unknown = float(unknown_shares(shown, graph) @ mass / max(mass.sum(), 1e-12))
    met = None if before is None else is_met(graph, before)
    if before is None or met is None or not met.any():
        nodes, edges = (
            max(0.0, 1 - was / now) if now else 0.0
            for was, now in ((shown.nodes, graph.num_nodes), (shown.edges, graph.num_edges))
        )
        return Change(unknown, nodes, edges, matched=False)
    return Change(unknown, 1 - float(met.mean()), _new_edges(graph, before), matched=True)


def masses(graph: Graph) -> np.ndarray:
    """(N,) the sum of the absolute values of each node's features."""
    return np.asarray(abs(graph.x).sum(axis=1), dtype=np.float64).ravel()


def unknown_shares(shown: FitSignature, graph: Graph) -> np.ndarray:
    """(N,) what share of a node's features an encoder does not know; 0 where they have no names."""
    if shown.feature_names is None or graph.feature_names is None:
        return np.zeros(graph.num_nodes)
    known = set(shown.feature_names)
    strange = np.array([name not in known for name in graph.feature_names])
    x = abs(graph.x)
    part = sp.csr_array(x) @ strange if sp.issparse(x) else x @ strange
    return np.asarray(part, dtype=np.float64) / np.maximum(masses(graph), 1e-12)


def is_met(graph: Graph, before: Graph) -> np.ndarray:
    """(N,) which nodes were in an earlier graph, by their ids as texts."""
    return np.isin(graph.node_ids.astype(str), before.node_ids.astype(str))


def _new_edges(graph: Graph, before: Graph) -> float:
    """The share of edges that an earlier graph does not have."""
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
    """Raise unless it says when to fit a representation anew.

    Raises:
        SettingError: It is neither "auto", True nor False.
    """
    if not any(refresh is known or refresh == known == "auto" for known in REFRESH):
        raise SettingError(f'refresh is "auto", True or False, not {refresh!r}')


SURE = 0.7  # the probability from which on the model is sure of a node
LOOKS_NEW = 0.5  # the chance from which on a node looks new, where nobody knows which nodes are
MIN_CARRIERS = 5  # of a class; where fewer are sure, the likeliest others help
MIN_MEAN = 2  # nodes that can stand for a class


@dataclass(frozen=True, eq=False)
class AnchorNodes:
    """Nodes of a grown graph, and the column of the joint head that each stands for.

    Attributes:
        ids: (n,) ascending: those that statistics of classes are taken from.
        columns: (n,) of each. Columns that a user's labels bring come behind the model's.
        sample: (m,) ascending: a fair sample of the known classes, sure or not, by which it is told
            where known nodes lie.
        sample_columns: (m,) of each.
        num_columns: The model's, and those that labels bring.
        notes: A sentence on each class that hardly any node stands for.
    """

    ids: np.ndarray
    columns: np.ndarray
    sample: np.ndarray
    sample_columns: np.ndarray
    num_columns: int
    notes: tuple[str, ...]

    @property
    def counts(self) -> np.ndarray:
        """(columns,) nodes that stand for each."""
        return np.bincount(self.columns, minlength=self.num_columns)


@torch.no_grad()
def find_anchor_nodes(
    model: Model,
    graph: Graph,
    *,
    met: np.ndarray | None = None,
    all_new: np.ndarray | None = None,
    told: np.ndarray | None = None,
) -> AnchorNodes:
    """The nodes of a grown graph that carry what a model knows of its classes.

    Args:
        model: As it is, in the representation it has.
        graph: The grown graph with all its features.
        met: (N,) which nodes it met before; None where nobody knows. Then nodes that look new, by
            how few labelled nodes lie around them, carry nothing.
        all_new: Numbers of nodes that are said to be new, which carry nothing.
        told: (N,) ids of classes that the user says nodes are of, -1 for none. An id that the model
            does not have is of a class that comes with its labels.

    Returns:
        At least the labelled nodes.
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
    if told is not None:
        labelled = told >= 0
        further = sorted(set(told[labelled].tolist()) - set(class_ids))
        known = labelled & np.isin(told, class_ids)
        column[known] = _columns(model, logits[torch.from_numpy(known)], told[known])
        for number, class_id in enumerate(further):
            column[told == class_id] = num_columns + number
        num_columns += len(further)
        may |= labelled
    probability = p.max(axis=1)
    sure = may & (probability >= SURE)
    if told is not None:
        sure |= told >= 0
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
    called = f"class {class_id} ({name})"
    if count < MIN_MEAN:
        return f"{called}: no node of the grown graph stands for it; it would hardly be known again"
    return f"{called}: only {count} nodes of the grown graph stand for it, not all of them sure"


def _columns(model: Model, logits: Tensor, of: np.ndarray) -> np.ndarray:
    """(n,) the likeliest column among those of each node's class."""
    owner = np.array(model.column_class_ids)
    allowed = torch.from_numpy(owner[None] == of[:, None]).to(logits.device)
    return logits.masked_fill(~allowed, -torch.inf).argmax(dim=1).cpu().numpy()


def _may_carry(model: Model, graph: Graph, met: np.ndarray | None) -> np.ndarray:
    """(N,) nodes that are of a known class, as far as that can be told without a label."""
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


def refit_encoder(
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
        >>> again, done = refit_encoder(model, whole.graph, "100 nodes came")
        >>> again.fit_signature.nodes, again.class_names == model.class_names
        (300, True)
    """
    check_refreshable(model)
    graph = _with_seen_features(graph)
    carriers = find_anchor_nodes(model, graph, met=met, all_new=all_new, told=told)
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
    model: Model, graph: Graph, carriers: AnchorNodes
) -> tuple[PrismEncoder, UnitLinearHead, Memory, Partition]:
    """Encoder, head, memory and cells, as phase 1 computes them, on the nodes that carry."""
    device, lda, was = model.device, model.lda, model.memory.classes
    counts = carriers.counts
    there = np.flatnonzero(counts >= MIN_MEAN)
    kept = np.isin(carriers.columns, there)
    ids = torch.from_numpy(carriers.ids[kept]).to(device)
    y = torch.from_numpy(carriers.columns[kept]).to(device)
    compact = torch.from_numpy(np.searchsorted(there, carriers.columns[kept])).to(device)
    views, z = PrismEncoder.fit_rows(graph, ids, device)
    encoder, z = views.whiten(z, compact)
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
    z_all, every, z_at = encode_rows(freeze(encoder), graph, refit_rows(graph), some, at)
    head = refit_on_all_nodes(
        [lda_head(multirank, classes, classes, temperature, lda)], z_all, scale
    )
    cells = Partition.of(multirank, classes, every, z_at, of, lda)
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
