"""The trained parts of a model, for methods that train them further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodenova.encoders.gnn import GNN
from nodenova.errors import needs_training
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead

if TYPE_CHECKING:
    from nodenova.model.model import Model


def trained_encoder(model: Model, method: str) -> GNN:
    """A copy of a trained encoder, to be trained further.

    Args:
        model: Whose encoder.
        method: The name of the method that needs it, for the error.

    Raises:
        SettingError: The encoder was computed, not trained.
    """
    g = model.encoder()
    if not isinstance(g, GNN):
        raise needs_training(method, g.spec.name)
    return g


def trained_head(model: Model, method: str) -> UnitLinearHead:
    """The joint head of a model as phase 2 trains it further, on z/|z|.

    Phase 1's plain linear rows are read on z/|z| from here on.

    Args:
        model: Whose head.
        method: The name of the method that needs it, for the error.

    Raises:
        SettingError: The encoder was computed, not trained; it has no such head.
    """
    head = linear_head(model, method)
    return head.on_sphere() if isinstance(head, LinearHead) else head


def linear_head(model: Model, method: str) -> Head:
    """The joint head of a model read as it was trained.

    Args:
        model: Whose head.
        method: The name of the method that needs it, for the error.

    Raises:
        SettingError: The encoder was computed, not trained; it has no such head.
    """
    trained_encoder(model, method)
    return model.head()
