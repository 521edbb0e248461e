"""What a head says of nodes that are on several machines: on the machines that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.rowsplit import Columns, SplitColumns, gathered, mapped


def read_split(
    head: UnitLinearHead, views: Iterable[Columns], read: Callable[[Tensor], Tensor]
) -> np.ndarray:
    """What `read` makes of `head.from_views(views)`.

    Args:
        head: Which.
        views: (N, max rank or more) each, split, one by one.
        read: Makes numbers of the logits of some nodes; these alone come here.
    """
    logits: SplitColumns | None = None
    for number, view in enumerate(views):
        assert isinstance(view, SplitColumns)
        before = () if logits is None else (logits,)
        logits = view.split.each(partial(_with_view, head, number), view, *before)
    assert logits is not None
    said: np.ndarray = gathered(mapped(partial(_read, read, head.temperature), logits)).numpy()
    return said


def _with_view(
    head: UnitLinearHead, number: int, graph: Graph, view: Tensor, logits: Tensor | None = None
) -> Tensor:
    weight = head.linear.weight.chunk(head.multirank.views, dim=1)[number]
    before = head.linear.bias if logits is None else logits
    return before + head.multirank.of_view(view) @ weight.t()


def _read(read: Callable[[Tensor], Tensor], temperature: float, logits: Tensor) -> Tensor:
    return read(logits / temperature)
