"""What the evidence for a number of new classes is worth: written by learn_counting.py.

Learnt on 243 tasks of 13 graphs. A feature has its mean, its spread, and what a spread
from the mean is worth.
"""

from __future__ import annotations

Weights = dict[str, tuple[float, float, float]]

# Of a cell to be new: a constant, then the features of `nodenova.prism.coverage.Coverage`.
ODDS = (0.312, -2.65, -0.591, 0.123, -0.048)
# Of a number of new classes, in a mixture and where all nodes are new.
MIXED: Weights = {
    "linear": (0.8, 0.432, -0.9123),
    "one": (0.06667, 0.2494, 0.1627),
    "wide": (0.002772, 0.02014, -0.02993),
    "off_scatter": (1.406, 0.6893, -0.6759),
    "silhouette": (-0.07137, 0.07548, 0.4909),
    "alike_next": (0.1696, 0.2837, 0.4314),
    "loosest": (0.7379, 0.8439, 0.05127),
    "off_loose": (0.9567, 0.6333, -0.2763),
    "off_tight": (0.9535, 0.6339, -6.545e-05),
    "off_covered": (1.16, 0.6695, -0.6683),
}
STRICT: Weights = {
    "log": (1.86, 0.7555, -0.1107),
    "linear": (0.8, 0.432, -0.5019),
    "one": (0.06667, 0.2494, 0.1523),
    "wide": (0.01188, 0.05102, -0.2531),
    "off_scatter": (1.155, 0.642, -0.5922),
    "silhouette": (-0.04763, 0.05141, 0.2725),
    "off_silhouette": (0.7536, 0.6413, -0.1492),
    "alike_much": (1.446, 1.021, -0.1269),
    "alike_next": (0.1543, 0.2777, 0.4413),
    "loosest": (0.7729, 0.8079, 0.1097),
    "smallest": (-2.52, 1.066, 0.6434),
    "off_loose": (1.015, 0.6383, -0.7448),
}
# Of anything being new.
NEW: Weights = {
    "like_old_1": (0.6687, 0.2613, -0.6469),
    "like_old_2": (0.6512, 0.2369, -0.6137),
    "like_old_4": (0.6423, 0.2101, -0.1673),
    "share_4": (0.6195, 0.1407, 0.4486),
    "scatter_0": (0.09161, 0.1231, 0.2383),
    "simes": (-2.368, 2.955, -0.08509),
    "bonferroni": (-2.348, 2.966, -0.07821),
    "pooled": (-5.605, 2.84, -0.6114),
    "share": (0.2988, 0.1539, 0.4302),
    "sure": (0.1576, 0.1864, 0.3779),
}
NEW_BIAS = 1.375
# Above it something is said to be new: 5 % of tasks with nothing new are.
THRESHOLD = 0.7622
