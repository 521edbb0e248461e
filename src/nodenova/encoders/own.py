"""Encoders of one's own: a module of PyTorch as it is, with x and edge_index in, z out.

A class takes (number of features, size of z) and settings with defaults; its `forward` takes x
(N, d) and edge_index (2, E), and edge_weight (E,) if it has such an argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from nodenova.errors import SettingError, brief, one_of
from nodenova.files.own_code import Origin
from nodenova.graph import Graph
from nodenova.nn.encoder import TrainedEncoder
from nodenova.nn.multirank import MultiRank
from nodenova.nn.sparse import features, quiet_torch

OWN = "own"  # `name` of such an encoder in a saved model
MAX_DENSE = 2**31  # numbers of x as one dense table
RING = 8  # nodes of the probe that have edges
CLOSE = 1e-3  # difference of a probe by rounding, relative to its largest number


@dataclass(frozen=True)
class OwnClass:
    """A user's class: its name, its settings with their defaults, and the file it is from."""

    name: str
    module: type[nn.Module]
    settings: Mapping[str, Any] = field(compare=False)
    weighs: bool  # whether `forward` takes edge weights
    origin: Origin | None = None

    @classmethod
    def of(cls, module: type[Any], origin: Origin | None = None) -> OwnClass:
        """Look at a class; a SettingError if it cannot be an encoder."""
        name = module.__name__ if origin is None else origin.class_name
        full = name if origin is None else origin.name
        if not issubclass(module, nn.Module):
            raise SettingError(f"{full} is not an encoder: it must be a torch.nn.Module")
        defaults = _defaults(module, full)
        forward = _parameters(module.forward)[1:]  # without self
        if len(forward) < 2:
            raise SettingError(
                f"{full} is not an encoder: it needs a function forward(self, x, edge_index)"
            )
        # PyTorch Geometric's models take the argument even where a layer cannot use it.
        weighs = "edge_weight" in [each.name for each in forward]
        weighs = weighs and getattr(module, "supports_edge_weight", True)
        return cls(name, module, defaults, weighs, origin)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise unless these are settings of the class, with values of their types."""
        for key, value in settings.items():
            if key not in self.settings:
                raise one_of(f"setting of {self.name}", key, ["hidden", *self.settings])
            kind = type(self.settings[key])
            wanted: Any = {int: Integral, float: Real}.get(kind, kind)
            if not isinstance(value, wanted) or (kind is not bool and isinstance(value, bool)):
                raise SettingError(f"{key} must be {kind.__name__}, it is {brief(value)}")

    def build(self, spec: OwnSpec) -> nn.Module:
        """A new module; a SettingError if its constructor fails or its state cannot be saved."""
        self.check(spec.settings)
        inputs = spec.num_features + spec.vector_size
        try:
            module = self.module(inputs, spec.hidden, **spec.settings)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise SettingError(
                f"{self.name}({inputs}, {spec.hidden}, ...) failed ({reason})"
            ) from error
        for key, value in module.state_dict().items():
            if not isinstance(value, Tensor):
                raise SettingError(
                    f"{self.name}: {key} in its state is no tensor, so it cannot be saved"
                )
        return module


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Parameters of a function by name, without *args and **kwargs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _defaults(module: type[nn.Module], full: str) -> dict[str, Any]:
    """Settings of a class: arguments after the two sizes whose default is a number or a word."""
    sizes, rest = _parameters(module)[:2], _parameters(module)[2:]
    if len(sizes) < 2:
        raise SettingError(
            f"{full} is not an encoder: its constructor must take the number of features and the "
            "size of z"
        )
    bare = [each.name for each in rest if each.default is each.empty]
    if bare:
        raise SettingError(f"{full}: every setting needs a default, {bare[0]} has none")
    plain = (bool, int, float, str)
    return {each.name: each.default for each in rest if isinstance(each.default, plain)}


@dataclass(frozen=True)
class OwnSpec:
    """Everything but the class and the weights, saved beside them.

    Attributes:
        name: Name of the class.
        num_features: Number of columns of a graph's x.
        hidden: Size of z.
        row_normalize: Whether a node's features are divided by their sum.
        vector_size: Number of columns of the text vectors beside x; 0 without them.
        residual: Whether a linear layer of z is added to z; see `OwnEncoder.last_layer`.
        settings: Settings of the class that were given.
    """

    name: str
    num_features: int
    hidden: int = 16
    row_normalize: bool = True
    vector_size: int = 0
    residual: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trainable(self) -> bool:
        """True: whatever it does not freeze itself is trained."""
        return True

    @property
    def receptive_field(self) -> None:
        """None: how far it looks is not known."""

    @property
    def multirank(self) -> MultiRank:
        """z as one view, at its full size."""
        return MultiRank.whole(self.hidden)

    @property
    def is_random(self) -> bool:
        """True: it may have dropout."""
        return True

    def as_settings(self) -> dict[str, object]:
        """The settings that a stage records."""
        vectors = {"vector_size": self.vector_size} if self.vector_size else {}
        own = {"hidden": self.hidden, "row_normalize": self.row_normalize, **vectors}
        return own | dict(self.settings)

    def to_json(self) -> dict[str, Any]:
        """The spec in a saved model."""
        return asdict(self) | {"name": OWN, "class": self.name, "settings": {**self.settings}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> OwnSpec:
        """The inverse of `to_json`."""
        own = {key: value for key, value in document.items() if key != "class"}
        return cls(**own | {"name": document["class"]})


class OwnEncoder(TrainedEncoder):
    """g: Graph -> z of shape (N, hidden), by a module of a user's class."""

    spec: OwnSpec

    def __init__(self, spec: OwnSpec, kind: OwnClass) -> None:
        super().__init__(spec)
        self.kind = kind
        self.module = kind.build(spec)
        self.residual = _residual(spec.hidden) if spec.residual else None
        # A module without a weight has a device, too.
        self.register_buffer("place", torch.zeros(0), persistent=False)
        self.place: Tensor
        if any(is_lazy(each) for each in self.parameters()):
            with torch.no_grad():
                self.eval()(self._probe_graph())
            self.train()
        frozen = (name for name, each in self.named_parameters() if not each.requires_grad)
        self.frozen = frozenset(frozen)

    def forward(self, graph: Graph) -> Tensor:
        """(N, hidden) z of all nodes."""
        x, device, name = self.inputs(graph), self.place.device, self.spec.name
        options: dict[str, Tensor | None] = {}
        if self.kind.weighs:
            options["edge_weight"] = _tensor(graph, "edge_weight", device)
        version = x._version
        z = self.module(x, _tensor(graph, "edge_index", device), **options)
        if x._version != version:
            raise SettingError(f"{name}: forward changes x in place; let it work on a copy")
        wanted = (graph.num_nodes, self.spec.hidden)
        if not isinstance(z, Tensor) or z.shape != wanted or not z.is_floating_point():
            got = brief(z) if not isinstance(z, Tensor) else f"{z.dtype} {tuple(z.shape)}"
            raise SettingError(f"{name}: forward returned {got}, not numbers of the shape {wanted}")
        z = z.float()
        return z if self.residual is None else z + self.residual(z)

    def inputs(self, graph: Graph) -> Tensor:
        """(N, d + k) features, and text vectors beside them, as one dense table."""
        size = graph.num_nodes * (graph.num_features + self.spec.vector_size)
        if size > MAX_DENSE:
            raise SettingError(
                f"{self.spec.name} gets x as one table of {size:,} numbers, at most {MAX_DENSE:,} "
                "are possible: use gcn, gat, sage or prism, or fewer features"
            )
        device, normalize = self.place.device, self.spec.row_normalize

        def build() -> Tensor:
            x = features(graph, device, normalize)
            if isinstance(x, Tensor):
                return x
            assert isinstance(x.csr, Tensor)
            return x.csr.to_dense()

        x = graph.cached(("dense features", device, normalize), build)
        if not self.spec.vector_size:
            return x
        return torch.cat([x, self.vector_columns(graph)], dim=1)

    def requires_grad_(self, requires_grad: bool = True) -> OwnEncoder:
        """Train or freeze the weights; those that the class itself froze stay frozen."""
        for name, each in self.named_parameters():
            each.requires_grad_(requires_grad and name not in self.frozen)
        return self

    def fresh(self, **settings: Any) -> OwnEncoder:
        own = {key: value for key, value in settings.items() if key in self.kind.settings}
        spec = replace(
            self.spec,
            hidden=settings.get("hidden", self.spec.hidden),
            residual=False,
            settings={**self.spec.settings, **own},
        )
        new = OwnEncoder(spec, self.kind).to(self.place.device)
        if spec.vector_size:
            new.vector_mean, new.vector_scale = self.vector_mean.clone(), self.vector_scale.clone()
        return new

    def last_layer(self) -> Sequence[nn.Parameter]:
        """W and b of a layer z + W z + b, added with zeros: the module's own is not known."""
        if self.residual is None:
            self.residual = _residual(self.spec.hidden).to(self.place.device)
            self.spec = replace(self.spec, residual=True)
        return list(self.residual.parameters())

    @torch.no_grad()
    def probe(self) -> Tensor | None:
        """z (9, hidden) of a small fixed graph, by which a saved model finds another class out.

        None where the module cannot run on it.
        """
        was_training = self.training
        try:
            z = self.eval()(self._probe_graph())
        except Exception:  # it needs a graph of its own kind
            return None
        finally:
            self.train(was_training)
        return z.cpu() if bool(torch.isfinite(z).all()) else None

    def is_same(self, before: Tensor) -> bool:
        """Whether the probe is the one that was saved, but for rounding."""
        z = self.probe()
        most = CLOSE * max(float(before.abs().max()), 1.0)
        return z is not None and z.shape == before.shape and bool((z - before).abs().max() <= most)

    def _probe_graph(self) -> Graph:
        """A ring and a node without edges, with the same numbers every time."""
        nodes = np.arange(RING + 1)[:, None]

        def table(columns: int) -> np.ndarray:
            return ((31 * nodes + 17 * np.arange(columns)) % 7 / 7.0).astype(np.float32)

        ring = np.arange(RING)
        beside = (ring + 1) % RING
        links = sp.csr_array((np.ones(RING), (ring, beside)), shape=(RING + 1,) * 2)
        edges = np.stack((links + links.T).nonzero()).astype(np.int64)
        vectors = table(self.spec.vector_size) if self.spec.vector_size else None
        return Graph(table(self.spec.num_features), edges, nodes[:, 0], vectors=vectors)


def _residual(hidden: int) -> nn.Linear:
    """A linear layer of zeros."""
    layer = nn.Linear(hidden, hidden)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _tensor(graph: Graph, part: str, device: torch.device) -> Tensor | None:
    """An array of a graph as a tensor, made once per device."""
    values = getattr(graph, part)
    if values is None:
        return None

    def build() -> Tensor:
        with quiet_torch():
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    return graph.cached((part, device), build)
