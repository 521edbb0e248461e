"""Discovery and benchmarks on several machines, by Ray."""
