"""The contract of a method: rules that every method keeps, as checks to run on one of your own.

The first of them: does it see labels that it must not see? Scramble them and look whether anything
changes.
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
    """What is wrong with a method under one of the rules.

    Whatever the method raises is a problem of its own.

    Args:
        method: With its settings.
        check: One of CHECKS.
        encoder: By name.

    Returns:
        None if the method keeps the rule, else one sentence.
    """
    try:
        return CHECKS[check](method, encoder)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


def no_label(method: Method, encoder: str) -> str | None:
    """Predictions stay the same, bit for bit, when labels of the new nodes are dealt out anew."""
    return find_leak(method, small(), [0, 1, 2], encoder, EPOCHS)


def repeats(method: Method, encoder: str) -> str | None:
    """The same seed gives the same result, and the model it started from is left as it was."""
    labelled = small()
    model, task = _fitted(labelled, [0, 1, 2], encoder)
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
        return "it changed the model it was given"
    return None


def no_label_in_a_mixture(method: Method, encoder: str) -> str | None:
    """The same in a mixture, where all labels are dealt out anew: which nodes are known, too."""
    if not getattr(method, "mixed", False):
        return None
    return find_leak(method, small(), [0, 1, 2], encoder, EPOCHS, mixed=True)


def one_new_class(method: Method, encoder: str) -> str | None:
    """One new class: nothing to cluster, only old against new to tell."""
    return _sound(method, small(), [0, 1, 2, 3], encoder)


def isolated_node(method: Method, encoder: str) -> str | None:
    """A node without neighbors and without features, among the unlabelled new ones."""
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
    """An old class and a new class that have two nodes each, one of them for training."""
    labelled = small()
    y = labelled.y.copy()
    for c in (2, 4):
        y[np.flatnonzero(y == c)[2:]] = -1
    return _sound(method, replace(labelled, y=y), [0, 1, 2], encoder)


CHECKS: dict[str, Callable[[Method, str], str | None]] = {
    "the same seed gives the same result": repeats,
    "no label of a new node reaches it": no_label,
    "nothing tells which nodes of a mixture are known": no_label_in_a_mixture,
    "one new class": one_new_class,
    "an isolated node": isolated_node,
    "a class of two nodes": class_of_two,
}


def small() -> LabelledGraph:
    """The graph of the checks: 160 nodes, five classes."""
    return synthetic(nodes=160, classes=5, words=80, seed=3)


def _fitted(labelled: LabelledGraph, old: Sequence[int], encoder: str) -> tuple[Model, Any]:
    first, task, _ = split(labelled, old)
    settings: dict[str, Any] = {"epochs": EPOCHS} if encoder_kind(encoder).trainable else {}
    return fit(first, encoder, **settings), task


def _sound(method: Method, labelled: LabelledGraph, old: Sequence[int], encoder: str) -> str | None:
    model, task = _fitted(labelled, old, encoder)
    probabilities = discover(model, task, method).predict_proba(labelled.graph)
    if probabilities.shape != (labelled.graph.num_nodes, len(old) + task.number):
        return f"probabilities have shape {probabilities.shape}"
    return None if np.isfinite(probabilities).all() else "some probabilities are not numbers"


def scrambled(labelled: LabelledGraph, old: Sequence[int], seed: int = 0) -> LabelledGraph:
    """The same graph and old labels, with the labels of the new nodes dealt out anew among them.

    Args:
        labelled: The graph with all labels.
        old: The old classes, by number.
        seed: Of the permutation.
    """
    new = np.flatnonzero((labelled.y >= 0) & ~np.isin(labelled.y, list(old)))
    return dealt_anew(labelled, new, seed)


def dealt_anew(labelled: LabelledGraph, ids: np.ndarray, seed: int = 0) -> LabelledGraph:
    """The same graph, with the labels of the nodes `ids` dealt out anew among them."""
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
    """Whether a method sees labels of new nodes: run it twice, the second time on scrambled ones.

    Args:
        method: With its settings.
        labelled: A graph with all labels.
        old: The old classes, by number.
        encoder: By name.
        epochs: Of phase 1, for encoders that are trained.
        mixed: The unlabelled nodes are of old and new classes, and which are which is changed too.

    Returns:
        None if predictions and embeddings are the same, bit for bit; else what gave it away.

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

    other = dealt_anew(labelled, rest) if mixed else scrambled(labelled, old)
    a, b = outcome(labelled), outcome(other)
    for what in ("predict_proba", "embed"):
        ours, theirs = getattr(a, what)(labelled.graph), getattr(b, what)(labelled.graph)
        if not np.array_equal(ours, theirs):
            nodes = int((ours != theirs).any(axis=1).sum())
            where = f"{what} changed on {nodes} of {len(ours)} nodes"
            which = "unlabelled" if mixed else "new"
            return f"{where} when the labels of {which} nodes were scrambled"
    return None
