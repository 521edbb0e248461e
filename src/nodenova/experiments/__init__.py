"""Running methods under one protocol: a run, its rows, its folder."""
