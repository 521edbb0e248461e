"""Compare settings without using new classes or test nodes, on several graphs at once.

Old classes are hidden, discovered, and graded on validation nodes, by `nodenova tune`:

    python tools/choose.py --data-root DIR --datasets cora,citeseer,mine.npz \\
        lam=1.0 fit.hidden=32,lam=0.4 fit.head=cosine

Only labels of old training and validation nodes are used. Half of the latter stop phase 1, the
others are the exam. Settings that begin with "fit." are for phase 1, the others for the method; the
defaults are always the first line. Half of the classes are old in a graph that is not the paper's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nodenova as nova
from nodenova.bench.render import markdown
from nodenova.bench.tune import candidates_of, known_part, tune
from nodenova.data.labels import LabelledGraph
from nodenova.evaluation.scores import mean_std, spread_text
from nodenova.io.dataset_table import DATASETS


def parse_settings(text: str) -> dict[str, str]:
    """Return settings by name; "defaults" means none."""
    pairs = [] if text == "defaults" else [pair.partition("=") for pair in text.split(",")]
    return {name: value for name, _, value in pairs}


def load(name: str, data_root: str | None) -> LabelledGraph:
    """Load a dataset or a file without its new classes."""
    if name in DATASETS:
        return known_part(nova.load_dataset(name, data_root), DATASETS[name].num_old)
    labelled = nova.load_graph(name)
    return known_part(labelled, (labelled.num_classes + 1) // 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "settings",
        nargs="+",
        help="name=value,… of the method; fit.name=value of phase 1; or: defaults",
    )
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--datasets", default="cora,citeseer")
    parser.add_argument("--encoder", default="gcn")
    parser.add_argument("--method", default="sword")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--splits",
        type=int,
        default=6,
        help="maximum number of ways of hiding half of the old classes",
    )
    given = parser.parse_args()
    settings = [parse_settings(text) for text in given.settings]
    candidates = candidates_of(given.method, given.encoder, settings)
    lines = [[candidate.text] for candidate in candidates]
    names = given.datasets.split(",")
    for name in names:
        found = tune(
            load(name, given.data_root),
            candidates,
            given.encoder,
            draws=given.splits,
            seeds=range(given.seeds),
        )
        for line, tuned in zip(lines, found.lines, strict=True):
            for score in ("all", "h"):
                line.append(spread_text(mean_std(tuned.values[score])))
            line.append(str(len(tuned.values["h"])))
    heads = [f"{Path(name).stem} {key}" for name in names for key in ("All", "H", "draws")]
    print(markdown(["settings", *heads], lines), flush=True)


if __name__ == "__main__":
    main()
