"""How long a discovery will take and how much memory, said before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodenova.graph import Graph

# For 1, nodes, edges (in both directions) and entries of the features that are not zero, as
# benchmarks/estimate.py finds them: Prism in a mixture, its number of classes estimated, with the
# page, on one core of a server of 2024. Rows of 8,000 to 64,000 nodes were met within 1.6.
SECONDS = (10.7, 8.39e-05, 1.94e-05, 1.16e-05)
GIB = (0.71, 4.92e-06, 1.53e-07, 1.44e-07)
LARGE = 50_000  # nodes from which on `nodenova discover` says it


def estimate(nodes: int, edges: int, entries: int) -> tuple[float, float]:
    """Seconds of one core, and GB of memory at most, of `nodenova discover` with Prism.

    Args:
        nodes: How many.
        edges: In both directions.
        entries: Of the features, how many are not zero.

    Examples:
        >>> seconds, gb = estimate(200_000, 1_600_000, 4_000_000)
        >>> round(seconds), round(gb, 1)
        (105, 2.7)
    """
    sizes = (1, nodes, edges, entries)
    seconds = sum(a * b for a, b in zip(SECONDS, sizes, strict=True))
    gib = sum(a * b for a, b in zip(GIB, sizes, strict=True))
    return seconds, gib * 2**30 / 1e9


def entries_of(graph: Graph) -> int:
    """How many entries of the features are not zero; of dense ones, all count."""
    sparse = getattr(graph.x, "nnz", None)
    return int(graph.x.size if sparse is None else sparse)


def sentence(graph: Graph) -> str:
    """What `nodenova discover` will take, as one would say it.

    Examples:
        >>> import nodenova as nova
        >>> sentence(nova.synthetic(nodes=200, classes=4).graph)
        'about 11 s on one core, 0.8 GB of memory'
    """
    seconds, gb = estimate(graph.num_nodes, graph.num_edges, entries_of(graph))
    said = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    if seconds >= 5_400:
        said = f"{seconds / 3600:.1f} h"
    return f"about {said} on one core, {gb:.1f} GB of memory"
