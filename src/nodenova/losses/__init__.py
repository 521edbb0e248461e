"""Losses as pure functions with the paper's letters.

Tensors in, one tensor out: no weight, no epoch, no random draw.
"""
