"""Open-world discovery: unlabelled nodes of known and of an unknown number of new classes."""
