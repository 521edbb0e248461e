"""Weights of the features of counting, written by tools/learn_counting.py.

Learned on 1,560 tasks of 13 graphs; the weight of `off_size_count` was chosen on 336 tasks of 14
graphs in which the share of new nodes follows from the classes.
Each feature of `nodenova.open_world.count_features` has its mean, its standard deviation, and its
weight for one standard deviation; docs/counting.md.
"""

from __future__ import annotations

Weights = dict[str, tuple[float, float, float]]

# Log-odds of a cell to be new: a constant, then the features of `novelty.CellNovelty`.
ODDS = (0.2228, -2.313, -0.7336, 0.1141, -0.0562)
# Number of new classes, in a mixture and where all nodes are new.
MIXED: Weights = {
    "k": (0.8, 0.432, -0.7261),
    "is_one": (0.06667, 0.2494, 0.1618),
    "excess_scatter": (0.004442, 0.02694, -0.04665),
    "off_scatter_count": (1.363, 0.6941, -0.5721),
    "silhouette": (-0.0667, 0.07431, 0.5216),
    "closest_pair": (1.052, 1.112, -0.08939),
    "closest_pair_excess": (1.167, 0.9044, -0.4818),
    "next_closest_pair": (0.1534, 0.2623, 0.1367),
    "loosest_group": (0.6656, 0.7623, 0.05114),
    "off_loose_cell_count": (0.9437, 0.6101, -0.07284),
    "off_tight_cell_count": (0.9275, 0.6135, -0.3591),
    "off_novel_cell_count": (1.083, 0.6553, -0.5407),
    "off_size_count": (0, 1, -1),
}
STRICT: Weights = {
    "log_k": (1.86, 0.7555, -0.2797),
    "k": (0.8, 0.432, -1.723),
    "is_one": (0.06667, 0.2494, 0.2808),
    "off_scatter_count": (1.173, 0.6686, -0.7564),
    "silhouette": (-0.04891, 0.05199, 0.6491),
    "closest_pair": (1.351, 1.147, -0.2206),
    "closest_pair_excess": (1.44, 0.9689, -0.4759),
    "next_closest_pair": (0.1839, 0.259, 0.7357),
    "loosest_group": (0.7945, 0.8071, 0.09955),
    "off_loose_cell_count": (1.004, 0.6428, -0.5971),
    "off_tight_cell_count": (0.9086, 0.6098, -0.9065),
    "excess_plain_scatter": (0.01368, 0.0612, -0.3762),
}
# Whether any class is new.
NEW: Weights = {
    "known_likeness_1": (0.6447, 0.2495, -0.6549),
    "known_likeness_2": (0.6333, 0.2276, -0.5558),
    "known_likeness_4": (0.6244, 0.2115, -0.4214),
    "new_share_4": (0.5072, 0.1574, 0.5807),
    "scatter_without_new": (0.09742, 0.1276, 0.05842),
    "log_p_simes": (-2.039, 2.832, -0.09406),
    "log_p_bonferroni": (-2.015, 2.841, -0.06401),
    "log_p_pooled": (-5.055, 2.942, -0.5945),
    "novel_share": (0.3044, 0.1564, 0.4829),
    "surely_novel_share": (0.1465, 0.1961, 0.3519),
}
NEW_BIAS = 0.8493
# Score of a new class; 5% of the tasks without new classes exceed it.
THRESHOLD = 0.2857
