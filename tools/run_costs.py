"""Measure what a run costs against an earlier commit, by part.

    python tools/run_costs.py BEFORE ROWS --sizes 2000 9997 --page docs/trust.md

BEFORE is a checkout of the earlier commit. On some of WordNet's nouns, of which the first seven
classes have labels on every eighth node, a NodeDiscoverer estimates the number of new classes and
writes a run with its page: in turn with the package of each checkout, `--rounds` times, in
processor seconds of one thread. Each is one JSON line of ROWS. The parts are cumulative times of
functions under Python's profiler, in a run of their own; `--page` writes the table into that page.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import into_page
from attack.measure import commit_of, run_code

# Functions whose time is a part of a run: the last names of the file, the function, and its title.
PARTS = {
    "phase 1": ("fitting.py", "fit"),
    "counting": ("discovery.py", "count_new"),
    "discovery": ("methods/prism.py", "discover"),
    "other numbers": ("runs/numbers.py", "preview_numbers"),
    "held-out labels": ("review/cross_validation.py", "cross_validate"),
    "description of classes": ("model/info.py", "class_info"),
    "map": ("report/tsne.py", "positions"),
}
CHILD = """
import cProfile, json, pstats, sys, tempfile, time
import numpy as np
import nodenova as nova
nodes, parts = int(sys.argv[1]), json.loads(sys.argv[2])
data = nova.load_dataset("wordnet")
kept = np.linspace(0, data.graph.num_nodes - 1, nodes).astype(int)
graph, y = data.graph.subgraph(kept), data.y[kept]
y = np.where((y < 7) & (np.arange(nodes) % 8 == 0), y, -1)
profile = cProfile.Profile(time.process_time)
with tempfile.TemporaryDirectory() as place:
    nova.NodeDiscoverer(num_new=1).fit(graph.subgraph(range(200)), y[:200])  # imports
    if parts:
        profile.enable()
    began = time.process_time()
    found = nova.NodeDiscoverer().fit(graph, y)
    found.report(place + "/run")
    row = {"seconds": time.process_time() - began, "number": found.run_.num_new
           if hasattr(found.run_, "num_new") else len(found.model_.classes) - 7}
profile.disable()
if parts:
    stats = pstats.Stats(profile).stats
    for title, (file, name) in parts.items():
        row[title] = sum(s[3] for key, s in stats.items()
                         if key[0].endswith("nodenova/" + file) and key[2] == name)
print(json.dumps(row))
"""


def measure(before: Path, after: Path, nodes: int, rounds: int) -> list[dict[str, Any]]:
    """The rows of one size."""
    rows = []
    for tree, parts in [*((tree, {}) for _ in range(rounds) for tree in (before, after)),
                        (after, PARTS)]:  # fmt: skip
        row = json.loads(run_code(tree, CHILD, str(nodes), json.dumps(parts)))
        rows.append({"nodes": nodes, "commit": commit_of(tree), "profiled": bool(parts), **row})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Least seconds before and after, their ratio, and the share of each part."""
    lines = [
        f"| nodes | before | after | ratio | {' | '.join(PARTS)} |",
        f"|---|---|---|---|{'---|' * len(PARTS)}",
    ]
    first = rows[0]["commit"]
    for nodes in dict.fromkeys(row["nodes"] for row in rows):
        mine = [row for row in rows if row["nodes"] == nodes]
        plain = [row for row in mine if not row["profiled"]]
        before = min(row["seconds"] for row in plain if row["commit"] == first)
        after = min(row["seconds"] for row in plain if row["commit"] != first)
        (profiled,) = (row for row in mine if row["profiled"])
        shares = [f"{100 * profiled[part] / profiled['seconds']:.0f}%" for part in PARTS]
        cells = (f"{nodes:,}", f"{before:.1f} s", f"{after:.1f} s", f"{after / before:.2f}")
        lines.append(f"| {' | '.join((*cells, *shares))} |")
    last = rows[-1]["commit"]
    what = f"Processor seconds of commits {first} and {last}, one thread, least of the rounds taken"
    return "\n".join([*lines, "", f"{what} in turn; shares of the later one under the profiler."])


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("before", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--after", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 9997])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if not options.rows.exists():
        made = [
            row
            for nodes in options.sizes
            for row in measure(options.before, options.after, nodes, options.rounds)
        ]
        options.rows.write_text("".join(json.dumps(row) + "\n" for row in made))
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    print(table(rows))
    if options.page:
        into_page.put(options.page, "costs", table(rows))


if __name__ == "__main__":
    main()
