"""Open-world discovery: known and new classes mixed, their number unknown."""
