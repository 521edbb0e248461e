"""Where labels live. Nothing in `methods`, `losses`, `training` or `discover` may import from here."""
