"""Everything that holds labels. Code of phase 2 may not import from here (see pyproject.toml)."""
