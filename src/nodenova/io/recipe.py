"""Recipe that turns the columns, values and words of a table into features.

It is fitted to one table and gives the same features for later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.display import plural
from nodenova.errors import GraphError, brief
from nodenova.files.documents import (
    boolean,
    check,
    list_of,
    nullable,
    number,
    one_of,
    record,
    text,
    whole,
)
from nodenova.graph import canonical_order
from nodenova.io.columns import MAX_VALUES, Column, infer_column, stay_numbers
from nodenova.io.table_options import TableOptions
from nodenova.io.tables import Table
from nodenova.io.vectors import VectorSource
from nodenova.io.words import bag_of_words, join_texts, select_words
from nodenova.progress import Progress, no_progress

MAX_NEIGHBORS = 2_000  # nodes of highest degree that are features where a graph has no others
MAX_DENSE = 2**26  # entries (256 MiB) up to which features stay numbers because of vectors
VECTOR_FIELDS = ("width", "means", "part_cuts")  # of a column of vectors
NEIGHBORS = "neighbours"  # the key in all files
_COLUMN = record(
    {"name": text, "kind": one_of("number", "count", "yes/no", "category", "vector")},
    {
        "cuts": list_of(number()),
        "centre": number(),
        "spread": number(0, above=True),
        "values": list_of(text),
        "has_other": boolean,
        "has_missing": boolean,
        "width": whole(0, 2**20),
        "means": list_of(number()),
        "part_cuts": list_of(list_of(number())),
    },
    exact=True,
)
_SOURCE = record(
    {"kind": one_of("model", "function", "file"), "name": text, "width": whole(1, 2**20)},
    {"fingerprint": text},
    exact=True,
)
RECIPE = record(
    {
        "columns": list_of(_COLUMN),
        "text_columns": list_of(text),
        "words": list_of(text),
        "cut": boolean,
        NEIGHBORS: list_of(text),
    },
    {"vectors": nullable(_SOURCE)},
)


@dataclass(frozen=True)
class TableEncoder:
    """How rows of a table become features: fitted to one table, the same for any later one.

    Attributes:
        columns: Columns other than text, with how each becomes features.
        text_columns: Columns whose words are features.
        words: Words with a feature.
        cut: Whether numbers are cut at their quintiles, as they stand among words.
        neighbors: Ids of nodes; being linked to one is a feature. Only where there are no others.
        vectors: Origin of the text vectors beside the features, if any.
    """

    columns: tuple[Column, ...] = ()
    text_columns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    cut: bool = True
    neighbors: tuple[str, ...] = ()
    vectors: VectorSource | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """Columns of the table that become features."""
        return (*(column.name for column in self.columns), *self.text_columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(d,) names of the features, in the order of `transform`."""
        names = [name for column in self.columns for name in column.feature_names(self.cut)]
        taken = set(names)
        names += [f"text:{word}" if word in taken else word for word in self.words]
        return (*names, *(f"next to {node}" for node in self.neighbors))

    def transform(
        self,
        table: Table,
        edges: np.ndarray,
        ids: Sequence[str],
        bag: sp.csr_array | None = None,
        progress: Progress = no_progress,
    ) -> tuple[sp.csr_array | np.ndarray, list[str]]:
        """Compute the features of the rows of a table.

        Args:
            table: Table of nodes.
            edges: (2, E) numbers of nodes.
            ids: (N,) ids of the nodes.
            bag: (N, words) which node has which word, if that is known already.
            progress: Function `progress(phase, share)`, called as reading advances.

        Returns:
            (N, d) features, and notes on values that are missing or unknown.
        """
        notes: list[str] = []
        blocks = []
        if missing := [name for name in self.column_names if name not in table.columns]:
            what = plural(len(missing), "column is", "columns are")
            notes.append(
                f"{table.source}: {what} missing ({', '.join(missing)}); their features are zero"
            )
        for place, column in enumerate(self.columns, start=1):
            width = len(column.feature_names(self.cut))
            if column.name in missing:
                blocks.append(sp.csr_array((len(table), width), dtype=np.float32))
                continue
            block, unknown = column.block(table.columns[column.name], self.cut, table.source)
            blocks.append(block)
            if unknown:
                what = plural(unknown, "cell has an unknown value", "cells have unknown values")
                notes.append(f"{table.source}: column {column.name!r}: {what}; ignored")
            progress("reading columns", place / len(self.columns))
        if self.words and bag is not None:
            blocks.append(bag)
        elif self.words:
            block, unknown = bag_of_words(
                join_texts(table, self.text_columns), self.words, progress
            )
            blocks.append(block)
            if unknown:
                what = plural(unknown, "different word is", "different words are")
                notes.append(f"{table.source}: {what} too rare, too common or unknown; ignored")
        if self.neighbors:
            blocks.append(_next_to(edges, ids, self.neighbors))
        x = sp.csr_array(sp.hstack(blocks, format="csr", dtype=np.float32))
        return (x if self.cut else x.toarray()), notes

    def as_json(self) -> dict[str, Any]:
        """Return plain values, for `TableEncoder.from_json`."""
        document = asdict(self)
        # Fields that came with vectors are left out where there are none, as in earlier files.
        for column in document["columns"]:
            if column["kind"] != "vector":
                for key in VECTOR_FIELDS:
                    del column[key]
        if self.vectors is None:
            del document["vectors"]
        return {**document, NEIGHBORS: document.pop("neighbors")}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableEncoder:
        """Return the recipe that `as_json` describes.

        Raises:
            GraphError: If the document is not a recipe.
        """
        check(document, RECIPE, "the recipe for features", GraphError)
        columns = tuple(
            replace(
                column,
                cuts=tuple(column.cuts),
                values=tuple(column.values),
                means=tuple(column.means),
                part_cuts=tuple(map(tuple, column.part_cuts)),
            )
            for column in (Column(**fields) for fields in document["columns"])
        )
        origin = document.get("vectors")
        recipe = cls(
            columns,
            text_columns=tuple(document["text_columns"]),
            words=tuple(document["words"]),
            cut=document["cut"],
            neighbors=tuple(document[NEIGHBORS]),
            vectors=None if origin is None else VectorSource(**origin),
        )
        recipe._check_parts()
        return recipe

    def _check_parts(self) -> None:
        """Raise for cuts that do not ascend, values that are there twice, vectors of no length."""
        what = "the recipe for features: damaged,"
        for column in self.columns:
            name = f"column {brief(column.name)}"
            if any(list(cuts) != sorted(set(cuts)) for cuts in (column.cuts, *column.part_cuts)):
                raise GraphError(f"{what} the cuts of {name} are not ascending")
            if len(set(column.values)) < len(column.values):
                raise GraphError(f"{what} {name} has a value twice")
            lengths = {len(column.means), len(column.part_cuts)}
            if column.kind == "vector" and (not column.width or lengths - {0} - {column.width}):
                raise GraphError(f"{what} the vectors of {name} have different lengths")
            if len(lengths) > 1:
                raise GraphError(f"{what} {name} has means or cuts of its vectors, but not both")
        for names in (self.words, self.neighbors):
            if len(set(names)) < len(names):
                raise GraphError(f"{what} a word or a node is there twice")

    def same_columns(self, options: TableOptions) -> TableOptions:
        """Return `options` that fit a recipe to the columns of this one; no vectors are needed."""
        features = tuple(column.name for column in self.columns)
        return replace(
            options, features=features, text_columns=self.text_columns, text_vectors=None
        )

    def extended(self, fresh: TableEncoder) -> TableEncoder:
        """Return the recipe with the values and words of one fitted to a later table.

        Cuts of numbers stay, so that every feature means what it meant.
        """
        now = {column.name: column for column in fresh.columns}
        return replace(
            self,
            columns=tuple(_extend_column(column, now.get(column.name)) for column in self.columns),
            words=_union(self.words, fresh.words),
            neighbors=_union(self.neighbors, fresh.neighbors) if self.neighbors else (),
        )

    @classmethod
    def fit(
        cls,
        table: Table,
        edges: np.ndarray,
        ids: Sequence[str],
        options: TableOptions,
        not_features: Sequence[str],
        notes: list[str],
        progress: Progress = no_progress,
    ) -> tuple[TableEncoder, sp.csr_array | None]:
        """Fit a recipe to a table.

        Args:
            table: Table of nodes.
            edges: (2, E) numbers of nodes: features where the table has none.
            ids: (N,) ids of the nodes.
            options: Columns to use, and the largest number of words.
            not_features: Columns that are no features, such as ids and labels.
            notes: List that gets a sentence on each assumption.
            progress: Function `progress(phase, share)`, called as reading advances.

        Returns:
            The recipe, and (N, words) which node has which word.
        """
        chosen = options.features is not None
        columns = feature_columns(table, options, not_features)
        inferred = [(name, infer_column(table, name, chosen, notes)) for name in columns]
        texts, used = sort_columns(options.text_columns, inferred)
        words: tuple[str, ...] = ()
        bag = None
        if texts:
            text = join_texts(table, texts)
            words, bag = select_words(text, options.max_words, table.source, notes, progress)
        if used or words:
            as_numbers = [
                column.block(table.columns[column.name], False, table.source)[0] for column in used
            ]
            entries = sum(block.nnz for block in as_numbers)
            width = sum(block.shape[1] for block in as_numbers)
            cut = is_cut(table, used, entries, width, len(words), notes)
            return cls(used, texts, words, cut=cut), bag
        order = canonical_order(ids)
        degree = np.bincount(edges.ravel(), minlength=len(ids))
        top = order[most_linked(degree[order], table.source, notes)]
        return cls(neighbors=tuple(str(ids[node]) for node in top)), None


def feature_columns(
    table: Table, options: TableOptions, not_features: Sequence[str]
) -> Sequence[str]:
    """Columns other than text that may become features: those of the options, or all others."""
    if options.features is not None:
        return options.features
    return [name for name in table.columns if name not in {*not_features, *options.text_columns}]


def sort_columns(
    text_columns: Sequence[str], columns: Sequence[tuple[str, Column | str | None]]
) -> tuple[tuple[str, ...], tuple[Column, ...]]:
    """Columns of text and other columns by name: the order of a table's columns means nothing."""
    texts = {*text_columns, *(name for name, how in columns if how == "text")}
    used = [how for _, how in columns if isinstance(how, Column)]
    return tuple(sorted(texts)), tuple(sorted(used, key=lambda column: column.name))


def is_cut(
    table: Table,
    columns: Sequence[Column],
    entries: int,
    width: int,
    num_words: int,
    notes: list[str],
) -> bool:
    """Whether numbers are cut at their quintiles.

    As numbers, the features of `columns` have this many nonzero `entries` and this `width`.
    """
    cut = bool(num_words) or not stay_numbers(columns, entries, len(table) * width)
    vectors = [column.name for column in columns if column.means]
    if cut and vectors:
        cut = len(table) * (width + num_words) > MAX_DENSE
        if cut:
            notes.append(
                f"{table.source}: beside {width + num_words:,} other features the numbers of "
                f"{', '.join(vectors)} are cut at their quintiles"
            )
    return cut


NO_FEATURES = "no column can be a feature"


def most_linked(degree: np.ndarray, source: str, notes: list[str]) -> np.ndarray:
    """Ascending numbers of the nodes that are features where there are no others.

    `degree` is in canonical order, so that ids decide between nodes of the same degree.
    """
    linked = max(int((degree > 0).sum()), 1)
    top = np.sort(np.argsort(-degree, kind="stable")[: min(MAX_NEIGHBORS, linked)])
    notes.append(
        f"{source}: {NO_FEATURES}; using structure only: "
        f"which of the {len(top):,} nodes with most edges a node is, or is linked to"
    )
    return top


def _next_to(edges: np.ndarray, ids: Sequence[str], neighbors: Sequence[str]) -> sp.csr_array:
    place = {node: i for i, node in enumerate(neighbors)}
    column = np.array([place.get(str(node), -1) for node in ids])
    everyone = np.arange(len(ids))
    a, b = np.concatenate([edges, edges[::-1], [everyone, everyone]], axis=1)
    a, b = a[column[b] >= 0], column[b[column[b] >= 0]]
    x = sp.csr_array((np.ones(len(a), dtype=np.float32), (a, b)), shape=(len(ids), len(neighbors)))
    x.data[:] = 1.0
    return x


def _extend_column(column: Column, now: Column | None) -> Column:
    if now is None or column.kind != now.kind:
        return column
    values = column.values
    if column.kind == "category" and not column.has_other:
        values = _union(values, now.values)[: max(MAX_VALUES, len(values))]
    return replace(column, values=values, has_missing=column.has_missing or now.has_missing)


def _union(known: tuple[str, ...], further: tuple[str, ...]) -> tuple[str, ...]:
    """The known values, followed by those that are not among them."""
    return tuple(dict.fromkeys((*known, *further)))
