"""Prism's encoder (encoder, svd, degree), calibration and classifier (lda)."""

from __future__ import annotations
