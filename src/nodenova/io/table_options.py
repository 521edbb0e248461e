"""Options for reading tables of nodes and edges, as one value for Python, the CLI and run.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from nodenova.errors import SettingError, one_of
from nodenova.files.documents import (
    boolean,
    check,
    either,
    list_of,
    map_of,
    nullable,
    number,
    record,
    text,
)

if TYPE_CHECKING:
    from nodenova.io.tables import ReadingOptions
    from nodenova.io.vectors import TextVectors
    from nodenova.progress import Progress

EdgeTypes: TypeAlias = "str | Sequence[str] | Mapping[str, float]"

MAX_WORDS = 20_000
WEIGHTS = ("count", "filter")
REMEMBERED = (
    "id_column", "label_column", "source_column", "target_column", "weight_column", "min_weight",
    "weights", "edge_type_column", "edge_types", "drop_unknown_edges", "delimiter", "encoding",
)  # fmt: skip

READING = record(
    {},
    dict.fromkeys(REMEMBERED, nullable(text))
    | {
        "min_weight": nullable(number()),
        "drop_unknown_edges": boolean,
        "edge_types": nullable(either(text, list_of(text), map_of(number()))),
    },
)


@dataclass(frozen=True)
class TableOptions:
    """Options of `nova.load_graph` for tables; it documents each of them.

    A run remembers in run.json which columns hold ids, labels and edges, how weights and types of
    edges count, and how its files are encoded (`REMEMBERED`). It does not remember features and
    text columns, which its recipe has, nor new nodes and text vectors, which belong to one graph.

    Raises:
        SettingError: If an option has a value that it cannot have.
    """

    id_column: str | None = None
    label_column: str | None = None
    text_columns: Sequence[str] = ()
    features: Sequence[str] | None = None
    new_nodes: str | PathLike[str] | Sequence[object] | None = None
    new_column: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    min_weight: float | None = None
    weights: str | None = None
    edge_type_column: str | None = None
    edge_types: EdgeTypes | None = None
    drop_unknown_edges: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    max_words: int = MAX_WORDS
    text_vectors: TextVectors | None = None

    def __post_init__(self) -> None:
        if isinstance(self.features, str) or isinstance(self.text_columns, str):
            raise SettingError("features and text_columns are lists of names")
        if self.weights is not None and self.weights not in WEIGHTS:
            raise one_of("weights (--weights)", self.weights, WEIGHTS)

    @property
    def counts_weights(self) -> bool:
        """Whether edges are weighted, not only filtered, by their weights."""
        return self.weight_column is not None and self.weights != "filter"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that become features, where they are named."""
        return (*(() if self.features is None else self.features), *self.text_columns)

    def check_edge_types(self) -> None:
        """Raise if edge types are chosen and no column holds them."""
        if parse_edge_types(self.edge_types) is not None and self.edge_type_column is None:
            raise SettingError(
                "edge_types (--edge-types) chooses among the values of a column: "
                "give edge_type_column (--edge-type-column) too"
            )

    def reading(self, progress: Progress) -> ReadingOptions:
        """How a file is opened, as `open_rows` and `read_table` take it."""
        return {"delimiter": self.delimiter, "encoding": self.encoding, "progress": progress}

    def merged_with(self, changes: TableOptions) -> TableOptions:
        """Return options that a run remembers, with those in `changes` that are not the default."""
        values = [(option, getattr(changes, option.name)) for option in fields(self)]
        changed = {
            option.name: value
            for option, value in values
            if value is not option.default and not _is_empty(value)
        }
        return replace(self, **changed)

    def to_json(self) -> dict[str, Any]:
        """Return what run.json stores as "reading": the remembered options that have a value."""
        values = {name: getattr(self, name) for name in REMEMBERED}
        if self.weight_column is not None:
            values["weights"] = self.weights or "count"
        return {name: value for name, value in values.items() if not _is_empty(value)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableOptions:
        """Return the options that run.json stores; raise StorageError where one is damaged."""
        check(document, READING, "run.json: reading")
        values = {name: document[name] for name in REMEMBERED if name in document}
        if "weight_column" in values:
            # Runs that do not name `weights` were made when weights only filtered edges.
            values.setdefault("weights", "filter")
        return cls(**values)


def _is_empty(value: object) -> bool:
    return value is None or value is False or (isinstance(value, (str, tuple)) and not value)


def parse_edge_types(edge_types: EdgeTypes | None) -> dict[str, float] | None:
    """Weight of each edge type by name, as in "cites,writes=0.5"; None means all types alike."""
    if edge_types is None:
        return None
    if isinstance(edge_types, Mapping):
        pairs = [(str(name), str(share)) for name, share in edge_types.items()]
    else:
        texts = edge_types.split(",") if isinstance(edge_types, str) else edge_types
        parts = [str(part).rpartition("=") for part in texts if str(part).strip()]
        pairs = [(name, share) if equals else (share, "1") for name, equals, share in parts]
    shares: dict[str, float] = {}
    for name, weight in pairs:
        try:
            share = float(weight)
        except ValueError:
            share = math.nan
        if not 0 < share < math.inf:
            raise SettingError(
                f"edge_types (--edge-types): the weight of {name.strip()!r} must be a positive "
                f"number, it is {weight.strip()!r}"
            )
        shares[name.strip()] = share
    if not shares:
        raise SettingError("edge_types (--edge-types) names no type of edges")
    return shares
