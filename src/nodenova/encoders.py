"""Encoders g: Graph -> z. PyTorch Geometric's layers hold the parameters; the products run on `propagation`.

Each `*_layer` function computes what the layer's own `forward` computes (tests/test_encoders.py holds the two against
each other), from operators that are built once per graph instead of once per call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from nodenova.errors import SettingError, one_of
from nodenova.graph import Graph
from nodenova.propagation import SparseMatrix, features, gcn_operator, mean_operator, neighbourhoods


def gcn_layer(conv: GCNConv, x: SparseMatrix | Tensor, graph: Graph, device: torch.device) -> Tensor:
    """D^-1/2 (A+I) D^-1/2 x W + b (Kipf & Welling 2017)."""
    return gcn_operator(graph, device) @ (x @ conv.lin.weight.t()) + conv.bias


def sage_layer(conv: SAGEConv, x: SparseMatrix | Tensor, graph: Graph, device: torch.device) -> Tensor:
    """mean_j(x_j) W_l + b + x W_r (Hamilton et al. 2017, mean aggregator)."""
    # Projecting first and averaging afterwards is the same by linearity, and d0 / hidden times cheaper.
    neighbours = mean_operator(graph, device) @ (x @ conv.lin_l.weight.t())
    return neighbours + conv.lin_l.bias + x @ conv.lin_r.weight.t()


def gat_layer(conv: GATConv, x: SparseMatrix | Tensor, graph: Graph, device: torch.device) -> Tensor:
    """Attention over the neighbours and the node itself (Velickovic et al. 2018), heads concatenated."""
    h = (x @ conv.lin.weight.t()).view(-1, conv.heads, conv.out_channels)
    edges = neighbourhoods(graph, device)
    score = (h * conv.att_src).sum(-1)[edges.source] + (h * conv.att_dst).sum(-1)[edges.target]  # (E, heads)
    weight = edges.softmax(F.leaky_relu(score, conv.negative_slope))
    return edges.weighted_sum(weight, h).flatten(1) + conv.bias


@dataclass(frozen=True)
class Kind:
    """How one encoder family is made and run."""

    make: Callable[[int, int, int], nn.Module]  # (inputs, outputs, heads) -> layer
    layer: Callable[..., Tensor]
    activation: Callable[[Tensor], Tensor]
    many_heads: bool = False


ENCODERS: dict[str, Kind] = {
    "gcn": Kind(lambda i, o, _: GCNConv(i, o), gcn_layer, F.relu),
    "gat": Kind(lambda i, o, heads: GATConv(i, o, heads=heads), gat_layer, F.elu, many_heads=True),
    "sage": Kind(lambda i, o, _: SAGEConv(i, o), sage_layer, F.relu),
}


@dataclass(frozen=True)
class EncoderSpec:
    """Everything needed to build an encoder again, saved beside its weights."""

    name: str = "gcn"
    num_features: int = 1
    hidden: int = 16  # size of z; GAT's inner layers have `heads` times as much
    layers: int = 2
    dropout: float = 0.5  # between layers
    heads: int = 8  # GAT only
    row_normalise: bool = True  # divide a node's features by their sum

    def __post_init__(self) -> None:
        if self.name not in ENCODERS:
            raise one_of("encoder", self.name, ENCODERS)
        for setting, low, high in [("layers", 1, 64), ("hidden", 1, 65536), ("heads", 1, 1024)]:
            if not low <= getattr(self, setting) <= high:
                raise SettingError(f"{setting} must lie in {low}..{high}, it is {getattr(self, setting)}")
        if not 0 <= self.dropout < 1:
            raise SettingError(f"dropout must be at least 0 and below 1, it is {self.dropout}")

    @property
    def view_size(self) -> int:
        """z is one view, of its full size: see `prototypes.ladder`."""
        return self.hidden

    @property
    def views(self) -> int:
        return 1

    @property
    def rungs(self) -> tuple[int, ...]:
        return (self.hidden,)

    @property
    def is_random(self) -> bool:
        """Whether z differs from pass to pass in training."""
        return self.dropout > 0 and self.layers > 1

    def as_settings(self) -> dict[str, object]:
        """The settings that matter for this kind of encoder."""
        settings = asdict(self)
        del settings["name"], settings["num_features"]
        if not ENCODERS[self.name].many_heads:
            del settings["heads"]
        return settings


class Encoder(nn.Module):
    """g: Graph -> z of shape (N, hidden). Dropout between layers, no activation after the last."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        kind = ENCODERS[spec.name]
        heads = spec.heads if kind.many_heads else 1
        sizes = [spec.num_features] + [spec.hidden * heads] * (spec.layers - 1)
        inner = [kind.make(size, spec.hidden, heads) for size in sizes[:-1]]
        self.convs = nn.ModuleList([*inner, kind.make(sizes[-1], spec.hidden, 1)])

    def forward(self, graph: Graph) -> Tensor:
        kind = ENCODERS[self.spec.name]
        device = next(self.parameters()).device
        x: SparseMatrix | Tensor = features(graph, device, self.spec.row_normalise)
        for depth, conv in enumerate(self.convs):
            if depth:
                x = F.dropout(kind.activation(x), self.spec.dropout, self.training)  # type: ignore[arg-type]
            x = kind.layer(conv, x, graph, device)
        return x  # type: ignore[return-value]
