"""Encoders g: Graph -> z."""

ENCODER_NAMES = ("prism", "gcn", "gat", "sage")  # known without importing PyTorch
