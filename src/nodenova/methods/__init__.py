"""Methods without labels in phase 2, a file each. Which there are: `registry`."""

from __future__ import annotations

from nodenova.methods.registry import METHODS, Method, choose_encoder, get_method, make_method

__all__ = ["METHODS", "Method", "choose_encoder", "get_method", "make_method"]
