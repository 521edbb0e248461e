"""Options for tables: what a run stores of them, and how they merge with options given again."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import nodenova as nova
from nodenova.cli.graph_options import HELP
from nodenova.errors import SettingError
from nodenova.io.table_options import REMEMBERED, TableOptions

RUN = TableOptions(
    label_column="topic", weight_column="w", min_weight=0.0, edge_types="cites", delimiter="tab"
)


def test_run_json_stores_the_remembered_options_that_have_a_value() -> None:
    stored = {
        "label_column": "topic", "weight_column": "w", "min_weight": 0.0, "weights": "count",
        "edge_types": "cites", "delimiter": "tab",
    }  # fmt: skip
    options = dataclasses.replace(RUN, text_vectors="model", new_column="new", features=["a"])
    assert options.to_json() == stored
    assert list(options.to_json()) == [name for name in REMEMBERED if name in stored]
    assert TableOptions.from_json(stored) == dataclasses.replace(RUN, weights="count")


def test_runs_of_the_time_when_weights_only_filtered_are_read_so() -> None:
    assert TableOptions.from_json({"weight_column": "w"}).weights == "filter"
    assert not TableOptions.from_json({"weight_column": "w"}).counts_weights
    assert TableOptions.from_json({"unknown": 1}) == TableOptions()


def test_options_given_again_replace_remembered_ones() -> None:
    again = TableOptions(delimiter=",", label_column="", text_vectors="model", min_weight=0.5)
    merged = RUN.merged_with(again)
    expected = {"delimiter": ",", "text_vectors": "model", "min_weight": 0.5}
    assert merged == dataclasses.replace(RUN, **expected)
    assert RUN.merged_with(TableOptions(label_column="class")).label_column == "class"


def test_load_graph_and_the_command_line_take_the_same_options() -> None:
    names = {field.name for field in dataclasses.fields(TableOptions)}
    assert names <= {*inspect.signature(nova.load_graph).parameters}
    assert names - {"max_words"} == {*HELP} - {"graph", "nodes", "edges"}


def test_values_that_an_option_cannot_have_are_refused() -> None:
    with pytest.raises(SettingError, match="lists of names"):
        TableOptions(features="a,b")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"weights \(--weights\)"):
        TableOptions(weights="multiply")
    with pytest.raises(SettingError, match="edge_type_column"):
        TableOptions(edge_types="cites").check_edge_types()
