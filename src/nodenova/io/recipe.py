"""A recipe that meets a later table: what it knew stays, what came gets features of its own.

A recipe: which columns, values and words of a user's table are which features.

Learned once, used on later files too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.io.columns import MAX_VALUES, Column, infer_column, stay_numbers
from nodenova.io.table_options import MAX_WORDS
from nodenova.io.tables import Table
from nodenova.io.vectors import VectorSource
from nodenova.io.words import bag_of_words, join_texts, select_words
from nodenova.progress import Progress, no_progress

MAX_NEIGHBORS = 2_000  # nodes of highest degree that serve as features when a graph has no others
MAX_DENSE = 2**26  # entries of features that are kept as numbers for the sake of vectors: 256 MiB
VECTOR_FIELDS = ("width", "means", "part_cuts")  # of a column


@dataclass(frozen=True)
class TableEncoder:
    """How the rows of a table become features: learned from one file, the same for any later one.

    Attributes:
        columns: How each column but text becomes features.
        text_columns: Columns whose words are features.
        words: Those with a feature.
        cut: Numbers are cut at their quintiles (they stand among words), or stay numbers.
        neighbors: Ids of nodes; being linked to one is a feature. Only where a graph has no others.
        vectors: Where the vectors of texts came from that stand beside the features, if any.
    """

    columns: tuple[Column, ...] = ()
    text_columns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    cut: bool = True
    neighbors: tuple[str, ...] = ()
    vectors: VectorSource | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """Columns of the table that features are made of."""
        return (*(column.name for column in self.columns), *self.text_columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(d,) names of the features, in the order in which `transform` gives them."""
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
        """Give the rows of a table their features.

        Args:
            table: Of nodes.
            edges: (2, E) numbers of nodes.
            ids: (N,) of the nodes.
            bag: (N, words) who has which word, if that has been counted already.
            progress: Function `progress(phase, share)`, called as reading advances.

        Returns:
            (N, d) features, and notes on what the recipe did not know or did not find.
        """
        notes: list[str] = []
        blocks = []
        lacking = [column.name for column in self.columns if column.name not in table.columns]
        lacking += [name for name in self.text_columns if name not in table.columns]
        if lacking:
            notes.append(
                f"{table.source}: {len(lacking)} columns are not there ({', '.join(lacking)}); "
                "their features are zero"
            )
        for number, column in enumerate(self.columns):
            width = len(column.feature_names(self.cut))
            if column.name in lacking:
                blocks.append(sp.csr_array((len(table), width), dtype=np.float32))
                continue
            block, unknown = column.block(table.columns[column.name], self.cut, table.source)
            blocks.append(block)
            if unknown:
                notes.append(
                    f"{table.source}: column {column.name!r}: {unknown:,} cells hold values "
                    "that are not known; ignored"
                )
            progress("reading columns", (number + 1) / len(self.columns))
        if self.words and bag is not None:
            blocks.append(bag)
        elif self.words:
            block, unknown = bag_of_words(
                join_texts(table, self.text_columns), self.words, progress
            )
            blocks.append(block)
            if unknown:
                notes.append(
                    f"{table.source}: {unknown:,} different words are too rare, "
                    "too common or not known; ignored"
                )
        if self.neighbors:
            blocks.append(_next_to(edges, ids, self.neighbors))
        x = sp.csr_array(sp.hstack(blocks, format="csr", dtype=np.float32))
        return (x if self.cut else x.toarray()), notes

    def as_json(self) -> dict[str, Any]:
        """Plain values, for `TableEncoder.from_json`."""
        document = asdict(self)
        for column in document["columns"]:
            if column["kind"] != "vector":  # as files without vectors always were
                for key in VECTOR_FIELDS:
                    del column[key]
        if self.vectors is None:  # as files without vectors of texts always were
            del document["vectors"]
        return {**document, "neighbours": document.pop("neighbors")}  # as the first files have it

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableEncoder:
        """Read what `as_json` has written.

        Raises:
            GraphError: It is something else.
        """
        try:
            lists = {key: tuple(document[key]) for key in ("text_columns", "words")}
            made = [Column(**column) for column in document["columns"]]
            columns = tuple(
                replace(
                    column,
                    cuts=tuple(column.cuts),
                    values=tuple(column.values),
                    means=tuple(column.means),
                    part_cuts=tuple(map(tuple, column.part_cuts)),
                )
                for column in made
            )
            neighbors, said = tuple(document["neighbours"]), document.get("vectors")
            vectors = None if said is None else VectorSource(**said)
            cut = bool(document["cut"])
            return cls(columns, cut=cut, neighbors=neighbors, vectors=vectors, **lists)
        except (KeyError, TypeError) as error:
            raise GraphError(f"this is not a recipe for features ({error})") from None

    @classmethod
    def fit(
        cls,
        table: Table,
        edges: np.ndarray,
        ids: Sequence[str],
        *,
        columns: Sequence[str] | None,
        text_columns: Sequence[str],
        not_features: Sequence[str] = (),
        max_words: int = MAX_WORDS,
        notes: list[str],
        progress: Progress = no_progress,
    ) -> tuple[TableEncoder, sp.csr_array | None]:
        """Learn how to read a table.

        Args:
            table: Of nodes.
            edges: (2, E) numbers of nodes: features where the table has none.
            ids: (N,) of the nodes.
            columns: The chosen columns; None for all that say something of a node.
            text_columns: Columns whose words become features.
            not_features: Columns that are something else, as ids and labels are.
            max_words: The most words that become features, those of highest TF-IDF.
            notes: Gets a sentence on what was assumed or left out.
            progress: Function `progress(phase, share)`, called as reading advances.

        Returns:
            The recipe, and who has which of its words, so that they need not be counted again.
        """
        chosen = columns is not None
        if columns is None:
            columns = [c for c in table.columns if c not in {*not_features, *text_columns}]
        inferred = [(name, infer_column(table, name, chosen, notes)) for name in columns]
        texts = (*text_columns, *(name for name, how in inferred if how == "text"))
        used = tuple(how for _, how in inferred if isinstance(how, Column))
        words: tuple[str, ...] = ()
        bag = None
        if texts:
            text = join_texts(table, texts)
            words, bag = select_words(text, max_words, table.source, notes, progress)
        if used or words:
            as_numbers = [
                column.block(table.columns[column.name], False, table.source)[0] for column in used
            ]
            entries = sum(block.nnz for block in as_numbers)
            width = sum(block.shape[1] for block in as_numbers)
            cut = is_cut(table, used, entries, width, len(words), notes)
            return cls(used, texts, words, cut=cut), bag
        degree = np.bincount(edges.ravel(), minlength=len(ids))
        top = most_linked(degree, table.source, notes)
        return cls(neighbors=tuple(str(ids[node]) for node in top)), None


def is_cut(
    table: Table,
    columns: Sequence[Column],
    entries: int,
    width: int,
    num_words: int,
    notes: list[str],
) -> bool:
    """Whether numbers are cut at their quintiles.

    Args:
        table: Of nodes.
        columns: Those used.
        entries: Of their features as numbers, how many are not zero.
        width: How many features these are.
        num_words: How many words have a feature.
        notes: Gets a sentence where vectors are cut.
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


def most_linked(degree: np.ndarray, source: str, notes: list[str]) -> np.ndarray:
    """Numbers of the nodes that serve as features where there are no others, ascending."""
    linked = max(int((degree > 0).sum()), 1)
    top = np.sort(np.argsort(-degree, kind="stable")[: min(MAX_NEIGHBORS, linked)])
    notes.append(
        f"{source}: no column to make features from; structure only: "
        f"the features of a node are which of the {len(top):,} nodes with most edges it is, "
        "or is linked to"
    )
    return top


def _next_to(edges: np.ndarray, ids: Sequence[str], neighbors: Sequence[str]) -> sp.csr_array:
    place = {node: number for number, node in enumerate(neighbors)}
    column = np.array([place.get(str(node), -1) for node in ids])
    everyone = np.arange(len(ids))
    a, b = np.concatenate([edges, edges[::-1], [everyone, everyone]], axis=1)
    a, b = a[column[b] >= 0], column[b[column[b] >= 0]]
    x = sp.csr_array((np.ones(len(a), dtype=np.float32), (a, b)), shape=(len(ids), len(neighbors)))
    x.data[:] = 1.0
    return x


def extended(recipe: TableEncoder, fresh: TableEncoder) -> tuple[TableEncoder, int]:
    """The recipe of an earlier table, with what a later table of the same columns has beyond it.

    Cuts of numbers stay, so that every feature means what it meant. Which features came can be told
    by their names.

    Args:
        recipe: Learned from the earlier table.
        fresh: Learned from the same columns of the later one.

    Returns:
        The recipe for both, and how many features came.

    Examples:
        >>> spring = TableEncoder(text_columns=("title",), words=("oak", "pan"))
        >>> summer = TableEncoder(text_columns=("title",), words=("elm", "oak"))
        >>> extended(spring, summer)[0].feature_names
        ('oak', 'pan', 'elm')
    """
    now = {column.name: column for column in fresh.columns}
    both = replace(
        recipe,
        columns=tuple(_widened(column, now.get(column.name)) for column in recipe.columns),
        words=_joined(recipe.words, fresh.words),
        neighbors=_joined(recipe.neighbors, fresh.neighbors) if recipe.neighbors else (),
    )
    return both, len(both.feature_names) - len(recipe.feature_names)


def _widened(column: Column, now: Column | None) -> Column:
    if now is None or column.kind != now.kind:
        return column
    values = column.values
    if column.kind == "category" and not column.has_other:
        values = _joined(values, now.values)[: max(MAX_VALUES, len(values))]
    return replace(column, values=values, has_missing=column.has_missing or now.has_missing)


def _joined(known: tuple[str, ...], further: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are known, and behind them the others."""
    there = set(known)
    return (*known, *(one for one in further if one not in there))
