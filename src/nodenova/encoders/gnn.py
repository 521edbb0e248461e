"""Graph neural networks as encoders. PyTorch Geometric's layers hold the parameters; the products run on `propagation`.

Each `*_layer` function computes what the layer's own `forward` computes (tests/test_encoders.py holds the two against
each other), from operators that are built once per graph instead of once per call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, SAGEConv

from nodenova.errors import SettingError, one_of
from nodenova.graph import Graph
from nodenova.nn.attention import neighbourhoods
from nodenova.nn.encoder import Encoder
from nodenova.nn.multirank import MultiRank
from nodenova.nn.sparse import SparseMatrix, features, gcn_operator, mean_operator


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
    h, edges = _heads_first(x @ conv.lin.weight.t(), conv.heads), neighbourhoods(graph, device)
    source, target = ((h @ att.view(conv.heads, -1, 1)).squeeze(-1) for att in (conv.att_src, conv.att_dst))  # (heads, N)
    score = edges.score_v1(source, target, conv.negative_slope)
    return edges.attend(score, h).transpose(0, 1).flatten(1) + conv.bias


def gatv2_layer(conv: GATv2Conv, x: SparseMatrix | Tensor, graph: Graph, device: torch.device) -> Tensor:
    """The same with the score of Brody et al. 2022, whose order of the neighbours may differ from node to node."""
    source, target = gatv2_ends(conv, x)
    edges = neighbourhoods(graph, device)
    score = edges.score_v2(source, target, conv.att[0], conv.negative_slope)
    return edges.attend(score, source).transpose(0, 1).flatten(1) + conv.bias


def gatv2_ends(conv: GATv2Conv, x: SparseMatrix | Tensor) -> tuple[Tensor, Tensor]:
    """W_l x and W_r x, (heads, N, size) each: what a node is as the source and as the target of an edge."""
    source, target = (_heads_first(x @ lin.weight.t() + lin.bias, conv.heads) for lin in (conv.lin_l, conv.lin_r))
    return source, target


def _heads_first(h: Tensor, heads: int) -> Tensor:
    return h.view(len(h), heads, -1).transpose(0, 1).contiguous()


@dataclass(frozen=True)
class Kind:
    """How one encoder family is made and run."""

    make: Callable[[int, int, int], nn.Module]  # (inputs, outputs, heads) -> layer
    layer: Callable[..., Tensor]
    activation: Callable[[Tensor], Tensor]
    many_heads: bool = False


LAYERS: dict[str, Kind] = {
    "gcn": Kind(lambda i, o, _: GCNConv(i, o), gcn_layer, F.relu),
    "gat": Kind(lambda i, o, heads: GATConv(i, o, heads=heads), gat_layer, F.elu, many_heads=True),
    "sage": Kind(lambda i, o, _: SAGEConv(i, o), sage_layer, F.relu),
}
GAT_V2 = Kind(lambda i, o, heads: GATv2Conv(i, o, heads=heads), gatv2_layer, F.elu, many_heads=True)
ATTENTION = ("v1", "v2")


@dataclass(frozen=True)
class GNNSpec:
    """Everything needed to build an encoder again, saved beside its weights."""

    name: str = "gcn"
    num_features: int = 1
    hidden: int = 16  # size of z; GAT's inner layers have `heads` times as much
    layers: int = 2
    dropout: float = 0.5  # between layers
    heads: int = 8  # GAT only
    row_normalise: bool = True  # divide a node's features by their sum
    input_dropout: float = 0.0  # of the features
    attention: str = "v1"  # GAT only: Velickovic et al. 2018, or v2, Brody et al. 2022

    def __post_init__(self) -> None:
        if self.name not in LAYERS:
            raise one_of("encoder", self.name, LAYERS)
        for setting, low, high in [("layers", 1, 64), ("hidden", 1, 65536), ("heads", 1, 1024)]:
            if not low <= getattr(self, setting) <= high:
                raise SettingError(f"{setting} must lie in {low}..{high}, it is {getattr(self, setting)}")
        for setting in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, setting) < 1:
                raise SettingError(f"{setting} must be at least 0 and below 1, it is {getattr(self, setting)}")
        if self.attention not in ATTENTION:
            raise one_of("attention", self.attention, ATTENTION)
        if self.attention != "v1" and not LAYERS[self.name].many_heads:
            raise SettingError(f"attention is a setting of gat, the encoder is {self.name}")

    @property
    def kind(self) -> Kind:
        return GAT_V2 if self.attention == "v2" else LAYERS[self.name]

    @property
    def trainable(self) -> bool:
        return True

    @property
    def receptive_field(self) -> int:
        """A layer takes one step."""
        return self.layers

    @property
    def multirank(self) -> MultiRank:
        """z is one view, of its full size."""
        return MultiRank.whole(self.hidden)

    @property
    def is_random(self) -> bool:
        """Whether z differs from pass to pass in training."""
        return (self.dropout > 0 and self.layers > 1) or self.input_dropout > 0

    def as_settings(self) -> dict[str, object]:
        """The settings that matter for this kind of encoder."""
        settings = asdict(self)
        del settings["name"], settings["num_features"]
        if not LAYERS[self.name].many_heads:
            del settings["heads"], settings["attention"]
        return settings


class GNN(Encoder):
    """g: Graph -> z of shape (N, hidden). Dropout between layers (and of the features), no activation after the last."""

    spec: GNNSpec

    def __init__(self, spec: GNNSpec) -> None:
        super().__init__()
        self.spec = spec
        kind = spec.kind
        heads = spec.heads if kind.many_heads else 1
        sizes = [spec.num_features] + [spec.hidden * heads] * (spec.layers - 1)
        inner = [kind.make(size, spec.hidden, heads) for size in sizes[:-1]]
        self.convs = nn.ModuleList([*inner, kind.make(sizes[-1], spec.hidden, 1)])

    def forward(self, graph: Graph) -> Tensor:
        kind, p = self.spec.kind, self.spec.input_dropout
        device = next(self.parameters()).device
        x: SparseMatrix | Tensor = features(graph, device, self.spec.row_normalise)
        if p and self.training:
            x = x.dropout(p) if isinstance(x, SparseMatrix) else F.dropout(x, p)
        for depth, conv in enumerate(self.convs):
            if depth:
                x = F.dropout(kind.activation(x), self.spec.dropout, self.training)  # type: ignore[arg-type]
            x = kind.layer(conv, x, graph, device)
        return x  # type: ignore[return-value]
