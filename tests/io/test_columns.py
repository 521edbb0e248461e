"""Ids, keys and addresses are no features, unless somebody asks for them; whatever the form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import nodenova as nova

N = 40
BASE: dict[str, list[Any]] = {
    "id": [f"n{i}" for i in range(N)],
    "size": [i % 7 + 0.25 for i in range(N)],
}
# a column of what is no feature, and why
KEYS: dict[str, tuple[str, list[Any], str]] = {
    "whole numbers": ("facebook_id", [7 * i * i + 11 for i in range(N)],
        "has another value in every row, as ids have"),
    "whole numbers of any name": ("x", [7 * i * i + 11 for i in range(N)],
        "has another value in every row, as ids have"),
    "texts, nearly all different": ("x", [f"SKU-{i * 17}" for i in range(N - 1)] + ["SKU-0"],
        "has another value in nearly every row, as ids have"),
    "texts": ("x", [f"SKU-{i * 17}" for i in range(N)],
        "has another value in every row, as ids have"),
    "half of them different, called a key": ("author_id", [i % 25 * 1000 for i in range(N)],
        "has many values and a name that ids have"),
    "addresses": ("page", [f"https://a.org/{i % 30}" for i in range(N)], "holds addresses"),
    "mail": ("contact", [f"p{i % 30}@a.org" for i in range(N)], "holds addresses"),
}  # fmt: skip


def forms(table: dict[str, list[Any]], folder: Path) -> list[Any]:
    rows = list(zip(*table.values(), strict=True))
    lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    records = [json.dumps(dict(zip(table, row, strict=True))) for row in rows]
    (folder / "nodes.jsonl").write_text("\n".join(records) + "\n")
    frames = [pd.DataFrame(table), pl.DataFrame(table), pa.table(table)]
    return [folder / "nodes.csv", folder / "nodes.jsonl", *frames]


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_no_feature_and_that_is_said(tmp_path: Path, kind: str) -> None:
    name, cells, why = KEYS[kind]
    for nodes in forms({**BASE, name: cells}, tmp_path):
        loaded = nova.load_graph(nodes=nodes)
        assert loaded.graph.feature_names == ("size",)
        assert any(f"column {name!r} {why}; not used, unless given" in n for n in loaded.notes)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_is_asked_for_is_a_feature(tmp_path: Path, kind: str) -> None:
    name, cells, _ = KEYS[kind]
    for nodes in forms({**BASE, name: cells}, tmp_path):
        loaded = nova.load_graph(nodes=nodes, features=[name])
        assert all(f.startswith(name) for f in loaded.graph.feature_names)
        assert not any("not used" in note for note in loaded.notes)


# columns that say something of a node, however different
FEATURES: dict[str, tuple[str, list[Any], str]] = {
    "numbers": ("x", [i * 1.37 for i in range(N)], "x"),
    "whole numbers that hardly repeat": ("bytes", [7 * i * i + 11 for i in range(N - 1)] + [18],
        "bytes"),
    "whole numbers that repeat": ("year", [1990 + i % 20 for i in range(N)], "year"),
    "a category that is called a key": ("venue_id", ["KDD", "VLDB"] * (N // 2), "venue_id=KDD"),
    "addresses that repeat": ("host", ["https://a.org", "https://b.org"] * (N // 2),
        "host=https://a.org"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FEATURES)
def test_what_says_something_stays(tmp_path: Path, kind: str) -> None:
    name, cells, feature = FEATURES[kind]
    for nodes in forms({**BASE, name: cells}, tmp_path):
        names = nova.load_graph(nodes=nodes).graph.feature_names
        assert feature in names or f"{feature}>=1994" in names


def test_in_few_rows_numbers_may_differ_by_chance() -> None:
    table = pl.DataFrame({"id": list("abcd"), "size": [5, 9, 7, 12]})
    loaded = nova.load_graph(nodes=table)
    assert loaded.graph.feature_names == ("size",)
    assert any("as ids have; used nevertheless" in note for note in loaded.notes)
