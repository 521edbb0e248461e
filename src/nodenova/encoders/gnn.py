"""Graph neural networks as encoders.

PyTorch Geometric's layers hold the parameters; the products run on `nn.sparse` and `nn.attention`.
Each `*_layer` function computes what the layer's own `forward` computes (tests/encoders/test_gnn.py
compares the two), from operators that are built once per graph instead of once per call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nodenova.errors import SettingError, one_of
from nodenova.graph import Graph, SampledGraph
from nodenova.nn.attention import attend, attend_v1, edge_segments, score_v2
from nodenova.nn.encoder import TrainedEncoder
from nodenova.nn.multirank import MultiRank
from nodenova.nn.sampling import blocks_of_nodes
from nodenova.nn.sparse import (
    FeaturesAndVectors,
    SparseMatrix,
    features,
    gcn_operator,
    mean_operator,
)
from nodenova.nn.threaded_matmul import PRECISION, autocast, linear

if TYPE_CHECKING:
    from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, SAGEConv

Input: TypeAlias = "SparseMatrix | FeaturesAndVectors | Tensor"


def gcn_layer(conv: GCNConv, x: Input, graph: Graph, device: torch.device) -> Tensor:
    """D^-1/2 (A+I) D^-1/2 x W + b (Kipf & Welling 2017)."""
    return gcn_operator(graph, device) @ _times(x, conv.lin.weight) + conv.bias


def sage_layer(conv: SAGEConv, x: Input, graph: Graph, device: torch.device) -> Tensor:
    """mean_j(x_j) W_l + b + x W_r (Hamilton et al. 2017, mean aggregator)."""
    # Projecting before averaging is the same by linearity, and d0 / hidden times cheaper.
    neighbors = mean_operator(graph, device) @ _times(x, conv.lin_l.weight)
    return neighbors + conv.lin_l.bias + _times(x, conv.lin_r.weight)


def gat_layer(conv: GATConv, x: Input, graph: Graph, device: torch.device) -> Tensor:
    """Attention over neighbors and the node itself (Velickovic et al. 2018), heads concatenated."""
    h = _heads_first(_times(x, conv.lin.weight), conv.heads)
    edges = edge_segments(graph, device)
    out = attend_v1(edges, h, conv.att_src[0], conv.att_dst[0], conv.negative_slope)
    return out.transpose(0, 1).flatten(1) + conv.bias


def gatv2_layer(conv: GATv2Conv, x: Input, graph: Graph, device: torch.device) -> Tensor:
    """The same with the score of Brody et al. 2022: each node may rank neighbors its own way."""
    source, target = gatv2_ends(conv, x)
    edges = edge_segments(graph, device)
    score = score_v2(edges, source, target, conv.att[0], conv.negative_slope)
    return attend(edges, score, source).transpose(0, 1).flatten(1) + conv.bias


def gatv2_ends(conv: GATv2Conv, x: Input) -> tuple[Tensor, Tensor]:
    """W_l x and W_r x, (heads, N, size) each: a node as the source and as the target of an edge."""
    source, target = (
        _heads_first(_times(x, lin.weight) + lin.bias, conv.heads).contiguous()
        for lin in (conv.lin_l, conv.lin_r)
    )
    return source, target


def _times(x: Input, weight: Tensor) -> Tensor:
    """x W^T in float32; a dense product is one of a lower precision within `autocast`."""
    return linear(x, weight).float() if isinstance(x, Tensor) else x @ weight.t()


def _heads_first(h: Tensor, heads: int) -> Tensor:
    return h.view(len(h), heads, -1).transpose(0, 1)


@dataclass(frozen=True)
class LayerKind:
    """How one encoder family is built and run."""

    make: Callable[[int, int, int], nn.Module]  # (inputs, outputs, heads) -> layer
    # (layer, x, graph, device) -> (N, outputs), as PyTorch Geometric's `forward`
    layer: Callable[..., Tensor]
    activation: Callable[[Tensor], Tensor]  # between layers
    many_heads: bool = False  # whether inner layers have several heads


def _conv(name: str, inputs: int, outputs: int, **settings: Any) -> nn.Module:
    """A layer of PyTorch Geometric, imported here because that takes seconds, which Prism saves."""
    import torch_geometric.nn

    return getattr(torch_geometric.nn, name)(inputs, outputs, **settings)


LAYERS: dict[str, LayerKind] = {
    "gcn": LayerKind(lambda i, o, _: _conv("GCNConv", i, o), gcn_layer, F.relu),
    "gat": LayerKind(lambda i, o, h: _conv("GATConv", i, o, heads=h), gat_layer, F.elu, True),
    "sage": LayerKind(lambda i, o, _: _conv("SAGEConv", i, o), sage_layer, F.relu),
}
GAT_V2 = LayerKind(lambda i, o, h: _conv("GATv2Conv", i, o, heads=h), gatv2_layer, F.elu, True)
ATTENTION = ("v1", "v2")
# Settings of how an encoder is run; a model without them is written as before there were any.
RUNNING = {"batch": 0, "neighbors": 10, "precision": "float32"}


@dataclass(frozen=True)
class GNNSpec:
    """Everything needed to build an encoder again, saved beside its weights.

    Attributes:
        name: `gcn`, `gat` or `sage`.
        num_features: Number of columns of a graph's x.
        hidden: Size of z; GAT's inner layers have `heads` times as much.
        layers: Number of layers.
        dropout: Dropout between layers.
        heads: Number of attention heads. GAT only.
        row_normalize: Whether a node's features are divided by their sum.
        input_dropout: Dropout of the features.
        attention: `v1`, Velickovic et al. 2018, or `v2`, Brody et al. 2022. GAT only.
        vector_size: Number of columns of the text vectors, which stand beside x; 0 without them.
        batch: Number of nodes of each step of training; the whole graph in every step if it is 0
            or at least the number of nodes.
        neighbors: Number of neighbors that are drawn per node and layer, with `batch`.
        precision: Type of the numbers in dense products: `float32`; `bfloat16` or `float16` by
            autocast.
    """

    name: str = "gcn"
    num_features: int = 1
    hidden: int = 16
    layers: int = 2
    dropout: float = 0.5
    heads: int = 8
    row_normalize: bool = True
    input_dropout: float = 0.0
    attention: str = "v1"
    vector_size: int = 0
    batch: int = 0
    neighbors: int = 10
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.name not in LAYERS:
            raise one_of("encoder", self.name, LAYERS)
        for setting, low, high in [
            ("layers", 1, 64),
            ("hidden", 1, 65536),
            ("heads", 1, 1024),
            ("batch", 0, 2**31 - 1),
            ("neighbors", 1, 2**31 - 1),
        ]:
            if not low <= getattr(self, setting) <= high:
                raise SettingError(
                    f"{setting} must lie in {low}..{high}, it is {getattr(self, setting)}"
                )
        for setting in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, setting) < 1:
                raise SettingError(
                    f"{setting} must be at least 0 and below 1, it is {getattr(self, setting)}"
                )
        for setting, known in (("attention", ATTENTION), ("precision", tuple(PRECISION))):
            if getattr(self, setting) not in known:
                raise one_of(setting, getattr(self, setting), known)
        if self.attention != "v1" and not LAYERS[self.name].many_heads:
            raise SettingError(f"attention is a setting of gat, the encoder is {self.name}")

    @property
    def kind(self) -> LayerKind:
        """How its layers are built and run."""
        return GAT_V2 if self.attention == "v2" else LAYERS[self.name]

    @property
    def trainable(self) -> bool:
        """Whether it is trained: always."""
        return True

    @property
    def receptive_field(self) -> int:
        """One hop per layer."""
        return self.layers

    @property
    def multirank(self) -> MultiRank:
        """z as one view, at its full size."""
        return MultiRank.whole(self.hidden)

    @property
    def is_random(self) -> bool:
        """Whether z differs between passes in training."""
        return (self.dropout > 0 and self.layers > 1) or self.input_dropout > 0

    def to_json(self) -> dict[str, Any]:
        """The spec in a saved model, without what is unused or usual."""
        unused = {"vector_size": 0, **RUNNING}
        if self.batch:
            del unused["neighbors"]
        return {k: v for k, v in asdict(self).items() if k not in unused or v != unused[k]}

    def as_settings(self) -> dict[str, object]:
        """The settings that this kind of encoder uses."""
        settings = self.to_json()
        del settings["name"], settings["num_features"]
        if not LAYERS[self.name].many_heads:
            del settings["heads"], settings["attention"]
        return settings


class GNN(TrainedEncoder):
    """g: Graph -> z of shape (N, hidden), with dropout and activations between layers."""

    spec: GNNSpec

    def __init__(self, spec: GNNSpec) -> None:
        super().__init__(spec)
        kind = spec.kind
        heads = spec.heads if kind.many_heads else 1
        first = spec.num_features + spec.vector_size
        sizes = [first] + [spec.hidden * heads] * (spec.layers - 1)
        inner = [kind.make(size, spec.hidden, heads) for size in sizes[:-1]]
        self.convs = nn.ModuleList([*inner, kind.make(sizes[-1], spec.hidden, 1)])

    def inputs(self, graph: Graph) -> Input:
        """(N, d + k) features, and text vectors beside them."""
        x = features(graph, next(self.parameters()).device, self.spec.row_normalize)
        if not self.spec.vector_size:
            return x
        vectors = self.vector_columns(graph)
        if isinstance(x, Tensor):
            return torch.cat([x, vectors], dim=1)
        return FeaturesAndVectors(x, vectors)

    def forward(self, graph: Graph) -> Tensor:
        """(N, hidden) z of all nodes."""
        is_batch, size = isinstance(graph, SampledGraph), self.spec.batch
        blocks = 0 < size < graph.num_nodes and not is_batch and not torch.is_grad_enabled()
        layer = self._layer_in_blocks if blocks else self._layer
        device = next(self.parameters()).device
        x: Tensor | None = None
        with autocast(device, self.spec.precision):
            for conv in self.convs:
                if x is not None:
                    x = self.spec.kind.activation(x)
                    x = F.dropout(x, self.spec.dropout, self.training)
                x = layer(conv, x, graph, device)
        assert x is not None  # there is a layer
        return x

    def _layer(
        self, conv: nn.Module, x: Tensor | None, graph: Graph, device: torch.device
    ) -> Tensor:
        """(N, outputs) of a layer; without x (N, inputs) it is the first one."""
        if x is not None:
            return self.spec.kind.layer(conv, x, graph, device)
        first, p = self.inputs(graph), self.spec.input_dropout
        if p and self.training:
            first = F.dropout(first, p) if isinstance(first, Tensor) else first.dropout(p)
        return self.spec.kind.layer(conv, first, graph, device)

    def _layer_in_blocks(
        self, conv: nn.Module, x: Tensor | None, graph: Graph, device: torch.device
    ) -> Tensor:
        """The same without a gradient, block by block: of all nodes only x and the result exist."""
        out: Tensor | None = None
        for ids, part in blocks_of_nodes(graph, self.spec.batch, self.spec.neighbors):
            rows = self._layer(conv, None if x is None else x[part.nodes], part, device)
            out = rows.new_empty(graph.num_nodes, rows.shape[1]) if out is None else out
            out[ids] = rows[np.searchsorted(part.nodes, ids)]
        assert out is not None  # a graph has a node
        return out

    def fresh(self, **settings: Any) -> GNN:
        known = {each.name for each in fields(GNNSpec)}
        spec = replace(self.spec, **{k: v for k, v in settings.items() if k in known})
        new = GNN(spec).to(next(self.parameters()).device)
        new.load_state_dict(dict(self.named_buffers()), strict=False)  # of the text vectors
        return new

    def last_layer(self) -> Sequence[nn.Parameter]:
        """W and b of the last layer: no attention."""
        return [p for p in self.convs[-1].parameters() if p.shape[0] == self.spec.hidden]
