"""Speed and memory of what is in every epoch, ours against the plain way, as ratios within one run.

make bench
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

import nodenova as nova
from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.losses.pairwise import same_top_k
from nodenova.nn.seeding import fixed_threads


def seconds(work: Callable[[], object], repeats: int = 7) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def training_step(forward: Callable[[], Tensor], parameters: list[Tensor]) -> Callable[[], object]:
    def step() -> None:
        for parameter in parameters:
            parameter.grad = None
        forward().square().mean().backward()  # type: ignore[no-untyped-call]

    return step


def encoders() -> None:
    graph = nova.load_dataset("citeseer").graph
    assert not isinstance(graph.x, np.ndarray)
    x, edges = torch.from_numpy(graph.x.toarray()), torch.from_numpy(graph.edge_index)
    for name in ("gcn", "sage", "gat"):
        g = GNN(GNNSpec(name, graph.num_features, row_normalize=False)).train()
        activation = torch.nn.functional.elu if name == "gat" else torch.relu

        def plain(g: GNN = g, activation: Callable[[Tensor], Tensor] = activation) -> Tensor:
            h = x
            for depth, conv in enumerate(g.convs):
                h = conv(torch.dropout(activation(h), 0.5, True) if depth else h, edges)
            return h

        def fast(g: GNN = g) -> Tensor:
            return g(graph)

        ours = seconds(training_step(fast, list(g.parameters())))
        theirs = seconds(training_step(plain, list(g.parameters())))
        print(
            f"{name:5} training step, CiteSeer: {theirs / ours:5.1f} times faster "
            "than PyG's layers on dense features"
        )


def attention() -> None:
    """GAT at the size of Wiki-CS: 12,000 nodes, 430,000 edges both ways, 300 dense features."""
    values = np.random.default_rng(0).normal(size=(12000, 300)).astype(np.float32)
    made = nova.synthetic(nodes=12000, classes=10, words=300, degree=36)
    graph = nova.Graph.of(values, made.graph.edge_index)
    x = torch.from_numpy(values)
    edges = torch.from_numpy(graph.edge_index)
    for version in ("v1", "v2"):
        for hidden in (16, 128):
            size = graph.num_features
            g = GNN(GNNSpec("gat", size, hidden, attention=version, row_normalize=False)).train()

            def plain(g: GNN = g) -> Tensor:
                inner = torch.nn.functional.elu(g.convs[0](x, edges))
                return g.convs[1](torch.dropout(inner, 0.5, True), edges)

            def fast(g: GNN = g) -> Tensor:
                return g(graph)

            ours = seconds(training_step(fast, list(g.parameters())), 2)
            theirs = seconds(training_step(plain, list(g.parameters())), 2)
            kind = f"GAT {version}, {graph.num_edges:,} edges, hidden {hidden}"
            print(
                f"{kind}: {theirs / ours:5.1f} times faster than PyG's layers; "
                f"{ours:.2f} s an epoch here and now"
            )


def pairs() -> None:
    def enumerated(z: Tensor, k: int) -> Tensor:
        n = len(z)
        top = z.argsort(dim=1, descending=True)
        a = top.repeat(n, 1)[:, :k].sort(dim=1).values
        b = top.repeat(1, n).view(n * n, -1)[:, :k].sort(dim=1).values
        return ((a - b).abs().sum(dim=1) == 0).float().view(n, n)

    z = torch.randn(600, 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(same_top_k(z, 3), enumerated(z, 3))
    ratio = seconds(lambda: enumerated(z, 3), 3) / seconds(lambda: same_top_k(z, 3), 3)
    print(f"pairwise labels of 600 nodes: {ratio:5.1f} times faster than enumerating the pairs")


def pair_memory() -> None:
    """Peak memory of the pairwise labels of 5,000 nodes, in a process of its own (Linux)."""
    code = """
import torch
from nodenova.losses.pairwise import same_top_k
def kib(key):
    lines = open("/proc/self/status").readlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])
z = torch.randn(5000, 16)
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew here
before = kib("VmRSS")
same_top_k(z, 3)
print(kib("VmHWM") - before)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    used = int(done.stdout) / 1024
    listed = 2 * 5000 * 5000 * 16 * 8 / 2**20
    print(
        f"pairwise labels of 5,000 nodes: {used:.0f} MiB; "
        f"the list of enumerated pairs alone would be {listed:.0f} MiB"
    )


def whole_run() -> None:
    old, new, _ = nova.split(nova.load_dataset("citeseer"), old=range(4))
    start = time.perf_counter()
    model = nova.fit(old, "gcn")
    middle = time.perf_counter()
    nova.discover(model, new, nova.Sword())
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"CiteSeer, GCN: fit {middle - start:.1f} s, discover {end - middle:.1f} s "
        f"here and now; peak {peak:.0f} MiB"
    )


if __name__ == "__main__":
    with fixed_threads(1):
        encoders()
        attention()
        pairs()
    pair_memory()
    whole_run()
