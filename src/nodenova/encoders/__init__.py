"""Encoders g: Graph -> z."""
