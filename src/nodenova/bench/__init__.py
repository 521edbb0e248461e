"""The benchmark: plans, rows, sweeps, and the tables and figures made of rows."""
