"""The head of a model as ONNX: embeddings in, classes and probabilities out.

The encoder reads sparse products of a whole graph, for which ONNX has no operator: it stays here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nodenova.errors import SettingError
from nodenova.model.model import Model
from nodenova.nn.heads import Head, LinearHead
from nodenova.review.trust import FLOOR, SLOPE

OPSET, IR_VERSION = 17, 8  # of 2022, which runtimes of today read
SHORTEST = 1e-12  # length that a row is divided by at least, as in torch.nn.functional.normalize


def head_as_onnx(model: Model, names: Sequence[str], shifts: Sequence[float | None] = ()) -> bytes:
    """The content of an ONNX file.

    Input `embedding` (n, hidden); outputs `class` (n,), an id, `probability` (n,) of this class, as
    in predictions.csv, and `probabilities` (n, classes) of the model, before calibration. The
    metadata `classes` has id, name and kind of each class as JSON.
    """
    try:
        import onnx
    except ImportError:
        raise SettingError("--to onnx needs onnx: pip install 'nodenova[onnx]'") from None
    graph = _Graph(onnx)
    logits = _logits(graph, model.head())
    rows = _class_probabilities(graph, model, logits)
    _outputs(graph, model, rows, shifts)
    floats, ids = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    value, num_classes = onnx.helper.make_tensor_value_info, len(model.classes)
    hidden = model.frozen_encoder().spec.hidden
    made = onnx.helper.make_graph(
        graph.nodes,
        "nodenova",
        [value("embedding", floats, ["n", hidden])],
        [
            value("class", ids, ["n"]),
            value("probability", floats, ["n"]),
            value("probabilities", floats, ["n", num_classes]),
        ],
        graph.constants,
    )
    file = onnx.helper.make_model(
        made,
        producer_name="nodenova",
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    classes = [
        {"id": c.id, "name": name, "kind": c.kind}
        for c, name in zip(model.classes, names, strict=True)
    ]
    onnx.helper.set_model_props(file, {"classes": json.dumps(classes, ensure_ascii=False)})
    onnx.checker.check_model(file)
    content: bytes = file.SerializeToString()
    return content


class _Graph:
    """Nodes and constants of an ONNX graph, which get names of their own."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.ascontiguousarray(np.array(value, dtype=dtype))
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cast(self, value: str, dtype: Any, name: str = "") -> str:
        to = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", value, to=to, name=name)


def _logits(graph: _Graph, head: Head) -> str:
    """h(z), as `Head.forward` computes it."""
    u = "embedding"
    if not isinstance(head, LinearHead):
        multirank = head.multirank
        parts = [
            _unit(graph, view * multirank.view_size, rank)
            for view in range(multirank.views)
            for rank in multirank.ranks
        ]
        u = graph.node("Concat", *parts, axis=1)
    weight = graph.constant(head.linear.weight.detach().cpu().numpy())
    bias = graph.constant(head.linear.bias.detach().cpu().numpy())
    logits = graph.node("Gemm", u, weight, bias, transB=1)
    return graph.node("Div", logits, graph.constant(head.temperature))


def _unit(graph: _Graph, start: int, rank: int) -> str:
    """Some columns of z, scaled to unit length."""
    start_stop = (graph.constant([at], np.int64) for at in (start, start + rank))
    part = graph.node("Slice", "embedding", *start_stop, graph.constant([1], np.int64))
    length = graph.node("ReduceL2", part, axes=[1], keepdims=1)
    return graph.node("Div", part, graph.node("Max", length, graph.constant(SHORTEST)))


def _class_probabilities(graph: _Graph, model: Model, logits: str) -> str:
    """(n, classes) probabilities; those of the columns of a merged class are added."""
    ids = [c.id for c in model.classes]
    if model.column_class_ids == tuple(ids):
        return graph.node("Softmax", logits, axis=1, name="probabilities")
    of_class = np.array(model.column_class_ids)[:, None] == np.array(ids)
    columns = graph.node("Softmax", logits, axis=1)
    return graph.node("MatMul", columns, graph.constant(of_class), name="probabilities")


def _outputs(graph: _Graph, model: Model, rows: str, shifts: Sequence[float | None]) -> None:
    """The most likely class, and its probability as `calibrate_first` computes it."""
    ids, num_classes = [c.id for c in model.classes], len(model.classes)
    shifts = list(shifts) or [None] * num_classes
    row = graph.node("ArgMax", rows, axis=1, keepdims=0)
    graph.node("Gather", graph.constant(ids, np.int64), row, name="class")
    p = graph.cast(graph.node("ReduceMax", rows, axes=[1], keepdims=0), np.float64)

    def number(value: float) -> str:
        return graph.constant(value, np.float64)

    one = number(1)
    bounded = graph.node("Min", graph.node("Max", p, number(FLOOR)), number(1 - FLOOR))
    odds = graph.node("Div", bounded, graph.node("Sub", one, bounded))
    shift = graph.constant([s or 0.0 for s in shifts], np.float64)
    log_odds = graph.node("Mul", graph.node("Log", odds), number(SLOPE))
    log_odds = graph.node("Add", log_odds, graph.node("Gather", shift, row))
    exp = graph.node("Exp", graph.node("Neg", log_odds))
    sure = graph.node("Div", one, graph.node("Add", one, exp))
    sure = graph.node("Max", sure, number((1 + 1e-6) / num_classes))
    has_shift = graph.constant([s is not None for s in shifts], np.bool_)
    first = graph.node("Where", graph.node("Gather", has_shift, row), sure, p)
    graph.cast(first, np.float32, name="probability")
