"""A split graph whose blocks are all computed in this process, without a cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodenova.cluster import split
from nodenova.cluster.split import RowBlock, block_starts
from nodenova.graph import Graph
from nodenova.nn.distributed import GraphSplit, OfBlock, SplitColumns


class HereSplit(GraphSplit):
    def __init__(self, folder: Path, graph: Graph, at_once: int = 25) -> None:
        self.num_nodes, self.at_once = graph.num_nodes, at_once
        self.starts = block_starts(graph)
        pairs = zip(self.starts[:-1], self.starts[1:], strict=True)
        self.blocks = [RowBlock(str(folder), a, b) for a, b in pairs]
        root = self.rows(self.each(split.root_of), torch.arange(self.num_nodes)).numpy().ravel()
        self.rows_of_s = [split.smooth_rows(rows, root, self.starts) for rows in self.blocks]

    def _apply(self, function: OfBlock, columns: tuple[SplitColumns, ...]) -> list[np.ndarray]:
        return [
            split.apply(function, rows, *(each.blocks[number] for each in columns))
            for number, rows in enumerate(self.blocks)
        ]

    def each(self, function: OfBlock, *columns: SplitColumns) -> SplitColumns:
        return SplitColumns(self, tuple(self._apply(function, columns)))

    def total(self, function: OfBlock, *columns: SplitColumns) -> Tensor:
        return torch.from_numpy(split.add(*self._apply(function, columns)))

    def smooth(self, columns: SplitColumns) -> SplitColumns:
        blocks = [split.multiply(rows, self.starts, *columns.blocks) for rows in self.rows_of_s]
        return SplitColumns(self, tuple(blocks))

    def rows(self, columns: SplitColumns, ids: Tensor) -> Tensor:
        return torch.from_numpy(np.concatenate(columns.blocks)[ids.numpy()])
