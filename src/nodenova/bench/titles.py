"""What datasets, methods, settings and tables are called where people read them.

A name that is not here stands for itself; titles of methods stand in their registries.
Scores have their titles in `nodenova.evaluation.scores`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodenova.bench.registry import ALL_METHODS

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
    "average": "Average",
}
ENCODERS = {"gcn": "GCN", "gat": "GAT", "sage": "GraphSAGE"}
# Lines of a table have this order; methods that are not listed follow.
ORDER = (
    *("autonovel", "restune", "ncl", "dtc", "frozen_kmeans", "never_new", "sword"),
    *("distilled_gnn", "prism", "gem", "er_gnn", "twp", "cpca", "sword_as_released", "oracle"),
    *("autonovel_ncd", "ncl_ncd", "dtc_ncd"),
)
METHODS = {name: ALL_METHODS.titles[name] for name in (*ORDER, *ALL_METHODS)}

# The two ways in which an old head and a new one become one, where it is not the method's own.
JOINTS = {"concatenated": ", two heads side by side", "untrained": ", joint head alone"}
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
        "One curve a score; bars are one standard deviation over seeds, "
        "the dashed line is the default.",
    ),
    "layers": Heading(
        "Number of layers", "One curve a score; bars are one standard deviation over seeds."
    ),
    "confusion": Heading(
        "Confusion matrices",
        "Percent of each true class (lines) by predicted class (columns), mean over seeds, "
        "matched (block). Orange lines part old classes from new.",
    ),
    "tsne": Heading(
        "Maps of the nodes (t-SNE)",
        "Test nodes of one seed, laid out by t-SNE of their embeddings, or of the graph's own "
        "features, coloured by true class: neighbours are alike, distances between groups mean "
        "little. Circles are old classes, diamonds new ones.",
    ),
    "class-splits": Heading("Random class splits"),
    "mixed": Heading("Old and new mixed"),
    "count": Heading("How many new classes"),
    "stages": Heading("Many stages"),
    "pown": Heading("POWN's protocol"),
    "openima": Heading("OpenIMA's protocol"),
    "gnnsafe": Heading("Old or new"),
}


def dataset_title(name: str) -> str:
    """What people call a dataset; its name if nothing else is known."""
    return DATASETS.get(name, name)


def encoder_title(name: str) -> str:
    """What people call an encoder; its name if nothing else is known."""
    return ENCODERS.get(name, name)


def method_title(name: str) -> str:
    """What people call a method; its name if nothing else is known."""
    return METHODS.get(name, name)


def in_order(names: Iterable[str], known: Iterable[str] | Mapping[str, object]) -> list[str]:
    """Known names in their order, then the others by alphabet.

    Examples:
        >>> in_order({"mine", "pubmed", "cora"}, DATASETS)
        ['cora', 'pubmed', 'mine']
    """
    there = set(names)
    order = list(known)
    return [name for name in order if name in there] + sorted(there - set(order))
