"""Check that two commits predict the same, bit for bit.

    python tools/same_predictions.py main HEAD

Runs, on data that ships or is generated here: every method on every encoder (CiteSeer); Prism
strict, mixed with the number of new classes given, and mixed with the number estimated (WordNet);
tables with edge types and with text vectors; and `nodenova discover` on the command line, with
--from and --refresh never and always. Each commit runs in a worktree of its own with this
interpreter, by public names only. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CHILD = """
import csv, hashlib, json, subprocess, sys, warnings
from dataclasses import replace
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np
import nodenova as nova

tables = Path(sys.argv[1])
hashes = {}

def add(key, *parts):
    hashes[key] = hashlib.sha256(b"".join(parts)).hexdigest()[:16]

def add_model(key, model, graph):
    add(key, model.predict_proba(graph).tobytes(), model.embed(graph).tobytes())

def briefly_trained(cls):
    return cls(epochs=4) if hasattr(cls, "epochs") else cls()

# Every method on every encoder.
labelled = nova.load_dataset("citeseer")
first, new, _ = nova.split(labelled, range(4))
with_labels = nova.labelled_new_task(labelled, range(4))
for encoder in ("prism", "gcn", "gat", "sage"):
    settings = {} if encoder == "prism" else {"epochs": 4, "hidden": 8, "heads": 2}
    model = nova.fit(first, encoder, **settings)
    add_model(f"citeseer fit {encoder}", model, labelled.graph)
    for name, cls in nova.METHODS.items():
        if encoder != "prism" or name in ("prism", "distilled_gnn"):
            after = nova.discover(model, new, briefly_trained(cls))
            add_model(f"citeseer {name} {encoder}", after, labelled.graph)
    for name, cls in nova.LABELLED.items() if encoder != "prism" else ():
        after = nova.discover_supervised(model, with_labels, briefly_trained(cls))
        add_model(f"citeseer {name} {encoder}", after, labelled.graph)

# Prism: strict, mixed, counted, and with its settings changed.
labelled = nova.load_dataset("wordnet")
first, new, _ = nova.split(labelled, range(7))
model = nova.fit(first)
rest = np.setdiff1d(np.arange(labelled.graph.num_nodes), first.train_ids)
mixed = nova.NewTask(labelled.graph, rest, 3, mixed=True)
unknown = replace(mixed, num_new=None)
add_model("wordnet strict", nova.discover(model, new), labelled.graph)
after = nova.discover(model, mixed)
add_model("wordnet mixed", after, labelled.graph)
add("wordnet times found", repr(sorted(after.stages[-1].found_in.items())).encode())
add("wordnet count mixed", repr(nova.count_new(model, unknown).probabilities).encode())
add("wordnet count strict", repr(nova.count_new(model, new).probabilities).encode())
add_model("wordnet counted", nova.discover(model, unknown), labelled.graph)
for key, task in (("strict", new), ("mixed", mixed)):
    plain = nova.Prism(pool=False, refit=False, n_resamples=0, restarts=2)
    add_model(f"wordnet {key}, one grouping", nova.discover(model, task, plain), labelled.graph)
    single = nova.Prism(pool=False, n_resamples=0, restarts=2, weigh=False)
    add_model(f"wordnet {key}, no resampling", nova.discover(model, task, single), labelled.graph)

# Tables: edge types and text vectors.
def vectors_of(texts):
    rng = np.random.default_rng(0)
    of_word = {f"w{i}": rng.standard_normal(16) for i in range(300)}
    rows = [np.mean([of_word[word] for word in text.split()], axis=0) for text in texts]
    return np.array(rows, dtype=np.float32)

options = {
    "plain": {},
    "edge types": {"edge_type_column": "type"},
    "edge types weighted": {"edge_type_column": "type", "edge_types": {"cites": 1, "likes": 0.5}},
    "vectors by a function": {"text_vectors": vectors_of},
    "vectors from a file": {"text_vectors": str(tables / "vectors.npy")},
}
for key, option in options.items():
    graph = nova.load_graph(
        nodes=tables / "nodes.csv", edges=tables / "edges.csv", text_columns=["text"], **option
    )
    first, new, _ = nova.tasks_from_labels(graph)
    after = nova.discover(nova.fit(first), new)
    add_model(f"tables {key}", after, graph.graph)

# The command line.
def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "nodenova", *map(str, arguments)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)

def add_run(key, folder):
    with (folder / "predictions.csv").open() as file:
        rows = [[row[c] for c in ("node", "class", "probability")] for row in csv.DictReader(file)]
    add(key, json.dumps(rows).encode())

typed = ("--edge-type-column", "type")
start = tables / "run"
run("discover", "--nodes", tables / "nodes.csv", "--edges", tables / "edges.csv",
    "--text-column", "text", *typed, "--no-report", "--out", start)
add_run("cli discover", start)
for refresh in ("never", "always"):
    out = tables / f"run-{refresh}"
    run("discover", "--from", start, "--nodes", tables / "grown-nodes.csv",
        "--edges", tables / "grown-edges.csv", "--refresh", refresh, "--out", out)
    add_run(f"cli discover --from --refresh {refresh}", out)
json.dump(hashes, sys.stdout)
"""


def write_tables(folder: Path) -> None:
    """Write a table of papers, a larger one that contains it, and a file of vectors."""
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(6, size=900))
    order = rng.permutation(len(y))
    y = y[order]
    # The sixth class is in the larger table alone, with some further nodes of the others.
    early = (y < 5) & (rng.random(len(y)) < 0.8)
    words = rng.integers(50, size=(len(y), 12)) + 50 * y[:, None]
    words = np.where(rng.random(words.shape) < 0.4, words, rng.integers(300, size=words.shape))
    named = (y < 3) & early & (rng.random(len(y)) < 0.4)
    lines = [
        f"n{i},{f'kind-{y[i]}' if named[i] else ''},{' '.join(f'w{w}' for w in words[i])}"
        for i in range(len(y))
    ]
    ends = rng.integers(len(y), size=(9000, 2))
    ends = ends[(y[ends[:, 0]] == y[ends[:, 1]]) | (rng.random(len(ends)) < 0.05)]
    kind = np.array(["cites", "likes"])[rng.integers(2, size=len(ends))]
    for name, nodes in (("", early), ("grown-", np.ones(len(y), dtype=bool))):
        rows = [lines[i] for i in np.flatnonzero(nodes)]
        (folder / f"{name}nodes.csv").write_text("\n".join(["id,label,text", *rows]) + "\n")
        inside = np.flatnonzero(nodes[ends].all(axis=1))
        links = [f"n{ends[e, 0]},n{ends[e, 1]},{kind[e]}" for e in inside]
        (folder / f"{name}edges.csv").write_text("\n".join(["source,target,type", *links]) + "\n")
    vectors = np.eye(6)[y] + rng.standard_normal((len(y), 6))
    np.save(folder / "vectors.npy", vectors[early].astype(np.float32))


def predictions(commit: str) -> dict[str, str]:
    """Return {name of the run: hash of its probabilities and embeddings} for one commit."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as tables:
        write_tables(Path(tables))
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", folder, commit],
            check=True,
        )
        try:
            environment = os.environ | {"PYTHONPATH": f"{folder}/src", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                [sys.executable, "-c", CHILD, tables],
                env=environment,
                capture_output=True,
                text=True,
                cwd=folder,
            )
        finally:
            subprocess.run(
                ["git", "-C", str(ROOT), "worktree", "remove", "--force", folder], check=True
            )
    if done.returncode:
        raise SystemExit(f"{commit}: {done.stderr}")
    hashes: dict[str, str] = json.loads(done.stdout)
    return hashes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", help="another commit")
    arguments = parser.parse_args()
    before = predictions(arguments.before)
    after = predictions(arguments.after)
    differ = sorted(key for key in before if before[key] != after.get(key))
    print(
        f"{len(before)} runs, {len(before) - len(differ)} the same bit for bit, "
        f"{len(set(after) - set(before))} only after"
    )
    for key in differ:
        print(f"differs: {key}" if key in after else f"missing: {key}")
    raise SystemExit(1 if differ else 0)


if __name__ == "__main__":
    main()
