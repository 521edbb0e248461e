"""What pages share: skeleton, style sheet, macros, the map's scripts, score tables."""

from __future__ import annotations
