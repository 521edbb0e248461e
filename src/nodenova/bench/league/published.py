"""What others have published under their own protocols; league.json holds it and its sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, TypeAlias

_FILE = resources.files("nodenova.bench.league") / "league.json"
FACTS: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))
Printed: TypeAlias = "Mapping[tuple[str, str], float]"  # {(dataset, score): number}


def printed(bench: str) -> dict[str, Printed]:
    """The lines that others have in a bench.

    Args:
        bench: One of the league.

    Returns:
        For each name its numbers; nothing where nobody has published any.

    Examples:
        >>> printed("gnnsafe")["GNNSafe"]["cora", "auroc"]
        92.8
    """
    facts = FACTS.get(bench, {"scores": [], "datasets": [], "lines": []})
    places = [(dataset, score) for dataset in facts["datasets"] for score in facts["scores"]]
    found = dict[str, Printed]()
    for name, *numbers in facts["lines"]:
        cells = dict(zip(places, numbers, strict=True))
        found[name] = {place: value for place, value in cells.items() if value is not None}
    return found


def source(bench: str) -> str:
    """Where the numbers are from.

    Args:
        bench: One of the league.

    Returns:
        Sentences; "" where there are no numbers.
    """
    return str(FACTS.get(bench, {}).get("source", ""))
