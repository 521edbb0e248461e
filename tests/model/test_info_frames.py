"""What is in each class, as a table of the library that is asked for."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nodenova.errors import SettingError
from nodenova.model.info import ClassInfo, ClassInfos

INFOS = ClassInfos(
    ClassInfo(
        i,
        f"class {i}",
        "",
        "discovered",
        1,
        nearest=None if i else 1,
        size=3 + i,
        representatives=("a", "b"),
    )
    for i in range(2)
)


def test_classes_as_a_table_of_the_library_that_is_asked_for() -> None:
    plain, polars, arrow = (
        INFOS.to_frame(),
        INFOS.to_frame("polars"),
        INFOS.to_frame(backend="pyarrow"),
    )
    assert isinstance(plain, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert list(plain.columns) == polars.columns == arrow.column_names
    for name, expected in (("name", ["class 0", "class 1"]), ("size", [3, 4])):
        assert plain[name].tolist() == expected
        assert polars[name].to_list() == arrow[name].to_pylist() == expected
    assert polars["nearest"].to_list() == arrow["nearest"].to_pylist() == [1, None]
    ids = [["a", "b"]] * 2
    assert polars["representatives"].to_list() == arrow["representatives"].to_pylist() == ids
    with pytest.raises(SettingError, match="one of pandas, polars, pyarrow, not 'dask'"):
        INFOS.to_frame("dask")


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ImportError("polars")

    monkeypatch.setattr("narwhals.from_dict", fail)
    with pytest.raises(SettingError, match="needs polars: pip install polars"):
        ClassInfos().to_frame("polars")
