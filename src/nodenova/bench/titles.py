"""What things are called where people read them: tables, pages, the terminal. A name that is not here stands for itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """`title` heads a column; `name` is for where there is more room."""

    title: str
    meaning: str
    name: str = ""

    @property
    def long(self) -> str:
        return self.name or self.title


# Scores under each matching, in the order in which they are shown.
SCORES = {
    "old": Score("Old", "how many test nodes of old classes got their class"),
    "new": Score("New", "how many test nodes of new classes got the class that stands for theirs"),
    "all": Score("All", "how many of all test nodes are right; it can look good while no new class is found at all"),
    "h": Score("H", "harmonic mean of Old and New: high only when both are, and 0 when either is"),
    "gate": Score("Gate", "how many test nodes land on the right side, old or new, whichever class it is there"),
    "nmi": Score("NMI", "normalised mutual information of true and predicted classes; needs no matching"),
    "ari": Score(
        "ARI", "adjusted Rand index: pairs of nodes rightly kept together or apart; 0 is chance, needs no matching"
    ),
    "old_n": Score("Old-N", "the same as Old in an easier exam: old nodes only, told apart among old classes"),
    "new_n": Score("New-N", "the same as New in an easier exam: new nodes only, told apart by the head for new classes"),
    "all_n": Score(
        "All-N", "the same as All when every node comes with whether its class is old or new: both easier exams"
    ),
}
# Measured once: AA and AF under the headline matching only, the others without any.
ONCE = {
    "aa": Score("AA", "average accuracy: the mean of Old and New (block matching) after the last phase"),
    "af": Score("AF", "average forgetting: Old after phase 2 minus Old after phase 1; negative means forgotten"),
    "new_used": Score("Used", "how many of the discovered classes are said of at least one test node", "New classes used"),
    "new_largest": Score(
        "Largest", "its share of the test nodes that are called new; near 100: the others collapsed", "Largest of them"
    ),
}
SHARES = {"new_all": Score("Full", "percent of the seeds in which every discovered class is used")}
SECONDS = {
    "fit": Score("Seconds, phase 1", "time to learn the old classes"),
    "discover": Score("Seconds, phase 2", "time to discover the new ones"),
}
MATCHINGS = {
    "block": "old classes keep their names and discovered classes are paired with true new ones as well as possible; "
    "an old node called new, or a new node called old, is wrong. The headline.",
    "identity": "the discovered class with number i has to be the true class with number i. Without labels a method "
    "cannot know those numbers, so New is a matter of luck here; only for comparison with papers that count so.",
    "global": "all predicted classes, old ones too, are paired with true classes as well as possible.",
}

DATASETS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "wikics": "Wiki-CS", "average": "Average"}
ENCODERS = {"gcn": "GCN", "gat": "GAT", "sage": "GraphSAGE"}
METHODS = {
    "autonovel": "AutoNovel",
    "restune": "ResTune",
    "ncl": "NCL",
    "dtc": "DTC",
    "frozen_kmeans": "frozen k-means",
    "never_new": "never new (floor)",
    "sword": "SWORD",
    "taught": "GNN taught by Prism",
    "prism": "Prism",
    "gem": "GEM",
    "er_gnn": "ER-GNN",
    "twp": "TWP",
    "cpca": "CPCA",
    "sword_as_released": "SWORD as released",
    "oracle": "oracle (ceiling)",
    "autonovel_ncd": "AutoNovel, NCD",
    "ncl_ncd": "NCL, NCD",
    "dtc_ncd": "DTC, NCD",
}
# The two ways in which an old head and a new one become one, where it is not the method's own.
JOINTS = {"concatenated": ", two heads side by side", "strict": ", joint head alone"}
# SWORD's losses by the setting that weighs them, and the letters of its parameters.
LOSSES = {"pseudo": "L_Ps", "alpha2": "L_Pt", "alpha1": "L_Se", "replay": "L_Re", "omega": "L_Ds"}
PARAMETERS = {"alpha1": "α1", "alpha2": "α2", "eta": "η", "lam": "λ", "k": "k"}


@dataclass(frozen=True)
class Heading:
    """Of a table's section in the page; `figures` says how its figures are read."""

    title: str
    figures: str = ""


TABLES = {
    "comparison": Heading("Comparison"),
    "collapse": Heading("Use of the new classes"),
    "settings": Heading("Settings"),
    "heads": Heading("Task-specific head"),
    "ablation": Heading("Ablation"),
    "forgetting": Heading("Forgetting"),
    "sensitivity": Heading(
        "Sensitivity",
        "One curve a score; bars are one standard deviation over seeds, the dashed line is the default.",
    ),
    "layers": Heading("Number of layers", "One curve a score; bars are one standard deviation over seeds."),
    "confusion": Heading(
        "Confusion matrices",
        "Percent of each true class (lines) by predicted class (columns), mean over seeds, matched (block). "
        "Orange lines part old classes from new.",
    ),
    "tsne": Heading(
        "Maps of the nodes (t-SNE)",
        "Test nodes of one seed, laid out by t-SNE of their embeddings, or of the graph's own features, coloured by true "
        "class: neighbours are alike, distances between groups mean little. Circles are old classes, diamonds new ones.",
    ),
    "class-splits": Heading("Random class splits"),
}


def score_title(score: str) -> str:
    return (SCORES | ONCE | SHARES)[score].title


def dataset_title(name: str) -> str:
    return DATASETS.get(name, name)


def encoder_title(name: str) -> str:
    return ENCODERS.get(name, name)


def method_title(name: str) -> str:
    return METHODS.get(name, name)


def in_order(names: Iterable[str], known: Iterable[str] | Mapping[str, object]) -> list[str]:
    """Known names in their order, then the others by alphabet."""
    there, order = set(names), list(known)
    return [name for name in order if name in there] + sorted(there - set(order))
