"""What the evidence for a number of new classes is worth, by learn_counting.py.

Learnt on 1,560 tasks of 13 graphs. A feature has its mean, its spread,
and what a spread from the mean is worth.
"""

from __future__ import annotations

Weights = dict[str, tuple[float, float, float]]

# Of a cell to be new: a constant, then the features of `nodenova.open_world.novelty.Coverage`.
ODDS = (0.2228, -2.313, -0.7336, 0.1141, -0.0562)
# Of a number of new classes, in a mixture and where all nodes are new.
MIXED: Weights = {
    "linear": (0.8, 0.432, -0.7261),
    "one": (0.06667, 0.2494, 0.1618),
    "wide": (0.004442, 0.02694, -0.04665),
    "off_scatter": (1.363, 0.6941, -0.5721),
    "silhouette": (-0.0667, 0.07431, 0.5216),
    "alike": (1.052, 1.112, -0.08939),
    "alike_much": (1.167, 0.9044, -0.4818),
    "alike_next": (0.1534, 0.2623, 0.1367),
    "loosest": (0.6656, 0.7623, 0.05114),
    "off_loose": (0.9437, 0.6101, -0.07284),
    "off_tight": (0.9275, 0.6135, -0.3591),
    "off_covered": (1.083, 0.6553, -0.5407),
}
STRICT: Weights = {
    "log": (1.86, 0.7555, -0.2797),
    "linear": (0.8, 0.432, -1.723),
    "one": (0.06667, 0.2494, 0.2808),
    "off_scatter": (1.173, 0.6686, -0.7564),
    "silhouette": (-0.04891, 0.05199, 0.6491),
    "alike": (1.351, 1.147, -0.2206),
    "alike_much": (1.44, 0.9689, -0.4759),
    "alike_next": (0.1839, 0.259, 0.7357),
    "loosest": (0.7945, 0.8071, 0.09955),
    "off_loose": (1.004, 0.6428, -0.5971),
    "off_tight": (0.9086, 0.6098, -0.9065),
    "wide_plain": (0.01368, 0.0612, -0.3762),
}
# Of anything being new.
NEW: Weights = {
    "like_old_1": (0.6447, 0.2495, -0.6549),
    "like_old_2": (0.6333, 0.2276, -0.5558),
    "like_old_4": (0.6244, 0.2115, -0.4214),
    "share_4": (0.5072, 0.1574, 0.5807),
    "scatter_0": (0.09742, 0.1276, 0.05842),
    "simes": (-2.039, 2.832, -0.09406),
    "bonferroni": (-2.015, 2.841, -0.06401),
    "pooled": (-5.055, 2.942, -0.5945),
    "share": (0.3044, 0.1564, 0.4829),
    "sure": (0.1465, 0.1961, 0.3519),
}
NEW_BIAS = 0.8493
# Above it something is said to be new: 5 % of tasks with nothing new are.
THRESHOLD = 0.2857
