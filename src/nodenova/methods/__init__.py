"""Methods that get no labels in phase 2, one per file; `registry` lists them."""

from __future__ import annotations

from nodenova.methods.registry import METHODS, Method, choose_encoder, get_method

__all__ = ["METHODS", "Method", "choose_encoder", "get_method"]
