"""Columns that tell nodes apart and say nothing of what they are: ids, keys, addresses."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

NEARLY_ALL = 0.95  # share of the nodes with a text of their own, from which on it is a key
MIN_NODES = 20  # in fewer nodes values may all differ by chance
HALF = 0.5  # the same share where name or values look like those of a key
KEY_NAME = re.compile(
    r"(?:^|[_\W])(?:id|key|uuid|guid|uri|url|link|href|doi|isbn|hash|sha1|sha256|md5|e-?mail)$"
    r"|(?<=[a-z])(?:I[dD]|Key|U[rR][iIlL])$",
)
ADDRESS = re.compile(r"(?:https?|ftp)://\S+|www\.\S+|[^\s@]+@[^\s@]+\.\w+|doi:\S+|10\.\d{4,}/\S+")


def is_key_name(name: str) -> bool:
    """Whether a column is called as keys are.

    Examples:
        >>> [is_key_name(name) for name in ("facebook_id", "paperId", "URL", "grid", "valid")]
        [True, True, True, False, False]
    """
    return bool(KEY_NAME.search(name) or KEY_NAME.search(name.lower()))


def key_reason(name: str, values: Collection[str] | np.ndarray, nodes: int) -> str:
    """Why a column is taken for a key; "" where it is not.

    Args:
        name: Of the column.
        values: Those that occur in it, once each: texts or whole numbers.
        nodes: N.

    Examples:
        >>> key_reason("code", [f"x{i}" for i in range(40)], nodes=40)
        'has another value in every row, as ids have'
        >>> key_reason("page", ["http://a.org/1", "http://a.org/2"], nodes=3)
        'holds addresses'
        >>> key_reason("venue", ["KDD", "VLDB"], nodes=40)
        ''
    """
    share = len(values) / max(nodes, 1)
    # Sizes and times hardly repeat either: of numbers only those that never do are ids.
    least = 1.0 if isinstance(values, np.ndarray) else NEARLY_ALL
    if share >= least and nodes >= MIN_NODES:
        every = "every row" if len(values) == nodes else "nearly every row"
        return f"has another value in {every}, as ids have"
    if share <= HALF or nodes < 3:
        return ""
    if not isinstance(values, np.ndarray) and all(map(ADDRESS.fullmatch, values)):
        return "holds addresses"
    return "is called as ids are, and has many values" if is_key_name(name) else ""
