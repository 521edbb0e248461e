"""Prism's representation as NumPy has it, for what Prism is compared with in the open world."""

from __future__ import annotations

import numpy as np
import torch

from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.nn.passes import encode
from nodenova.prism.classifier import scaled_features


def features_of(model: Model, graph: Graph, num_classes: int) -> np.ndarray:
    """(N, D) what Prism takes distances on when there are so many classes."""
    g = model.frozen_encoder()
    scale = model.memory.classes.view_scale
    u = scaled_features(g.spec.multirank, encode(g, graph), num_classes, scale, model.lda)
    return u.double().cpu().numpy()


def directions(u: np.ndarray, ids: np.ndarray, num_classes: int) -> np.ndarray:
    """Principal components of some nodes, at unit length.

    Args:
        u: (N, D) features.
        ids: The nodes whose components are taken.
        num_classes: 3/2 times as many components.

    Returns:
        (N, r) for all nodes.

    Examples:
        >>> x = directions(np.array([[0.0, 0], [2, 0], [0, 1]]), np.array([0, 1]), num_classes=1)
        >>> abs(x[:2, 0]).tolist()
        [1.0, 1.0]
    """
    mean = u[ids].mean(axis=0)
    centered = u[ids] - mean
    vectors = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, : (3 * num_classes + 1) // 2]
    x = (u - mean) @ vectors
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def draw_seed() -> int:
    """A seed for NumPy and scikit-learn out of PyTorch's generator, which is seeded."""
    return int(torch.randint(2**31, (1,)))
