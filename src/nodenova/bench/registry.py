"""Methods of the bench: without labels, supervised, open-world baselines, and a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from nodenova.methods import registry
from nodenova.methods.registry import METHODS, Method
from nodenova.settings import Entry, Registry
from nodenova.supervised import LABELLED, LabelledMethod

AnyMethod: TypeAlias = "Method | LabelledMethod"

ALL_METHODS = METHODS | LABELLED
# Baselines of the open-world benches alone.
BASELINES = Registry(
    {
        "gcd": Entry(
            "nodenova.bench.baselines:GCDKMeans", "GCD's semi-supervised k-means", restarts=10
        ),
        "simgcd_labelled": Entry(
            "nodenova.bench.baselines:LabelledSimGCD",
            "SimGCD with its labelled nodes",
            **METHODS.entries["simgcd"].settings | {"omega_fd": 0.0},
        ),
        "count": Entry("nodenova.bench.baselines:PrismCount", "Prism's count"),
        "silhouette": Entry("nodenova.bench.baselines:Silhouette", "silhouette"),
        "hdbscan": Entry(
            "nodenova.bench.baselines:HDBSCANCount", "HDBSCAN", share=0.02, at_least=8
        ),
        "scatter": Entry("nodenova.bench.baselines:ScatterRule", "scatter rule", times=1.15),
        "phase_1": Entry("nodenova.bench.baselines:Phase1", "Prism's phase 1 alone"),
        "leiden": Entry("nodenova.bench.rivals:Leiden", "Leiden, majority label", resolution=1.0),
        "fastrp": Entry(
            "nodenova.bench.rivals:FastRP",
            "FastRP and k-means",
            dimensions=256,
            weights=(0.0, 1.0, 1.0),
        ),
        "evoc": Entry("nodenova.bench.rivals:EVoC", "EVōC, majority label"),
        "scikit_learn": Entry(
            "nodenova.bench.rivals:ScikitLearn", "scikit-learn alone, no edges", share=0.1
        ),
        "leiden_count": Entry("nodenova.bench.rivals:LeidenCount", "Leiden's communities"),
        "evoc_count": Entry("nodenova.bench.rivals:EVoCCount", "EVōC's clusters"),
    }
)
BENCH_METHODS = ALL_METHODS | BASELINES
# These answer another question (which new class is a new node of?), shown in `settings` alone.
NCD = ("autonovel_ncd", "ncl_ncd", "dtc_ncd")


def get_method(name: str, settings: Mapping[str, str]) -> Any:
    """Return a method by name, or by path/to/mine.py:Mine, with settings given as text."""
    return registry.get_method(name, settings, ALL_METHODS)


def get_baseline(name: str) -> Any:
    """Return a method with its defaults by name, open-world baselines included."""
    return registry.get_method(name, {}, BENCH_METHODS)


def is_given_labels(method: object) -> bool:
    """Return whether a method is supervised: phase 2 gets labels, named in the row."""
    return LABELLED.name_of(type(method)) is not None


def encoder_for(name: str, encoder: str | None) -> str:
    """Return the encoder to run a method on: `encoder`, or the one that the method prefers."""
    return str(registry.choose_encoder(name, encoder, ALL_METHODS))


def name_of(method: object) -> str:
    """Return the name of a method in rows and tables; of a user's own, that of its class."""
    return registry.name_of(method, BENCH_METHODS)
