"""Losses as pure functions with the paper's letters: tensors in, one tensor out, no weight, no epoch, no random draw."""
