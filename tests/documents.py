"""Mutations of JSON documents, for tests of what reads them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from nodenova.errors import NodenovaError

# Values that a reader might not expect anywhere.
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 10**400, 1.5, -1e308, float("inf"), "", "x", "\ud800", "x" * 5000,
    [], [[]], [None], [-1, 0.5, "y"], {}, {"": {}}, {"a" * 2000: 1},
)  # fmt: skip
LONGEST = 300  # letters of a message, beside the path of the file
BAD_CONTENT = (
    b"", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe\x00", b"{}", b"[]", b"null", b"7",
    b"1" * 5000, b'{"a": 1, "a": 2}', b'{"format": NaN}', b'"\\ud800"', b'{"a": "\\udc00"}',
    b'{"format": 1e999}', b"{", b"\x00" * 9,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value; of a long list, of its first and last entries."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in sorted({*range(min(len(value), 4)), *range(max(len(value) - 1, 0), len(value))}):
            yield from places(value[i], (*path, i))


def mutate(document: Any, random: Random) -> Any:
    """Return a copy with one to three values replaced, removed, repeated or renamed."""
    changed = copy.deepcopy(document)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        path = random.choice(list(places(changed)))
        if not path:
            continue
        inside = changed
        for part in path[:-1]:
            inside = inside[part]
        last, action = path[-1], random.randrange(6)
        if action == 0:
            del inside[last]
        elif action == 1 and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[last]))
        elif action == 2 and isinstance(inside, dict):
            inside[random.choice(["x", "name", "", "é" * 99])] = inside.pop(last)
        else:
            inside[last] = copy.deepcopy(random.choice(ODD))
    return changed


def is_refused(read: Callable[[], object], place: Path | None = None) -> bool:
    """Whether a reader refuses; it must do so by one short sentence that is ours."""
    try:
        read()
    except NodenovaError as error:
        message = str(error).replace(str(place), "PLACE")
        assert "\n" not in message, message
        assert len(message) <= LONGEST, message
        return True
    return False


def write(path: Path, document: Any) -> None:
    """Write a document as JSON, with escapes."""
    path.write_text(json.dumps(document))
