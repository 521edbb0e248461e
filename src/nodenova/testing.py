"""The contracts of methods and encoders, as checks that you can run on your own.

The first check of a method looks for a label leak: it scrambles the labels that a method must not
see and compares the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import torch

from nodenova.data.labels import LabelledGraph
from nodenova.data.splits import split, with_split
from nodenova.data.synthetic import synthetic
from nodenova.discovery import discover
from nodenova.encoders.registry import encoder_kind
from nodenova.errors import NodenovaError
from nodenova.fitting import fit
from nodenova.graph import Graph, NewTask
from nodenova.methods import Method
from nodenova.methods.frozen_kmeans import FrozenKMeans
from nodenova.methods.sword import Sword
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.nn.encoder import TrainedEncoder
from nodenova.nn.seeding import repeatable

EPOCHS = 20  # of phase 1: enough to have something to start from


def problem(method: Method, check: str, encoder: str) -> str | None:
    """Return what is wrong with a method under one check.

    An exception of the method counts as a problem.

    Args:
        method: Method with its settings.
        check: Name of a check in CHECKS.
        encoder: Name of the encoder.

    Returns:
        None if the method passes, else one sentence.
    """
    try:
        return CHECKS[check](method, encoder)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


def no_label(method: Method, encoder: str) -> str | None:
    """Check that predictions stay the same, bit for bit, when labels of new nodes are permuted."""
    return find_leak(method, small(), [0, 1, 2], encoder, EPOCHS)


def repeats(method: Method, encoder: str) -> str | None:
    """Check that the same seed gives the same result and the original model does not change."""
    labelled = small()
    model, task = _fit(labelled, [0, 1, 2], encoder)
    before = model.predict_proba(labelled.graph)
    first, second = (
        discover(model, task, method, seed=7).predict_proba(labelled.graph) for _ in range(2)
    )
    if not np.array_equal(first, second):
        return (
            "the same seed gave two different results; "
            "random numbers must come from PyTorch's generator"
        )
    if not np.array_equal(before, model.predict_proba(labelled.graph)):
        return "it changed the model that it started from"
    return None


def no_label_in_a_mixture(method: Method, encoder: str) -> str | None:
    """Check the same in a mixed task, where the known nodes among the unlabelled change too."""
    if not getattr(method, "mixed", False):
        return None
    return find_leak(method, small(), [0, 1, 2], encoder, EPOCHS, mixed=True)


def one_new_class(method: Method, encoder: str) -> str | None:
    """Check one new class: nothing to cluster, only old against new."""
    return _sound(method, small(), [0, 1, 2, 3], encoder)


def isolated_node(method: Method, encoder: str) -> str | None:
    """Check a node without neighbors and features among the new ones."""
    labelled = small()
    graph, alone = labelled.graph, int(np.flatnonzero(labelled.y == 4)[0])
    x = graph.x.toarray() if not isinstance(graph.x, np.ndarray) else graph.x.copy()
    x[alone] = 0
    edges = graph.edge_index[:, (graph.edge_index != alone).all(axis=0)]
    train = np.zeros(graph.num_nodes, dtype=bool)
    for c in range(5):
        train[np.flatnonzero(labelled.y == c)[:6]] = True
    changed = replace(labelled, graph=Graph.of(x, edges), train=train, val=None, test=~train)
    return _sound(method, changed, [0, 1, 2], encoder)


def class_of_two(method: Method, encoder: str) -> str | None:
    """Check an old and a new class of two nodes each, one of them for training."""
    labelled = small()
    y = labelled.y.copy()
    for c in (2, 4):
        y[np.flatnonzero(y == c)[2:]] = -1
    return _sound(method, replace(labelled, y=y), [0, 1, 2], encoder)


CHECKS: dict[str, Callable[[Method, str], str | None]] = {
    "the same seed gives the same result": repeats,
    "no label of a new node reaches it": no_label,
    "no known node of a mixture is revealed": no_label_in_a_mixture,
    "one new class": one_new_class,
    "an isolated node": isolated_node,
    "a class of two nodes": class_of_two,
}


# The contract of an encoder that is trained.

AnEncoder: TypeAlias = "str | type[Any]"
Given: TypeAlias = "Mapping[str, Any]"


def encoder_problem(encoder: AnEncoder, check: str, settings: Given) -> str | None:
    """Return what is wrong with an encoder under one check.

    An exception of the encoder counts as a problem.

    Args:
        encoder: Class of the encoder, path/to/mine.py:Net, or the name of one that is trained.
        check: Name of a check in ENCODER_CHECKS.
        settings: Settings of the encoder, `hidden` among them.

    Returns:
        None if the encoder passes, else one sentence. That of a check in ADVICE is a warning.
    """
    try:
        return ENCODER_CHECKS[check](encoder, settings)
    except NodenovaError as error:
        return str(error)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


def right_shape(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that z has a row per node and a column per hidden dimension, all finite."""
    graph = small().graph
    for hidden in (5, 8):
        g = _new_encoder(encoder, {**settings, "hidden": hidden}, graph)
        if wrong := _not_finite(g, graph):
            return wrong
    return None


def gradient_everywhere(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that a gradient reaches every weight that is not frozen."""
    graph = small().graph
    g = _new_encoder(encoder, settings, graph).train()
    z = g(graph)
    if z.requires_grad:
        (z * torch.linspace(-1, 1, z.numel()).view_as(z)).sum().backward()
    names = [name for name, p in g.named_parameters() if p.requires_grad and p.grad is None]
    if not names:
        return None
    return f"no gradient reaches {', '.join(names)}: freeze it (requires_grad_(False)) or use it"


def same_seed(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that phase 1 gives the same result for the same seed."""
    labelled = small()
    first, second = (
        _fit_own(labelled, encoder, settings).predict_proba(labelled.graph) for _ in range(2)
    )
    if np.array_equal(first, second):
        return None
    return (
        "the same seed gave two different results; "
        "random numbers must come from PyTorch's generator"
    )


def no_chance(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that two passes in evaluation mode are equal, whatever came between them."""
    graph = small().graph
    g = _new_encoder(encoder, settings, graph)
    with torch.no_grad():
        first = g.eval()(graph)
        g(graph.subgraph(np.arange(40)))
        second = g(graph)
    if torch.equal(first, second):
        return None
    return "z differs between two passes in evaluation mode: use dropout and the like in training"


def few_edges(encoder: AnEncoder, settings: Given) -> str | None:
    """Check a node without edges and features, and a graph without edges."""
    graph = small().graph
    x = graph.x.toarray() if not isinstance(graph.x, np.ndarray) else graph.x.copy()
    x[7] = 0
    edges = graph.edge_index[:, (graph.edge_index != 7).all(axis=0)]
    for rest in (edges, edges[:, :0]):
        changed = Graph.of(x, rest)
        if wrong := _not_finite(_new_encoder(encoder, settings, changed), changed):
            return wrong if rest.size else f"without edges, {wrong}"
    return None


def any_order(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that z of a node does not depend on the order of the nodes."""
    graph = small().graph
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    g = _new_encoder(encoder, settings, graph).eval()
    with torch.no_grad():
        z, moved = g(graph)[torch.from_numpy(order)], g(graph.renumber(order))
    if torch.allclose(z, moved, rtol=1e-3, atol=1e-4 * float(z.abs().max())):
        return None
    return "z of a node depends on the order of the nodes, and so will its class"


def saved_and_loaded(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that a saved model gives the same probabilities, bit for bit."""
    labelled = small()
    model = _fit_own(labelled, encoder, settings)
    with TemporaryDirectory() as folder:
        model.save(folder)
        loaded = load_model(folder)
    if np.array_equal(model.predict_proba(labelled.graph), loaded.predict_proba(labelled.graph)):
        return None
    return (
        "a saved model gives other probabilities: all that a forward pass reads must be in "
        "state_dict() or follow from the settings"
    )


def copy_apart(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that training a copy does not change the model that it is from."""
    labelled = small()
    model = _fit_own(labelled, encoder, settings)
    before = model.predict_proba(labelled.graph)
    g = model.encoder().train()
    g(labelled.graph)
    with torch.no_grad():
        for weight in g.parameters():
            weight.add_(1.0)
    if np.array_equal(before, model.predict_proba(labelled.graph)):
        return None
    return "training a copy of the encoder changed the model: a copy must share no tensor"


def no_leak_through_it(encoder: AnEncoder, settings: Given) -> str | None:
    """Check that SWORD and frozen k-means on it give the same when new labels are permuted."""
    for method in (Sword(epochs=5), FrozenKMeans()):
        found = find_leak(method, small(), [0, 1, 2], encoder, EPOCHS, fit_settings=settings)
        if found is not None:
            return f"{type(method).__name__}: {found}"
    return None


ENCODER_CHECKS: dict[str, Callable[[AnEncoder, Given], str | None]] = {
    "z has the right shape and is finite": right_shape,
    "a gradient reaches every weight": gradient_everywhere,
    "the same seed gives the same result": same_seed,
    "no chance in evaluation mode": no_chance,
    "nodes without edges": few_edges,
    "the order of the nodes changes nothing": any_order,
    "a saved model gives the same result": saved_and_loaded,
    "a copy is independent": copy_apart,
    "no label of a new node reaches it": no_leak_through_it,
}
ADVICE = ("the order of the nodes changes nothing",)  # a warning, as some models need an order


def _new_encoder(encoder: AnEncoder, settings: Given, graph: Graph) -> TrainedEncoder:
    """Return an encoder with initial weights; PyTorch's generator is seeded for them alone."""
    with repeatable(0, "fit"):
        return encoder_kind(encoder).fresh(graph, settings)


def _not_finite(g: TrainedEncoder, graph: Graph) -> str | None:
    """Return None if z is finite in training and in evaluation mode, else one sentence."""
    for mode, name in ((True, "training"), (False, "evaluation")):
        with torch.no_grad():
            z = g.train(mode)(graph)
        bad = int((~torch.isfinite(z)).any(dim=1).sum())
        if bad:
            return f"z of {bad} of {len(z)} nodes is not finite in {name} mode"
    return None


def _fit_own(labelled: LabelledGraph, encoder: AnEncoder, settings: Given) -> Model:
    """Return a model of three classes."""
    first, _, _ = split(labelled, [0, 1, 2])
    return fit(first, encoder, seed=3, **{"epochs": EPOCHS, **settings})


def small() -> LabelledGraph:
    """Return the graph of the checks: 160 nodes, five classes."""
    return synthetic(nodes=160, classes=5, words=80, seed=3)


def _fit(labelled: LabelledGraph, old: Sequence[int], encoder: str) -> tuple[Model, Any]:
    """Return the model of the old classes and the task of the new ones."""
    first, task, _ = split(labelled, old)
    settings: dict[str, Any] = {"epochs": EPOCHS} if encoder_kind(encoder).trainable else {}
    return fit(first, encoder, **settings), task


def _sound(method: Method, labelled: LabelledGraph, old: Sequence[int], encoder: str) -> str | None:
    """Return None if probabilities have the right shape and are finite, else one sentence."""
    model, task = _fit(labelled, old, encoder)
    probabilities = discover(model, task, method).predict_proba(labelled.graph)
    if probabilities.shape != (labelled.graph.num_nodes, len(old) + task.number):
        return f"probabilities have shape {probabilities.shape}"
    return None if np.isfinite(probabilities).all() else "some probabilities are not numbers"


def scramble(labelled: LabelledGraph, old: Sequence[int], seed: int = 0) -> LabelledGraph:
    """Return the same graph with the labels of the new nodes permuted among them.

    Args:
        labelled: Graph with all labels.
        old: Numbers of the old classes.
        seed: Seed of the permutation.
    """
    new = np.flatnonzero((labelled.y >= 0) & ~np.isin(labelled.y, list(old)))
    return permute_labels(labelled, new, seed)


def permute_labels(labelled: LabelledGraph, ids: np.ndarray, seed: int = 0) -> LabelledGraph:
    """Return the same graph with the labels of the nodes `ids` permuted among them."""
    y = labelled.y.copy()
    y[ids] = y[np.random.default_rng([seed, 77]).permutation(ids)]
    return replace(labelled, y=y)


def find_leak(
    method: Method,
    labelled: LabelledGraph,
    old: Sequence[int],
    encoder: str | type[Any] = "gcn",
    epochs: int = 20,
    mixed: bool = False,
    fit_settings: Mapping[str, Any] | None = None,
) -> str | None:
    """Find out whether a method sees labels of new nodes: run it again with scrambled labels.

    Args:
        method: Method with its settings.
        labelled: Graph with all labels.
        old: Numbers of the old classes.
        encoder: Name of the encoder, or an encoder of your own: its class or path/to/mine.py:Net.
        epochs: Number of epochs of phase 1, for encoders that are trained.
        mixed: Whether the unlabelled nodes are of old and new classes; both are scrambled then.
        fit_settings: Further settings of phase 1.

    Returns:
        None if predictions and embeddings are the same, bit for bit, else a sentence that names the
        difference.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> nova.find_leak(nova.Prism(restarts=2), graph, old=[0, 1], encoder="prism") is None
        True
    """
    labelled = with_split(labelled)
    assert labelled.train is not None
    known = np.flatnonzero(labelled.train & np.isin(labelled.y, list(old)))
    rest = np.setdiff1d(np.arange(labelled.graph.num_nodes), known)

    def outcome(answers: LabelledGraph) -> Model:
        first, new, _ = split(labelled if mixed else answers, old)
        if mixed:
            new = NewTask(answers.graph, rest, answers.num_classes - len(old), mixed=True)
        settings: dict[str, Any] = {"epochs": epochs} if encoder_kind(encoder).trainable else {}
        settings |= fit_settings or {}
        return discover(fit(first, encoder, **settings), new, method)

    other = permute_labels(labelled, rest) if mixed else scramble(labelled, old)
    a, b = outcome(labelled), outcome(other)
    for what in ("predict_proba", "embed"):
        ours, theirs = getattr(a, what)(labelled.graph), getattr(b, what)(labelled.graph)
        if not np.array_equal(ours, theirs):
            nodes = int((ours != theirs).any(axis=1).sum())
            where = f"{what} changed on {nodes} of {len(ours)} nodes"
            which = "unlabelled" if mixed else "new"
            return f"{where} when the labels of {which} nodes were scrambled"
    return None
