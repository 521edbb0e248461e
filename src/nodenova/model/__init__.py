"""The model, its classes, its edits and its files."""
