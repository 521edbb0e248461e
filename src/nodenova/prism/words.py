"""Who has which word, weighted: what Prism's views are made of."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.bags import BagMatrix
from nodenova.nn.blocks import row_blocks
from nodenova.nn.rowsplit import GraphSplit, SplitMatrix, Words, split_of


def word_weights(graph: Graph) -> np.ndarray:
    """(2, d) weights of words: df^-1/4 for what common ones say, idf^2 for what rare ones say."""
    split = split_of(graph)
    if isinstance(graph.x, np.ndarray):
        # Measurements, not words: as they are, and each divided by its spread.
        spread = graph.x.std(axis=0) if split is None else _spread(split)
        over = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return np.stack([np.ones_like(spread), over])
    having = _having(graph) if split is None else split.total(_having)
    df = np.maximum(having.long().numpy(), 1)
    return np.stack([df**-0.25, np.log(graph.num_nodes / df) ** 2]).astype(np.float32)


def weighted_words(graph: Graph, weight: np.ndarray, kind: str, device: torch.device) -> Words:
    """(N, d) who has which word, times the word's weight.

    Args:
        graph: Whose words.
        weight: (d,) of each word.
        kind: One of WEIGHTS; for "common", long texts do not count for more.
        device: Where to.
    """
    split, mean = split_of(graph), None
    if isinstance(graph.x, np.ndarray):
        mean = graph.x.mean(axis=0) if split is None else _mean(split)
    build = partial(_weighted, weight, kind, device, mean)
    return build(graph) if split is None else SplitMatrix(split, build, graph.num_features)


def _weighted(
    weight: np.ndarray, kind: str, device: torch.device, mean: np.ndarray | None, graph: Graph
) -> BagMatrix | Tensor:
    """Of all rows of a graph, or of a block of them."""
    x = graph.x
    if isinstance(x, np.ndarray):
        return torch.from_numpy((x - mean) * weight.astype(np.float32)).to(device)
    length = np.diff(x.indptr)
    per_text = np.maximum(length, 1) ** -0.5 if kind == "common" else np.ones(len(length))
    weighted = sp.csr_array(x.shape, dtype=np.float32)
    weighted.indptr, weighted.indices = x.indptr, x.indices
    weighted.data = graph.empty(x.nnz, np.float32)
    for start, end in row_blocks(x.indptr):
        place = slice(int(x.indptr[start]), int(x.indptr[end]))
        per_word = np.repeat(per_text[start:end], length[start:end])
        weighted.data[place] = per_word * weight[x.indices[place]]
    return BagMatrix.of(weighted, device, graph=graph)


def _having(graph: Graph) -> Tensor:
    """(d,) how many nodes have each word."""
    x, df = graph.x, np.zeros(graph.num_features, dtype=np.int64)
    assert not isinstance(x, np.ndarray)
    for start, end in row_blocks(x.indptr):
        df += np.bincount(x.indices[x.indptr[start] : x.indptr[end]], minlength=len(df))
    return torch.from_numpy(df)


def _mean(split: GraphSplit) -> np.ndarray:
    """(d,) of dense features that are split."""
    mean: np.ndarray = (split.total(_sum) / split.num_nodes).float().numpy()
    return mean


def _spread(split: GraphSplit) -> np.ndarray:
    """(d,) standard deviations of dense features that are split."""
    squares = split.total(partial(_squares, _mean(split)))
    spread: np.ndarray = (squares / split.num_nodes).sqrt().float().numpy()
    return spread


def _sum(graph: Graph) -> Tensor:
    return torch.from_numpy(np.asarray(graph.x.sum(axis=0, dtype=np.float64)))


def _squares(mean: np.ndarray, graph: Graph) -> Tensor:
    return torch.from_numpy(np.square(graph.x - mean).sum(axis=0, dtype=np.float64))
