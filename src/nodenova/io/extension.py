"""A recipe that meets a later table: what it knew stays, what came gets features of its own."""

from __future__ import annotations

from dataclasses import replace

from nodenova.io.columns import Column
from nodenova.io.inference import MAX_VALUES
from nodenova.io.table_encoder import TableEncoder


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
