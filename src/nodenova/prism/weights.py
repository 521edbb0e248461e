"""What the evidence for a number of new classes is worth, by learn_counting.py.

Learnt on 390 tasks of 13 graphs. A feature has its mean, its spread, and what a spread
from the mean is worth.
"""

from __future__ import annotations

Weights = dict[str, tuple[float, float, float]]

# Of a cell to be new: a constant, then the features of `nodenova.prism.coverage.Coverage`.
ODDS = (0.312, -2.65, -0.591, 0.123, -0.048)
# Of a number of new classes, in a mixture and where all nodes are new.
MIXED: Weights = {
    "linear": (0.8, 0.432, -0.6106),
    "one": (0.06667, 0.2494, 0.08206),
    "off_scatter": (1.367, 0.7026, -0.5866),
    "silhouette": (-0.07226, 0.07709, 0.3261),
    "alike_much": (1.171, 0.885, -0.03017),
    "alike_next": (0.1942, 0.2832, 0.2534),
    "loosest": (0.7259, 0.8053, 0.1611),
    "off_loose": (0.9622, 0.6318, -0.236),
    "off_covered": (1.151, 0.6642, -0.5316),
}
STRICT: Weights = {
    "log": (1.86, 0.7555, -0.6338),
    "linear": (0.8, 0.432, -1.292),
    "one": (0.06667, 0.2494, 0.1238),
    "wide": (0.01519, 0.06592, -0.1127),
    "off_scatter": (1.127, 0.6413, -0.1991),
    "silhouette": (-0.04654, 0.05109, 0.7059),
    "alike_much": (1.392, 0.97, -0.4939),
    "alike_next": (0.2073, 0.2776, 0.7907),
    "loosest": (0.7261, 0.8064, 0.3481),
    "smallest": (-2.518, 1.07, 0.5596),
    "off_loose": (1.049, 0.6569, -1.228),
    "wide_plain": (0.01433, 0.06487, -0.7995),
}
# Of anything being new.
NEW: Weights = {
    "like_old_1": (0.7087, 0.2633, -0.5451),
    "like_old_2": (0.6899, 0.237, -0.6132),
    "like_old_4": (0.6738, 0.2118, -0.27),
    "share_4": (0.6083, 0.1462, 0.623),
    "simes": (-1.93, 2.804, -0.0988),
    "bonferroni": (-1.905, 2.813, -0.08288),
    "pooled": (-5.105, 2.877, -0.7289),
    "share": (0.2702, 0.1508, 0.5014),
    "sure": (0.1292, 0.1765, 0.3883),
}
NEW_BIAS = 0.8099
# Above it something is said to be new: 5 % of tasks with nothing new are.
THRESHOLD = 0.6451
