"""What a user says of edges: which columns they are in, which count, and how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from nodenova.errors import SettingError, one_of

WEIGHTS = ("count", "filter")
EdgeTypes: TypeAlias = "str | Sequence[str] | Mapping[str, float]"


class EdgeColumns(NamedTuple):
    """Names of columns of a table of edges; None where they are to be found, or not there.

    Attributes:
        source: One end of an edge.
        target: The other end.
        weight: What it weighs.
        type: Of which type it is.
    """

    source: str | None = None
    target: str | None = None
    weight: str | None = None
    type: str | None = None


@dataclass(frozen=True)
class EdgeOptions:
    """How a table of edges is read.

    Attributes:
        columns: Which.
        min_weight: Edges with a weight below it are left out.
        weights: "count" in smoothing, or only "filter".
        shares: What each type of edges weighs, by name; None for all types alike.
        drop_unknown: Leave out edges to nodes that are not there, instead of refusing them.

    Raises:
        SettingError: Options contradict each other.
    """

    columns: EdgeColumns
    min_weight: float | None = None
    weights: str = "count"
    shares: Mapping[str, float] | None = None
    drop_unknown: bool = False

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise one_of("weights (--weights)", self.weights, WEIGHTS)
        if self.shares is not None and self.columns.type is None:
            raise SettingError(
                "edge_types (--edge-types) chooses among the values of a column: "
                "give edge_type_column (--edge-type-column) too"
            )

    @property
    def counts_weights(self) -> bool:
        """Whether weights of edges count."""
        return self.columns.weight is not None and self.weights == "count"


def shares_of(edge_types: EdgeTypes | None) -> dict[str, float] | None:
    """What each type of edges weighs, by its name; None where nobody has chosen.

    Args:
        edge_types: "cites,writes=0.5", a list of such names, or names and numbers.

    Raises:
        SettingError: A weight is no positive number, or no type is named.

    Examples:
        >>> shares_of("cites,writes=0.5")
        {'cites': 1.0, 'writes': 0.5}
    """
    if edge_types is None:
        return None
    if isinstance(edge_types, Mapping):
        pairs = [(str(name), str(share)) for name, share in edge_types.items()]
    else:
        listed = edge_types.split(",") if isinstance(edge_types, str) else edge_types
        parts = [str(part).rpartition("=") for part in listed if str(part).strip()]
        pairs = [(name, share) if equals else (share, "1") for name, equals, share in parts]
    shares: dict[str, float] = {}
    for name, text in pairs:
        try:
            share = float(text)
        except ValueError:
            share = np.nan
        if not 0 < share < np.inf:
            raise SettingError(
                f"edge_types (--edge-types): the weight of {name.strip()!r} must be a positive "
                f"number, it is {text.strip()!r}"
            )
        shares[name.strip()] = share
    if not shares:
        raise SettingError("edge_types (--edge-types) names no type of edges")
    return shares
