"""A graph folder split by rows over a Ray cluster.

Blocks of columns are objects of Ray, made by tasks: one that is lost with its machine is made again
from what it was made of. Nothing is kept by a process that another one could not make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodenova.cluster import blocks
from nodenova.cluster.session import ray_module, remote
from nodenova.errors import NodenovaError, SettingError
from nodenova.graph import Graph
from nodenova.io.mmap_graph import read_prepared
from nodenova.nn.distributed import GraphSplit, OfBlock, SplitColumns

# The blocks depend on the graph alone, so that the result does not depend on the cluster.
MIN_BLOCKS, MAX_BLOCKS = 8, 64  # as long as
MIN_ENTRIES, MAX_ENTRIES = 2**22, 2**26  # a block has no fewer edges and words, and no more
MAX_RETRIES = 8  # of a task whose process or machine is lost
MAX_COLUMNS = 144  # that are multiplied at a time, as long as
SHARE = 0.15  # they take no more of the memory that the smallest machine keeps objects in
FAN_IN = 16  # sums that a task adds up


class ClusterError(NodenovaError):
    """The machines of a cluster were lost, or could not do what they were asked."""


class RaySplit(GraphSplit):
    """The rows of a graph folder over the cluster that this process is connected to.

    Args:
        folder: The same on every machine.
        graph: What is in it.
    """

    def __init__(self, folder: Path, graph: Graph) -> None:
        if graph.vectors is not None:
            raise SettingError(f"--ray: {folder} has vectors of texts, which are not split yet")
        self.ray = ray_module()
        self.num_nodes = graph.num_nodes
        self.starts = block_starts(graph)
        ends = zip(self.starts[:-1], self.starts[1:], strict=True)
        self.places = [blocks.Place(str(folder.absolute()), start, end) for start, end in ends]
        stores = [
            node["Resources"].get("object_store_memory", 0.0)
            for node in self.ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU")
        ]
        fit = int(SHARE * min(stores, default=0.0) / (4 * self.num_nodes))
        self.at_once = min(max(fit, 1), MAX_COLUMNS)
        self._run = remote(blocks.run, max_retries=MAX_RETRIES).remote

    def each(self, function: OfBlock, *columns: SplitColumns) -> SplitColumns:
        return self._columns(self._applied(function, columns))

    def total(self, function: OfBlock, *columns: SplitColumns) -> Tensor:
        parts = self._applied(function, columns)
        while len(parts) > 1:
            groups = [parts[n : n + FAN_IN] for n in range(0, len(parts), FAN_IN)]
            parts = [self._run(blocks.add, *group) for group in groups]
        return torch.from_numpy(self._get(parts)[0].astype(np.float64))

    def smooth(self, columns: SplitColumns) -> SplitColumns:
        given = (self._starts, *columns.blocks)
        return self._columns([self._run(blocks.multiply, part, *given) for part in self._smooth])

    def rows(self, columns: SplitColumns, ids: Tensor) -> Tensor:
        numbers = ids.cpu().numpy()
        block = np.searchsorted(self.starts, numbers, side="right") - 1
        used = np.unique(block)
        parts = [
            self._run(
                blocks.pick,
                numbers[block == number] - self.starts[number],
                columns.blocks[number],
            )
            for number in used
        ]
        found: np.ndarray | None = None
        for number, part in zip(used, parts, strict=True):
            picked = self._get([part])[0]
            if found is None:
                found = np.empty((len(numbers), *picked.shape[1:]), dtype=picked.dtype)
            found[block == number] = picked
        if found is None:  # nobody was asked for, and how many columns there are is not known here
            return self.rows(columns, torch.zeros(1, dtype=torch.long))[:0]
        return torch.from_numpy(found)

    @cached_property
    def _smooth(self) -> list[Any]:
        """The rows of S, a block each, as objects of Ray."""
        root = self.rows(self.each(blocks.root_of), torch.arange(self.num_nodes))
        self._root = self.ray.put(root.numpy().ravel())
        return self._made(
            [
                self._run(blocks.smooth_rows, place, self._root, self._starts)
                for place in self.places
            ]
        )

    @cached_property
    def _starts(self) -> Any:
        return self.ray.put(self.starts)

    def _applied(self, function: OfBlock, columns: Sequence[SplitColumns]) -> list[Any]:
        sent = self.ray.put(function)
        return [
            self._run(blocks.apply, sent, place, *(each.blocks[number] for each in columns))
            for number, place in enumerate(self.places)
        ]

    def _columns(self, made: list[Any]) -> SplitColumns:
        return SplitColumns(self, tuple(self._made(made)))

    def _made(self, parts: list[Any]) -> list[Any]:
        """Wait, so that what they were made of may go before more is made."""
        self.ray.wait(parts, num_returns=len(parts), fetch_local=False)
        return parts

    def _get(self, parts: list[Any]) -> list[np.ndarray]:
        try:
            found: list[np.ndarray] = self.ray.get(parts)
            return found
        except self.ray.exceptions.RayError as error:
            cause: Any = error
            while isinstance(cause, self.ray.exceptions.RayTaskError):
                cause = cause.cause  # of a task, or of one that it needed
            if not isinstance(cause, self.ray.exceptions.RayError):
                raise cause from None
            first = str(cause).strip().partition("\n")[0]
            raise ClusterError(
                f"--ray: the cluster failed, though what was lost was tried {MAX_RETRIES} times "
                f"more: {first}"
            ) from None


def block_starts(graph: Graph) -> list[int]:
    """First rows of the blocks of a graph, and N: about as many edges and words in each.

    Examples:
        >>> import nodenova as nova
        >>> block_starts(nova.synthetic(nodes=20, classes=2, seed=0).graph)[-1]
        20
    """
    x, n = graph.x, graph.num_nodes
    words = x.shape[1] * np.arange(n + 1) if isinstance(x, np.ndarray) else x.indptr
    before = graph.adjacency.indptr.astype(np.int64) + words
    entries = int(before[-1])
    count = max(MIN_BLOCKS, min(MAX_BLOCKS, entries // MIN_ENTRIES), -(-entries // MAX_ENTRIES))
    wanted = np.linspace(0, entries, min(count, n) + 1)
    starts = np.searchsorted(before, wanted[:-1], side="left").tolist()
    return sorted({0, *starts, n})


@contextmanager
def split_graph(graph: Graph, folder: Path) -> Iterator[None]:
    """Within this block what Prism computes on a graph is computed by the cluster.

    Args:
        graph: Read from a graph folder.
        folder: Which.

    Raises:
        SettingError: It is of something else, or with other features than are in the folder.
    """
    if not graph.is_mapped:
        raise SettingError(
            "--ray needs a graph folder: nodenova prepare makes it, --graph names it"
        )
    there = read_prepared(folder)[0].graph
    if (there.num_features, there.feature_names) != (graph.num_features, graph.feature_names):
        raise SettingError(
            f"--ray: {folder} has other features than the model knows; "
            "leave --ray out, or prepare the folder from the same columns"
        )
    graph.cache[GraphSplit] = RaySplit(folder, graph)
    try:
        yield
    finally:
        del graph.cache[GraphSplit]
