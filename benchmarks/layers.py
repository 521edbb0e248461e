"""An epoch of the paper's encoders and of its pairwise loss, compared with plain implementations.

An epoch is a forward pass, a backward pass and a step of Adam.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from rows import Case, timed
from torch import Tensor

import nodenova as nova
from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.losses import l_pairs, l_pseudo, similarity_softmax
from nodenova.nn.seeding import fixed_threads

WIKI_CS = {"nodes": 12_000, "degree": 36, "features": 300}  # 430,000 edges, both directions
PAIRS = (10_000, 30_000, 100_000)
MAX_HELD = 10_000  # nodes whose pairs are held at once, several matrices of them


def cases() -> list[Case]:
    found = []
    for name in ("gcn", "sage", "gat"):
        ours, theirs = f"{name} on CiteSeer", f"{name} on CiteSeer, PyTorch Geometric's"
        given = {"name": name, "graph": "citeseer", "repeats": 7}
        found.append(Case("layers", ours, "epoch", given))
        found.append(Case("layers", theirs, "epoch", given | {"plain": True}, ours))
    for attention, hidden in (("v1", 16), ("v1", 128), ("v2", 16), ("v2", 128)):
        ours = f"gat {attention}, hidden {hidden}, 430,000 edges"
        given = {"name": "gat", "hidden": hidden, "attention": attention, "repeats": 2}
        found.append(Case("layers", ours, "epoch", given))
        if attention == "v1":
            two = Case("layers", f"{ours}, two threads", "epoch", given | {"threads": 2}, ours, 2)
            found.append(two)
        if hidden == 16:
            theirs = f"{ours}, PyTorch Geometric's"
            found.append(Case("layers", theirs, "epoch", given | {"plain": True}, ours))
    for n in PAIRS:
        ours = f"pairwise loss, {n:,} nodes"
        found.append(Case("layers", ours, "pairwise", {"nodes": n}))
        if n <= MAX_HELD:
            plain = {"nodes": n, "plain": True}
            found.append(Case("layers", f"{ours}, all pairs held", "pairwise", plain, ours))
    return found


def epoch(
    name: str,
    graph: str = "",
    hidden: int = 16,
    attention: str = "v1",
    repeats: int = 3,
    plain: bool = False,
    threads: int = 1,
) -> dict[str, float]:
    """One epoch of ours, or of PyTorch Geometric's layers with the same parameters."""
    if graph:
        seen = nova.load_dataset(graph).graph
    else:
        nodes, features = WIKI_CS["nodes"], WIKI_CS["features"]
        made = nova.synthetic(nodes=nodes, classes=10, degree=WIKI_CS["degree"])
        values = np.random.default_rng(0).normal(size=(nodes, features))
        seen = nova.Graph.of(values.astype(np.float32), made.graph.edge_index)
    spec = GNNSpec(name, seen.num_features, hidden, attention=attention, row_normalize=False)
    torch.manual_seed(0)
    g = GNN(spec).train()
    x = torch.from_numpy(seen.x if isinstance(seen.x, np.ndarray) else seen.x.toarray())
    edges = torch.from_numpy(seen.edge_index)

    def as_plain() -> Tensor:
        h = x
        for depth, conv in enumerate(g.convs):
            h = conv(F.dropout(spec.kind.activation(h), 0.5) if depth else h, edges)
        return h

    forward: Callable[[], Tensor] = as_plain if plain else lambda: g(seen)
    adam = torch.optim.Adam(g.parameters())

    def work() -> None:
        adam.zero_grad()
        forward().square().mean().backward()  # type: ignore[no-untyped-call]
        adam.step()

    with fixed_threads(threads):
        work()  # operators are built once a graph
        return timed(work, repeats)


def pairwise(nodes: int, plain: bool = False, new: int = 4) -> dict[str, float]:
    """Eq. 2-4 and their gradient; `plain` holds all pairs."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(nodes, new, generator=generator, requires_grad=True) for _ in range(2))
    key = torch.randint(560, (nodes,), generator=generator)  # sets of 3 of 16 dimensions

    def work() -> None:
        if plain:
            same = (key[:, None] == key).to(a.dtype)
            l_pseudo(similarity_softmax(a, b), same).backward()  # type: ignore[no-untyped-call]
        else:
            l_pairs(a, b, key).backward()  # type: ignore[no-untyped-call]

    with fixed_threads(1):
        return timed(work)


CASES = cases()
