"""The paper's tables as data, to be printed beside ours, and what is known about single cells of them.

Every number of Hou et al. (CIKM 2024) is one run, its classes matched by identity. `remarks` says where a printed cell is
not what it claims. Two kinds are found by arithmetic: a cell that equals a constant predictor, and an All that its own Old
and New contradict. Accuracies on validation nodes are listed; a test checks that the fractions give the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Printed: TypeAlias = "Mapping[str, float]"

# Old, New, All on Cora, CiteSeer, PubMed, Wiki-CS and the average of the four (the paper's "Comparison with SOTA methods").
_COMPARISON = """
gcn  autonovel   19.01   0.00  13.00  11.48   0.00   7.70  69.65   0.00  41.30  30.09   0.00  22.94  32.56   0.00  21.24
gcn  restune     81.58   0.00  55.80  69.75   0.00  46.80  92.24   0.00  55.70  84.62   0.00  59.23  82.05   0.00  54.38
gcn  ncl         46.64   0.00  31.90  27.12   0.00  18.20  69.65   0.00  41.30   4.60   0.00   3.51  37.00   0.00  23.73
gcn  dtc         68.57   0.00  46.90  61.10   0.00  41.00  31.20   0.00  18.50  81.36   0.00  56.93  60.56   0.00  40.83
gcn  gem          0.00  89.87  28.40   0.00  89.67  29.50   0.00 100.00  40.70   0.00  51.26  12.18   0.00  82.70  27.70
gcn  er_gnn       0.00  89.87  28.40   0.00  85.41  28.10   0.00 100.00  40.70   0.00  46.70  11.10   0.00  80.50  27.08
gcn  twp          0.00  90.82  28.70   0.00  89.06  29.30   0.00 100.00  40.70   0.00  51.86  12.33   0.00  82.94  27.76
gcn  cpca        82.46   0.00  56.40  68.85   0.00  46.20  92.92   0.00  55.10  30.05   0.00  22.91  68.57   0.00  45.15
gcn  sword       60.67  37.97  53.50  58.87  35.56  51.20  80.61  42.75  65.20  83.94  39.02  63.99  71.02  38.83  58.47
gat  autonovel   21.05   0.00  14.40  34.43   0.00  23.10  69.65   0.00  41.30  83.27   0.00  28.29  52.10   0.00  26.77
gat  restune     86.26   0.00  59.00  68.85   0.00  46.20  69.65   0.00  41.30   7.41   0.00   5.65  58.04   0.00  38.04
gat  ncl         19.01   0.00  13.00  11.48   0.00   7.70  30.35   0.00  18.00   8.83   0.00   6.73  17.42   0.00  11.36
gat  dtc         70.18   0.00  48.00  68.26   0.00  45.80  69.65   0.00  41.30  83.50   0.00  58.45  72.90   0.00  48.39
gat  gem          0.00  62.03  19.60   0.00  69.60  22.90   0.00 100.00  40.70   0.00  31.09   7.39   0.00  65.68  22.65
gat  er_gnn       0.00  75.32  23.80   0.00  74.47  24.50   0.00 100.00  40.70   0.00  31.09   7.39   0.00  70.22  24.10
gat  twp          0.00  82.59  26.10   0.00  86.93  28.60   0.00 100.00  40.70   0.00  31.09   7.39   0.00  75.15  25.70
gat  cpca        87.57   0.00  59.90  72.43   0.00  48.60  69.65   0.00  41.30   7.49   0.00   5.71  59.29   0.00  38.88
gat  sword       74.71  30.54  60.70  64.23  44.79  56.30  79.79  45.70  65.50  81.02  39.13  62.48  74.94  40.04  61.25
sage autonovel   24.27   0.00  16.60  12.52   0.00   8.40  69.81   0.00  41.40  68.41   0.00  52.15  43.75   0.00  29.64
sage restune     80.48   0.00  53.60  70.38   0.00  47.20  69.65   0.00  41.30  26.12   0.00  19.91  61.66   0.00  40.50
sage ncl         19.01   0.00  13.00  26.97   0.00  18.10  30.35   0.00  18.00   3.29   0.00   2.51  19.91   0.00  12.90
sage dtc         76.32   0.00  52.20  52.46   0.00  35.20  85.33   0.00  50.60  82.22   0.00  62.68  74.08   0.00  50.17
sage gem          0.00  90.19  28.50   0.00  89.97  29.60   0.00 100.00  40.70   0.00  51.26  12.18   0.00  82.86  27.75
sage er_gnn       0.00  86.08  27.20   0.00  88.15  29.00   0.00 100.00  40.70   0.00  51.38  12.21   0.00  81.40  27.28
sage twp          0.00  88.29  27.90   0.00  89.67  29.50   0.00 100.00  40.70   0.00  51.38  12.21   0.00  82.34  27.58
sage cpca        80.12   0.00  54.80  69.45   0.00  46.60  91.23   0.00  54.10   7.49   0.00   5.71  62.07   0.00  40.30
sage sword       69.07  36.71  57.50  59.61  26.75  48.80  64.92  66.83  64.10  84.80  45.65  64.39  69.60  43.99  58.70
"""

# AA, AF on the same datasets and their average.
_FORGETTING = """
gcn  autonovel    9.51 -66.37   5.74 -58.27  34.83 -22.93  15.05 -53.67  16.28 -50.31
gcn  restune     40.79  -3.80  34.88   0.00  46.12  -0.34  42.31   2.02  41.02  -0.53
gcn  ncl         23.32 -38.74  13.56 -42.63  34.83 -22.93   2.30 -78.00  18.50 -45.58
gcn  dtc         34.29 -16.81  30.55  -8.65  15.60 -61.38  40.68  -1.24  30.28 -22.02
gcn  gem         44.94 -85.38  44.84 -69.75  50.00 -92.58  25.63 -82.60  41.35 -82.58
gcn  er_gnn      44.94 -85.38  42.71 -69.75  50.00 -92.58  23.35 -82.60  40.25 -82.58
gcn  twp         45.41 -85.38  44.53 -69.75  50.00 -92.58  25.93 -82.60  41.47 -82.58
gcn  cpca        41.23  -2.92  34.43  -0.90  46.46   0.34  15.03 -52.55  34.29 -14.01
gcn  sword       49.32 -24.71  47.22 -10.88  61.68 -11.97  61.48   1.34  54.92 -11.56
gat  autonovel   10.53 -64.18  17.22 -26.23  34.83 -21.41  41.64  -0.23  26.05 -28.01
gat  restune     43.13   1.03  34.43   8.91  34.83 -21.41   3.71 -76.09  29.02 -22.07
gat  ncl          9.51 -66.22   5.74 -49.18  15.18 -60.71   4.42 -74.67   8.71 -62.70
gat  dtc         35.09 -15.05  34.13   7.60  34.83 -21.41  41.75   0.00  36.45  -7.22
gat  gem         31.02 -85.23  34.80 -60.66  50.00 -91.06  15.55 -83.50  32.84 -80.11
gat  er_gnn      37.66 -85.23  37.24 -60.66  50.00 -91.06  15.55 -83.50  35.11 -80.11
gat  twp         41.30 -85.23  43.47 -60.66  50.00 -91.06  15.55 -83.50  37.58 -80.11
gat  cpca        43.79   2.34  36.22  11.77  34.83 -21.41   3.75 -76.01  29.64 -20.83
gat  sword       52.63 -10.52  54.51   3.57  62.75 -11.27  60.08  -2.48  57.49  -5.18
sage autonovel   12.14 -61.40   6.26 -56.78  34.91 -21.59  34.21 -16.10  21.88 -38.97
sage restune     40.02  -5.19  35.19   1.08  34.83 -21.75  13.06 -58.39  30.83 -21.06
sage ncl          9.51 -66.66  13.49 -42.33  15.18 -61.05   1.65 -81.22   9.95 -62.82
sage dtc         38.16  -9.35  26.23 -16.84  42.67  -6.07  41.11  -2.29  37.04  -8.64
sage gem         45.10 -85.67  44.99 -69.30  50.00 -91.40  25.63 -84.51  41.43 -82.72
sage er_gnn      43.04 -85.67  44.08 -69.30  50.00 -91.40  25.69 -84.51  40.70 -82.72
sage twp         44.15 -85.67  44.84 -69.30  50.00 -91.40  25.69 -84.51  41.17 -82.72
sage cpca        40.06  -5.55  34.73   0.15  45.62  -0.17   3.75 -77.02  31.04 -20.65
sage sword       52.89 -16.60  43.18  -9.69  65.88 -26.48  65.23   0.29  56.79 -13.12
"""

# Old, New-N, All on Cora and CiteSeer, GCN.
_HEADS = """
gcn  autonovel   19.01  21.84  13.00  11.48  48.63   7.70
gcn  ncl         46.64  47.15  31.90  27.12  48.63  18.20
gcn  dtc         68.57  19.94  46.90  61.10  45.90  41.00
gcn  sword       60.67  48.42  53.50  58.87  45.59  51.20
"""

# Old, New, All on Cora and CiteSeer, GCN, by the losses that are left out, in the paper's order; "none" is SWORD.
_ABLATION = """
gcn  omega                 0.00  32.59  10.30   0.00  51.37  16.90
gcn  replay                0.00  37.76  11.30   1.49  44.38  15.60
gcn  replay+omega          0.00  51.90  16.40   0.00  51.37  16.90
gcn  alpha1               82.16   0.00  56.20  69.60   0.00  46.70
gcn  alpha1+replay+omega  35.53   0.00  24.30  34.43   0.00  23.10
gcn  alpha2               63.74  27.22  52.20  59.02  32.83  50.40
gcn  pseudo               72.07   8.98  51.00  58.16  26.99  48.00
gcn  none                 60.67  37.97  53.50  58.87  35.56  51.20
"""

FOUR = ("cora", "citeseer", "pubmed", "wikics", "average")


def _read(text: str, scores: tuple[str, ...], datasets: tuple[str, ...]) -> dict[tuple[str, str, str], Printed]:
    """{(encoder, line, dataset): {score: printed number}}."""
    found: dict[tuple[str, str, str], Printed] = {}
    for encoder, line, *numbers in (row.split() for row in text.strip().splitlines()):
        for i, dataset in enumerate(datasets):
            cell = numbers[i * len(scores) : (i + 1) * len(scores)]
            found[encoder, line, dataset] = dict(zip(scores, map(float, cell), strict=True))
    return found


# {table: {(encoder, method or losses left out, dataset): {score: printed number}}}
PAPER: dict[str, dict[tuple[str, str, str], Printed]] = {
    "comparison": _read(_COMPARISON, ("old", "new", "all"), FOUR),
    "forgetting": _read(_FORGETTING, ("aa", "af"), FOUR),
    "heads": _read(_HEADS, ("old", "new_n", "all"), FOUR[:2]),
    "ablation": _read(_ABLATION, ("old", "new", "all"), FOUR[:2]),
}
LEFT_OUT = tuple(line for _, line, dataset in PAPER["ablation"] if dataset == "cora")

# Test nodes of each class on the public splits, and how many of the classes are old. Of Wiki-CS only the share is known.
TEST_NODES = {
    "cora": ((130, 91, 144, 319, 149, 103, 64), 4),
    "citeseer": ((77, 182, 181, 231, 169, 160), 4),
    "pubmed": ((180, 413, 407), 2),
}
OLD_SHARE = {name: sum(counts[:old]) / sum(counts) for name, (counts, old) in TEST_NODES.items()} | {"wikics": 0.7624}

# Cells that are accuracies on validation nodes: how many of how many were right.
VALIDATION = {
    ("comparison", "gat", "sword", "cora", "new"): (51, 167),
    ("comparison", "gat", "sword", "citeseer", "new"): (73, 163),
    ("comparison", "sage", "sword", "cora", "old"): (230, 333),
    ("ablation", "gcn", "pseudo", "cora", "old"): (240, 333),
    ("ablation", "gcn", "pseudo", "cora", "new"): (15, 167),
    ("ablation", "gcn", "pseudo", "cora", "all"): (255, 500),
    ("ablation", "gcn", "pseudo", "citeseer", "old"): (196, 337),
    ("ablation", "gcn", "pseudo", "citeseer", "new"): (44, 163),
    ("ablation", "gcn", "pseudo", "citeseer", "all"): (240, 500),
}


def printed(table: str, encoder: str, line: str, dataset: str, score: str) -> float | None:
    """The paper's number for a cell, None where it has none (it has no H)."""
    return PAPER.get(table, {}).get((encoder, line, dataset), {}).get(score)


def remarks(table: str, encoder: str, line: str, dataset: str, score: str) -> list[str]:
    """What the printed number of a cell is instead of what it claims, in sentences; mostly nothing."""
    cell = PAPER.get(table, {}).get((encoder, line, dataset), {})
    if score not in cell:
        return []
    found = []
    fraction = VALIDATION.get((table, encoder, line, dataset, score))
    if fraction:
        found.append(f"The paper's number is {fraction[0]}/{fraction[1]}, an accuracy on validation nodes.")
    if (constant := constant_class(cell, dataset)) is not None:
        found.append(
            f"The paper's cell equals a constant predictor: every test node of {dataset} is called class {constant}."
        )
    if score == "all" and not fraction and (should_be := contradicted(cell, dataset)) is not None:
        found.append(
            f"The paper's All contradicts its own Old and New: {100 * OLD_SHARE[dataset]:.2f} % of the test nodes of "
            f"{dataset} are of old classes, which makes it {should_be:.1f}."
        )
    if score == "new_n" and (alone := constant_new(cell["new_n"], dataset)) is not None:
        found.append(f"The paper's New-N equals calling every test node of a new class class {alone} ({dataset}).")
    if table == "forgetting":
        compared = PAPER["comparison"][encoder, line, dataset]
        if constant_class(compared, dataset) is not None:
            found.append("The paper's AA and AF are those of a constant predictor (see the comparison).")
        if score == "aa" and abs(cell["aa"] - (compared["old"] + compared["new"]) / 2) > 0.0151:
            found.append("The paper's AA is not the mean of the Old and New of its comparison.")
    return found


def constant_class(cell: Printed, dataset: str) -> int | None:
    """The class that, said of every test node, gives the cell's Old, New and All; None if there is none."""
    if dataset not in TEST_NODES or not {"old", "new", "all"} <= cell.keys():
        return None
    counts, n_old = TEST_NODES[dataset]
    old, new, everything = sum(counts[:n_old]), sum(counts[n_old:]), sum(counts)
    for c, count in enumerate(counts):
        said = (count / old if c < n_old else 0.0, count / new if c >= n_old else 0.0, count / everything)
        if all(abs(100 * s - cell[score]) < 0.00501 for s, score in zip(said, ("old", "new", "all"), strict=True)):
            return c
    return None


def constant_new(new_n: float, dataset: str) -> int | None:
    """The new class that, said of every test node of new classes, gives this New-N."""
    if dataset not in TEST_NODES:
        return None
    counts, n_old = TEST_NODES[dataset]
    total = sum(counts[n_old:])
    fits = [c for c in range(n_old, len(counts)) if abs(100 * counts[c] / total - new_n) < 0.00501]
    return fits[0] if fits else None


def contradicted(cell: Printed, dataset: str) -> float | None:
    """The All that Old and New give, if it is not the printed one, which has one decimal on Planetoid."""
    if dataset not in OLD_SHARE or not {"old", "new", "all"} <= cell.keys():
        return None
    share = OLD_SHARE[dataset]
    should_be = share * cell["old"] + (1 - share) * cell["new"]
    return should_be if abs(should_be - cell["all"]) > 0.06 else None


_PLANETOID = [(dataset, encoder) for dataset in FOUR[:3] for encoder in ("gcn", "gat", "sage")]

# SWORD in the paper's comparison table: Old, New, All.
SWORD_PAPER = {(d, e): tuple(PAPER["comparison"][e, "sword", d].values()) for d, e in _PLANETOID}

# Which of these are accuracies on validation nodes.
SWORD_PAPER_NOTES = {
    (d, e): f"{score.capitalize()} equals {right}/{nodes}, an accuracy on validation nodes"
    for (table, e, _, d, score), (right, nodes) in sorted(VALIDATION.items(), key=lambda item: FOUR.index(item[0][3]))
    if table == "comparison"
}

# A re-run of the authors' released code with its label leak taken out, matched `block`: Old, New, All as (mean, std).
SWORD_RERUN = {
    ("cora", "gcn"): ((71.3, 4.1), (33.6, 5.2), (59.4, 1.8)),
    ("cora", "gat"): ((71.2, 3.8), (36.5, 8.6), (60.2, 1.7)),
    ("cora", "sage"): ((69.4, 6.2), (37.5, 5.8), (59.3, 3.1)),
    ("citeseer", "gcn"): ((56.1, 2.8), (37.8, 1.4), (50.1, 2.0)),
}
