"""A split graph whose blocks are all worked on in this process: what a cluster does, without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodenova.cluster import blocks
from nodenova.cluster.split import block_starts
from nodenova.graph import Graph
from nodenova.nn.distributed import GraphSplit, OfBlock, SplitColumns


class HereSplit(GraphSplit):
    def __init__(self, folder: Path, graph: Graph, at_once: int = 25) -> None:
        self.num_nodes, self.at_once = graph.num_nodes, at_once
        self.starts = block_starts(graph)
        pairs = zip(self.starts[:-1], self.starts[1:], strict=True)
        self.places = [blocks.Place(str(folder), a, b) for a, b in pairs]
        root = self.rows(self.each(blocks.root_of), torch.arange(self.num_nodes)).numpy().ravel()
        self.rows_of_s = [blocks.smooth_rows(place, root, self.starts) for place in self.places]

    def _applied(self, function: OfBlock, columns: tuple[SplitColumns, ...]) -> list[np.ndarray]:
        return [
            blocks.apply(function, place, *(each.blocks[number] for each in columns))
            for number, place in enumerate(self.places)
        ]

    def each(self, function: OfBlock, *columns: SplitColumns) -> SplitColumns:
        return SplitColumns(self, tuple(self._applied(function, columns)))

    def total(self, function: OfBlock, *columns: SplitColumns) -> Tensor:
        return torch.from_numpy(blocks.add(*self._applied(function, columns)))

    def smooth(self, columns: SplitColumns) -> SplitColumns:
        made = [blocks.multiply(part, self.starts, *columns.blocks) for part in self.rows_of_s]
        return SplitColumns(self, tuple(made))

    def rows(self, columns: SplitColumns, ids: Tensor) -> Tensor:
        return torch.from_numpy(np.concatenate(columns.blocks)[ids.numpy()])
