"""Graph folders are made here: tables of any size with DuckDB, other graphs by converting them."""

from __future__ import annotations
