"""Runs of `nodenova discover`: a discovery as a value, its folder, and what is done with it later."""
