"""Compare settings without using new classes or test nodes, on several graphs at once.

Old classes are hidden, discovered, and graded on validation nodes, by `nodenova tune`:

    python tools/choose.py --data-root DIR --datasets cora,citeseer,mine.npz \\
        lam=1.0 fit.hidden=32,lam=0.4 fit.head=cosine

Only labels of old training and validation nodes are used. Half of the latter stop phase 1, the
others are the exam. Settings that begin with "fit." are for phase 1, the others for the method; the
defaults are always the first line. Half of the classes are old in a graph that is not the paper's.
The hidden size is that of the bench for the dataset, unless fit.hidden names another.

`--out results/choices.jsonl` keeps the scores, from which tools/reproduce.py writes
docs/results/choices.md; a later search of the same method, encoder and graph replaces an earlier
one. `--study sword` takes the settings that were tried for it (STUDIES).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import nodenova as nova
from nodenova.bench.plan import HIDDEN, hidden_size
from nodenova.bench.render import markdown
from nodenova.bench.tune import Candidate, Tuning, candidates_of, known_part, tune
from nodenova.data.labels import LabelledGraph
from nodenova.evaluation.scores import mean_std, spread_text
from nodenova.io.dataset_table import DATASETS
from nodenova.methods.sword import Sword

# The settings that were tried, by method. SWORD: every point that the paper leaves open or that its
# code does otherwise, and both readings as a whole.
STUDIES = {
    "sword": (
        "replay_temperature=true", "similarity=sigmoid", "distill=all", "distill=new",
        "class_mean=true", "noise=logits", "sigma=shared", "draws=2", "joint_head=linear",
        "perturb=joint", "fit.head=cosine",
        *(",".join(f"{name}={value}" for name, value in each.items())
          for each in Sword.READINGS.values()),
    ),
    "twp": (
        "lambda_l=10,lambda_t=10", "lambda_l=1000,lambda_t=1000", "lambda_l=10000,lambda_t=10000",
        "lambda_t=10000", "beta=0",
    ),
    "er_gnn": (
        "choice=cm", "choice=cm,distance=0.25", "choice=cm,distance=1.0", "choice=im",
        "choice=im,damping=0.01",
    ),
    "cpca": (
        "replay=1", "replay=100", "distill=1", "distill=100", "augment=0.1", "augment=10",
    ),
}  # fmt: skip


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


def of_size(candidates: list[Candidate], hidden: int) -> list[Candidate]:
    """Return candidates with a hidden size, except for those that name one."""
    usual = {} if hidden == HIDDEN else {"hidden": hidden}
    return [
        replace(each, fit_settings=tuple({**usual, **dict(each.fit_settings)}.items()))
        for each in candidates
    ]


def keep(path: Path, name: str, found: Tuning) -> None:
    """Write a search into the file of all of them, in place of an earlier one."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    documents = [json.loads(line) for line in text.splitlines()]
    tried = {
        name.partition("=")[0] for line in found.lines for name in line.candidate.text.split(",")
    }
    usual = asdict(found.lines[0].candidate.method)
    defaults = {name: usual[name] for name in sorted(tried & usual.keys())}
    document = {"dataset": name, **found.to_json(), "defaults": defaults}
    for line in document["lines"]:
        line["values"] = {k: [round(x, 3) for x in each] for k, each in line["values"].items()}

    def place(of: dict[str, str]) -> tuple[str, ...]:
        return of["method"], of["encoder"], of["dataset"]

    documents = [each for each in documents if place(each) != place(document)] + [document]
    lines = (json.dumps(each) + "\n" for each in sorted(documents, key=place))
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "settings",
        nargs="*",
        help="name=value,… of the method; fit.name=value of phase 1; or: defaults",
    )
    parser.add_argument("--study", choices=STUDIES, help="method whose tried settings are taken")
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
    parser.add_argument("--out", type=Path, default=None, help="file that keeps the scores")
    given = parser.parse_args()
    method = given.study or given.method
    settings = [parse_settings(text) for text in (*STUDIES.get(given.study, ()), *given.settings)]
    candidates = candidates_of(method, given.encoder, settings)
    lines = [[candidate.text] for candidate in candidates]
    names = given.datasets.split(",")
    for name in names:
        found = tune(
            load(name, given.data_root),
            of_size(candidates, hidden_size(name)),
            given.encoder,
            draws=given.splits,
            seeds=range(given.seeds),
        )
        if given.out:
            keep(given.out, Path(name).stem, found)
        for line, tuned in zip(lines, found.lines, strict=True):
            for score in ("all", "h"):
                line.append(spread_text(mean_std(tuned.values[score])))
            line.append(str(len(tuned.values["h"])))
    heads = [f"{Path(name).stem} {key}" for name in names for key in ("All", "H", "draws")]
    print(markdown(["settings", *heads], lines), flush=True)


if __name__ == "__main__":
    main()
