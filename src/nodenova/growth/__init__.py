"""Graphs that grow: how much one has changed, a representation fitted anew, two runs compared."""
