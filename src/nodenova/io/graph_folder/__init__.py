"""Write graph folders: from tables of any size with DuckDB, or from graphs in memory."""
