"""What the likeness of two classes is worth, by learn_likeness.py.

Learnt on 156 discoveries in 13 graphs.
"""

from __future__ import annotations

# A constant, then what `nodenova.model.similarity.Evidence` tells of pairs and of halves.
PAIRS = (2.08, 1.719, 0.9971, -1.2)
HALVES = (2.599, -2.445, -1.119, -0.6325)
