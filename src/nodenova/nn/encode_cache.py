"""One pass of an encoder over a graph, shared by consecutive uses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nodenova.graph import Graph
from nodenova.nn.distributed import split_of
from nodenova.nn.encoder import Encoder


@dataclass
class _Last:
    """The last pass within a block: digest of the weights, graph, and result."""

    weights: str = ""
    graph: Graph | None = None
    z: Tensor | None = None


MAX_KEPT = 50_000  # nodes of a graph whose z is kept by a block that names the graph
# A context variable, as `Model.predict` and the functions below it have no argument for it.
_LAST: ContextVar[_Last | None] = ContextVar("last pass", default=None)


@contextmanager
def shared_passes(graph: Graph | None = None, wanted: bool = True) -> Iterator[None]:
    """Within this block `encode` returns its last result while encoder and graph are the same.

    Nothing is kept outside of such a block: a model holds no node. Nor where `wanted` is False, or
    where `graph` has more than MAX_KEPT nodes: one more pass costs less than the memory. Within
    another such block, that one is shared.
    """
    large = graph is not None and graph.num_nodes > MAX_KEPT
    if _LAST.get() is not None or large or not wanted:
        yield
        return
    token = _LAST.set(_Last())
    try:
        yield
    finally:
        _LAST.reset(token)


@torch.no_grad()
def encode(encoder: nn.Module, graph: Graph) -> Tensor:
    """z (N, hidden) of all nodes, without gradient; not to be written into.

    Within `shared_passes` encoders are compared by their weights, as a copy gives the same z. In
    training mode the encoder is run every time.
    """
    last = _LAST.get()
    if last is None or encoder.training:
        return encoder(graph)
    weights = _digest(encoder)
    if last.z is None or last.graph is not graph or last.weights != weights:
        last.z = None  # never two at a time: z is wide
        last.weights, last.graph, last.z = weights, graph, encoder(graph)
    return last.z


def last_pass(encoder: nn.Module, graph: Graph) -> Tensor | None:
    """What `encode` returns; None outside of `shared_passes`, where nothing is kept."""
    return None if _LAST.get() is None else encode(encoder, graph)


@torch.no_grad()
def encode_rows(encoder: Encoder, graph: Graph, *ids: Tensor | slice) -> list[Tensor]:
    """z (n, hidden) of some nodes by one pass, without holding z of all where the encoder can.

    `ids` are node indices (n,) or slices; one result each, not to be written into.
    """
    is_kept = _LAST.get() is not None and split_of(graph) is None
    if is_kept or encoder.training:
        z = encode(encoder, graph)
        return [z[some] for some in ids]
    every = torch.arange(graph.num_nodes)
    numbers = [every[some] if isinstance(some, slice) else some for some in ids]
    z = encoder.rows(graph, torch.cat([some.to(numbers[0].device) for some in numbers]))
    return list(z.split([len(some) for some in numbers]))  # type: ignore[no-untyped-call]


def _digest(encoder: nn.Module) -> str:
    digest = hashlib.sha256(f"{type(encoder)} {getattr(encoder, 'spec', None)}".encode())
    for name, values in encoder.state_dict().items():
        digest.update(f"{name} {values.dtype} {tuple(values.shape)} {values.device}".encode())
        digest.update(values.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()
