"""What pages share: skeleton, style, macros, the map and its scripts, charts, score tables."""
