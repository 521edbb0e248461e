"""Titles of datasets, methods, settings and tables, and the captions of all tables.

A name without a title stands for itself. Titles of methods are in their registries, titles of
scores in `nodenova.evaluation.scores`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodenova.bench.registry import ALL_METHODS, BASELINES

DATASETS = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "wikics": "Wiki-CS",
    "photo": "Photo",
    "computers": "Computers",
    "cs": "CS",
    "physics": "Physics",
    "dblp": "DBLP",
    "wordnet": "WordNet",
    "synthetic:nodes=8000,classes=40,words=2000": "40 planted classes",
    "actor": "Actor",
    "wisconsin": "Wisconsin",
    "chameleon_filtered": "Chameleon, filtered",
    "squirrel_filtered": "Squirrel, filtered",
    "average": "Average",
}
ENCODERS = {"gcn": "GCN", "gat": "GAT", "sage": "GraphSAGE"}
# Order of the lines of a table; methods that are not listed follow.
ORDER = (
    *("autonovel", "restune", "ncl", "dtc", "frozen_kmeans", "never_new", "frost", "simgcd"),
    *(
        "sword",
        "distilled_gnn",
        "prism",
        "gem",
        "er_gnn",
        "twp",
        "cpca",
        "sword_as_released",
        "oracle",
    ),
    *("autonovel_ncd", "ncl_ncd", "dtc_ncd"),
)
METHODS = {name: ALL_METHODS.titles[name] for name in (*ORDER, *ALL_METHODS)}

# The two ways of joining an old head and a new one, where it is not the method's own.
JOINTS = {"concatenated": ", two heads side by side", "untrained": ", joint head alone"}
# SWORD's losses by the setting that weighs them, and the letters of its parameters.
LOSSES = {"pseudo": "L_Ps", "alpha2": "L_Pt", "alpha1": "L_Se", "replay": "L_Re", "omega": "L_Ds"}
PARAMETERS = {"alpha1": "α1", "alpha2": "α2", "eta": "η", "lam": "λ", "k": "k"}
# Lines of the open-world tables: a method, and how unlabelled nodes are given to it.
ENTRANTS = {
    ("prism", "mixed"): "Prism",
    ("prism", "told"): "Prism, given which nodes are new",
    ("prism", "all-new"): "Prism, every unlabelled node taken for new",
    ("gcd", "mixed"): BASELINES.titles["gcd"],
    ("simgcd", "mixed"): "SimGCD, features drawn for labelled nodes",
    ("simgcd_labelled", "mixed"): BASELINES.titles["simgcd_labelled"],
    **{
        (name, "told"): f"{ALL_METHODS.titles[name]}, given which nodes are new"
        for name in ("frost", "sword")
    },
    **{
        (name, "mixed"): BASELINES.titles[name]
        for name in ("phase_1", "leiden", "fastrp", "evoc", "scikit_learn")
    },
}
COUNTERS = {
    name: BASELINES.titles[name]
    for name in ("count", "silhouette", "hdbscan", "scatter", "leiden_count", "evoc_count")
}
COUNTERS |= {"prism": "number given"}
# What phase 2 is given, by whether it has labels of new nodes and of old ones.
LABEL_GROUPS = {
    (True, True): "Labels of new classes (old or new given: task-IL, not given: class-IL)",
    (False, True): "Old nodes with labels, new ones without (NCD: New-N alone)",
    (False, False): "New nodes without labels (old or new given: NCDwF, not given: NC-NCD)",
}


@dataclass(frozen=True)
class Heading:
    """Heading of a table's section in the page; `figures` explains its figures."""

    title: str
    figures: str = ""


CURVES = "One curve per score; bars are one standard deviation over seeds"
TABLES = {
    "comparison": Heading("Comparison"),
    "collapse": Heading("Use of the new classes"),
    "settings": Heading("Settings"),
    "heads": Heading("Task-specific head"),
    "ablation": Heading("Ablation"),
    "forgetting": Heading("Forgetting"),
    "sensitivity": Heading("Sensitivity", f"{CURVES}, the dashed line is the default."),
    "layers": Heading("Number of layers", f"{CURVES}."),
    "confusion": Heading(
        "Confusion matrices",
        "Percent of each true class (lines) by predicted class (columns), mean over seeds, "
        "matched (block). Orange lines separate old classes from new ones.",
    ),
    "tsne": Heading(
        "Maps of the nodes (t-SNE)",
        "Test nodes of one seed, placed by t-SNE of their embeddings, or of the graph's own "
        "features, colored by true class: neighbors are similar, distances between groups mean "
        "little. Circles are old classes, diamonds new ones.",
    ),
    "class-splits": Heading("Random class splits"),
    "mixed": Heading("Old and new mixed"),
    "count": Heading("How many new classes"),
    "stages": Heading("Many stages"),
    "pown": Heading("POWN's protocol"),
    "openima": Heading("OpenIMA's protocol"),
    "gnnsafe": Heading("Old or new"),
    "cfc": Heading("CFC's protocol"),
    "hope": Heading("Heterophily"),
    "closed": Heading("Known classes alone"),
    "clusters": Heading("All nodes in clusters"),
}

# Captions: how the numbers of each table were made and how to read them.

MIN_PAIRS = 5  # with fewer common seeds nothing is claimed
SPREAD = "mean ± sample standard deviation over"
PERCENT = f"Percent of the test nodes, {SPREAD} seeds (number of seeds: column n)."
BLOCK = (
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed."
)
BESIDE = "In parentheses the paper's number: one run, matched by identity."
BEST = (
    "Best bold, runner-up underlined, per block of lines, among methods without labels in phase 2."
)
LABELS = "† was given labels (or old nodes) in phase 2 and is never best."
TESTED = (
    "▲ ▼ better or worse than {}: paired t-test on common {}, Holm-corrected over the table, "
    "p < 0.05, and exact Wilcoxon signed-rank test p < 0.05; △ ▽ by the t-test alone. "
    f"Fewer than {MIN_PAIRS} common {{}}: no claim."
)
TO_SWORD = TESTED.format("SWORD", "seeds", "seeds")
AVERAGE = (
    "Average: over the datasets shown, of our numbers and of the paper's, where all exist; ± as if "
    "the datasets were independent."
)
OPEN_WORLD_LABELS = "† was given labels, old nodes or which nodes are new in phase 2."
TO_PRISM = TESTED.format("Prism", "runs", "runs")
INDUCTIVE = (
    "Inductive: a phase sees the nodes of classes met so far and of its own and earlier sessions, "
    "so the graph grows; where it has grown much, Prism's representation is refitted."
)
OWN_IDS = (
    "own ids: all nodes, where a known class has to keep its id, so that labels count. "
    "old-new: share of nodes on the right side, old or new."
)
CALIBRATED = (
    "Brier: 100 times the mean over nodes of the sum over classes of (p - [class is true])^2. "
    "ECE: expected calibration error, percent. – : the runs give classes alone, or do not store it."
)
DRAWS = f"{SPREAD.capitalize()} draws of classes (number of draws: column n)."

CAPTIONS: Mapping[str, tuple[str, ...]] = {
    "comparison": (
        PERCENT, BLOCK, BESIDE, BEST, LABELS, TO_SWORD, AVERAGE,
        "All can be high while no new class is found at all (never new); "
        "H, the harmonic mean of Old and New, cannot.",
    ),
    "comparison-identity": (
        PERCENT,
        "The discovered class with number i must be the true class i, as the paper counts. "
        "Without labels a method cannot know these numbers, so New is a lottery here: "
        "nothing is marked and nothing is tested.",
        BESIDE, LABELS, AVERAGE,
    ),
    "comparison-inductive": (
        PERCENT,
        "Inductive: a phase sees only nodes of the classes met so far, features and edges of the "
        "others are masked (the paper's text); tested on the whole graph.",
        BLOCK, BESIDE, BEST, LABELS, TO_SWORD, AVERAGE,
    ),
    "collapse": (
        "Does a method use all the classes it has to find? "
        f"{SPREAD.capitalize()} seeds (column n).",
        "Used: number of discovered classes that at least one test node is assigned to, "
        "of those to be found: {}.",
        "Full: percent of the seeds in which all of them are used. "
        "Largest: percent of the test nodes called new that are in the largest discovered class, "
        "over the seeds with any such node.",
        LABELS,
    ),
    "settings": (
        PERCENT, BLOCK,
        "With the exam giving whether a node's class is old or new: Old-N, New-N, All-N. "
        "Without: Old, New, All and H.",
        "† was given labels (or old nodes) in phase 2.",
    ),
    "heads": (
        PERCENT, BLOCK,
        "Old and All by the joint head; New-N: test nodes of new classes only, "
        "by the head for new classes.",
        BESIDE, BEST, LABELS, TO_SWORD,
    ),
    "forgetting": (
        PERCENT, BLOCK,
        "AA: mean of Old and New after phase 2. "
        "AF: Old after phase 2 minus Old after phase 1; negative means forgotten.",
        BESIDE, BEST, LABELS, TO_SWORD, AVERAGE,
    ),
    "ablation": (
        PERCENT, BLOCK, "SWORD with only the losses that have a ✓; the others have weight zero.",
        BESIDE, BEST, TESTED.format("SWORD with all five", "seeds", "seeds"),
    ),
    "sensitivity": (
        PERCENT, BLOCK,
        "SWORD with one parameter changed and all others at their defaults. The paper shows curves "
        "without numbers, and none for k, the number of top activations that must agree.",
    ),
    "layers": (
        PERCENT, BLOCK, "All else at its default. The paper shows curves without numbers.",
    ),
    "class-splits": (
        f"Percent of the test nodes, {SPREAD} random choices of the old classes "
        "(number of choices: column n; seeds of one choice are averaged first).",
        BLOCK,
        "Balanced: the same number of unlabelled nodes of each new class; "
        "as-it-comes: drawn at random from all of them.",
        BEST, LABELS, TESTED.format("SWORD", "class splits", "class splits"),
    ),
    "confusion": (
        "Percent of the nodes of the true class (lines) by predicted class (columns), "
        f"{SPREAD} seeds (number of seeds: column n).",
        BLOCK,
    ),
    "tsne": (
        PERCENT,
        "The maps in numbers: agreement of true and predicted classes over all test nodes (NMI, "
        "ARI), and the share of nodes on the right side, old or new (old-new accuracy). "
        "The panels are in the page.",
        LABELS,
    ),
    "pown": (
        f"Percent, {SPREAD} folds and seeds (number of runs: column n).",
        "POWN's protocol: the fold before the test fold is unlabelled and not graded; everything "
        "that is not labelled is a mixture; the number of classes is given.",
        "all: one matching over all outputs. known: plain accuracy. unknown: nodes of new classes "
        "alone, any output may stand for one. H: harmonic mean of known and unknown, of published "
        "ones too.",
        OWN_IDS,
        "POWN chooses epoch and settings with labels of the validation fold's classes; ours does "
        "not.",
        CALIBRATED, OPEN_WORLD_LABELS, TO_PRISM,
    ),
    "openima": (
        f"Percent, {SPREAD} its ten splits (number of runs: column n).",
        "OpenIMA's protocol: half of the classes seen, 50 training and 50 validation nodes of "
        "each; all other nodes are unlabelled and graded; the number of classes is given.",
        "One matching over all outputs (global): All, Seen, Novel.",
        OWN_IDS, CALIBRATED, OPEN_WORLD_LABELS, TO_PRISM,
    ),
    "gnnsafe": (
        f"Percent, {SPREAD} seeds (number of runs: column n).",
        "Is a node of a known class (test nodes) or of a new one (all nodes)? Cora: classes 4, 5, "
        "6 against 0, 1, 2 on the public split. Photo, CS: classes above 4 against those below, "
        "10% of the known nodes labelled, 10% left out, drawn by the seed.",
        "Prism: the probability of belonging to no known class, after discovery among all "
        "unlabelled nodes, the number of classes given. Phase 1 alone: the log-odds of its cells, "
        "before anything is discovered. AUPR of finding old nodes, FPR95 at 95% of them.",
        "Like ours, GNNSafe trains on the whole graph: features and edges of new nodes are in "
        "every training pass, only their labels are not. Methods marked ++ and DSS-Hybrid also "
        "train on nodes of the exposed class as examples of novelty; ours does not.",
        "Accuracy, Brier and ECE: test nodes of known classes among the known classes.",
        CALIBRATED,
    ),
    "cfc": (
        f"Percent, {SPREAD} seeds of the method (number of runs: column n); the split is fixed.",
        "Classes 0, 2, 3, 5 known, the default of CFC's option; half of their nodes labelled. "
        "Graded: 60% of all other nodes. Every new class counts as one, unknown; how many there "
        "are is not given. Closed: known nodes in their class. Open: new nodes in any discovered "
        "class. Overall: both.",
        "Features: words weighted by their document frequency; no language model. No table of "
        "CFC could be read, and its own list for Cora replaces that option, in ids of another copy "
        "of the graph: nothing is published beside ours.",
        CALIBRATED,
    ),
    "hope": (
        f"Percent, {SPREAD} seeds (number of runs: column n).",
        "The smallest class is new; 60% of each known class labelled, 20% left out, 20% of every "
        "class graded. HOPE does not state its shares: these are ours. Accuracy: known nodes in "
        "their class and new nodes in the discovered one. Chameleon and Squirrel are the filtered "
        "graphs of Platonov et al. (2023), without duplicates: not HOPE's graphs.",
        CALIBRATED,
    ),
    "closed": (
        f"Percent of the test nodes of the public split, {SPREAD} seeds (number of runs: column "
        "n); every class is known.",
        "Published: one model for all graphs, trained on another graph.",
        CALIBRATED,
    ),
    "standings": (
        f"Percent, {SPREAD} runs (column n); splits, seeds and matching as in the tables below.",
        "Above, level with or below: level is a difference of at most two standard errors of ours, "
        "the errors of published numbers being unknown; one run has no error.",
        "Reference: words smoothed over 8 hops, 64 directions, GCD's semi-supervised k-means, "
        "untuned. Goals were set before the runs.",
        "Photo, Computers, CS, Physics and the heterophilous graphs chose no setting.",
    ),
    "clusters": (
        f"{SPREAD.capitalize()} draws of the known classes (number of draws: column n).",
        "Half of the classes known, 20 nodes of each labelled; all other nodes unlabelled; the "
        "number of classes is not given. NMI of all nodes in percent; error: distance of the "
        "number of new classes to the true one; All as in the other tables.",
        "Published: another task, with no label at all; its error is that of all classes.",
        BLOCK, CALIBRATED,
    ),
    "mixed": (
        f"Percent, {SPREAD} random choices of the old classes, half of all "
        "(number of runs: column n).",
        "20 nodes of each old class are labelled; half of the others are held out and graded. "
        "The number of new classes is given.",
        "{}", BLOCK, "Old-new accuracy: share of nodes on the right side, old or new.",
        CALIBRATED, OPEN_WORLD_LABELS, TO_PRISM,
    ),
    "stages": (
        f"Percent, {SPREAD} seeds, each with its own order of the classes "
        "(number of runs: column n).",
        "{} classes: the first are labelled, each session brings unlabelled nodes of the next and "
        "of every class met before. All, Old (classes met before) and New after each session.",
        "{}", BLOCK,
        "mean All: over the sessions. AA: mean accuracy on the classes of each phase after the "
        "last session. kept: accuracy on labelled classes then, as a share of that before the "
        "first.",
        CALIBRATED, OPEN_WORLD_LABELS, TO_PRISM,
    ),
    "count": (
        DRAWS,
        "At least two old classes and one to eight new ones are drawn; classes may be left over.",
        "Error and bias in classes; exact and within one in percent of the draws, of which some "
        "cells have few: 100% of one draw is no rate.",
        "set: numbers that hold the true one with a probability of 80%, where a rule names them.",
    ),
    "count-worth": (
        DRAWS,
        "Percent of held-out nodes when Prism finds the counted number of classes.",
        BLOCK,
        "NMI: of all nodes of the graph.",
        CALIBRATED,
    ),
    "count-alarm": (
        "Percent of the draws in which at least one new class is counted.",
        "Where all of the unlabelled are old this is a false alarm.",
    ),
}  # fmt: skip


def caption(name: str, *texts: str) -> tuple[str, ...]:
    """Return a caption with `texts` filled in; a sentence that stays empty is left out."""
    rest = iter(texts)
    filled = (each.format(next(rest)) if "{}" in each else each for each in CAPTIONS[name])
    return tuple(each for each in filled if each)


def dataset_title(name: str) -> str:
    """Return the title of a dataset, or its name."""
    return DATASETS.get(name, name)


def encoder_title(name: str) -> str:
    """Return the title of an encoder, or its name."""
    return ENCODERS.get(name, name)


def is_trained(encoder: str) -> bool:
    """Whether an encoder in a row is trained: all but Prism's, a user's own among them."""
    return encoder != "prism"


def method_title(name: str) -> str:
    """Return the title of a method, or its name."""
    return METHODS.get(name, name)


def in_order(names: Iterable[str], known: Iterable[str] | Mapping[str, object]) -> list[str]:
    """Return known names in their order, then the others by alphabet.

    Examples:
        >>> in_order({"mine", "pubmed", "cora"}, DATASETS)
        ['cora', 'pubmed', 'mine']
    """
    present, order = set(names), list(known)
    return [name for name in order if name in present] + sorted(present - set(order))
