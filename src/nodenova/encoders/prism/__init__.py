"""Prism, read from top to bottom: encoder, degree_features, classifier, calibration, method."""

from __future__ import annotations
