"""Runs of `nodenova discover`: a discovery as a value, as a folder, and on later graphs."""
