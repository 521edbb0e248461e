"""The contract of a method, as checks that you can run on your own method.

The first check looks for a label leak: it scrambles the labels that a method must not see and
compares the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nodenova.data.labels import LabelledGraph
from nodenova.data.splits import split, with_split
from nodenova.data.synthetic import synthetic
from nodenova.discovery import discover
from nodenova.encoders.registry import encoder_kind
from nodenova.fitting import fit
from nodenova.graph import Graph, NewTask
from nodenova.methods import Method
from nodenova.model.model import Model

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
    encoder: str = "gcn",
    epochs: int = 20,
    mixed: bool = False,
) -> str | None:
    """Find out whether a method sees labels of new nodes: run it again with scrambled labels.

    Args:
        method: Method with its settings.
        labelled: Graph with all labels.
        old: Numbers of the old classes.
        encoder: Name of the encoder.
        epochs: Number of epochs of phase 1, for encoders that are trained.
        mixed: Whether the unlabelled nodes are of old and new classes; both are scrambled then.

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
