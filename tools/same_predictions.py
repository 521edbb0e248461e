"""Do two commits predict the same, bit for bit?

    python tools/same_predictions.py main HEAD

Every method on every encoder on CiteSeer, and Prism on WordNet (both ship). Each commit runs in a
worktree of its own with this interpreter, by public names only. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHILD = """
import hashlib, json, sys, warnings
warnings.simplefilter("ignore")
import nodenova as nova
found = {}
def note(key, model, graph):
    digest = hashlib.sha256(model.predict_proba(graph).tobytes() + model.embed(graph).tobytes())
    found[key] = digest.hexdigest()[:16]
def few(cls):
    return cls(epochs=4) if hasattr(cls, "epochs") else cls()
def tasks(name):
    labelled = nova.load_dataset(name)
    n_old = {"citeseer": 4, "wordnet": 7}[name]
    return labelled, range(n_old), nova.split(labelled, range(n_old))
labelled, old, (first, new, exam) = tasks("citeseer")
given = nova.given_task(labelled, old)
for encoder in ("prism", "gcn", "gat", "sage"):
    settings = {} if encoder == "prism" else {"epochs": 4, "hidden": 8, "heads": 2}
    model = nova.fit(first, encoder, **settings)
    note(f"citeseer fit {encoder}", model, labelled.graph)
    for name, cls in nova.METHODS.items():
        name = {"taught": "distilled_gnn"}.get(name, name)  # as it was called
        if encoder != "prism" or name in ("prism", "distilled_gnn"):
            note(f"citeseer {name} {encoder}", nova.discover(model, new, few(cls)), labelled.graph)
    for name, cls in nova.LABELLED.items() if encoder != "prism" else ():
        note(f"citeseer {name} {encoder}", nova.teach(model, given, few(cls)), labelled.graph)
labelled, old, (first, new, exam) = tasks("wordnet")
note("wordnet prism", nova.discover(nova.fit(first), new), labelled.graph)
json.dump(found, sys.stdout)
"""


def predictions(commit: str) -> dict[str, str]:
    """{what was run: hash of its probabilities and embeddings} of one commit."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", folder, commit],
            check=True,
        )
        try:
            environment = os.environ | {"PYTHONPATH": f"{folder}/src", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                [sys.executable, "-c", CHILD],
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
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before")
    parser.add_argument("after")
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
