"""Write what training on batches of nodes costs, in scores and in memory, into docs/scale.md.

    python tools/batch_tables.py graph runs/pubmed_500.npz
    B="nodenova bench comparison --methods sword --num-old 2 --seeds 5 --out runs/batches"
    for BATCH in 0 256; do
        $B --datasets pubmed --encoders gcn,sage --fit-set batch=$BATCH
        $B --datasets runs/pubmed_500.npz --encoders gcn --fit-set batch=$BATCH
    done
    make bench ONLY=batches
    python tools/batch_tables.py rows runs/batches/rows.jsonl   # keep the rows of both
    python tools/batch_tables.py page                           # the tables, from kept rows

PubMed's published split has 20 labelled nodes per class, fewer than a batch has; `graph` writes it
with 500. Rows are kept in results/batches.jsonl.gz: those of the bench, which have a key, and the
latest of every case of benchmarks/batches.py.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from into_page import put

import nodenova as nova
from nodenova.bench.render import markdown
from nodenova.bench.row import Row

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "results/batches.jsonl.gz"
MEASURED = ROOT / "benchmarks/rows/batches.jsonl"
PAGE = ROOT / "docs/scale.md"
LABELS, VALIDATION, TEST = 500, 500, 1000  # nodes per class, and in all
SCORES = ("old", "new", "all")
Lines = list[dict[str, Any]]


def lines(path: Path) -> Lines:
    if not path.exists():
        return []
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.splitlines()]


def write_graph(path: Path) -> None:
    """Write PubMed with a drawn split."""
    labelled = nova.load_dataset("pubmed")
    y, x = labelled.y, sp.csr_array(labelled.graph.x)
    order = np.random.default_rng(0).permutation(len(y))
    train = np.concatenate([order[y[order] == c][:LABELS] for c in range(labelled.num_classes)])
    rest = order[~np.isin(order, train)]
    masks = {}
    for name, ids in (("train", train), ("val", rest[:VALIDATION]), ("test", rest[-TEST:])):
        masks[f"{name}_mask"] = np.isin(np.arange(len(y)), ids)
    parts = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "shape": x.shape}
    features = {f"x_{name}": np.asarray(part) for name, part in parts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {**features, **masks}
    np.savez(path, edge_index=labelled.graph.edge_index, y=y, **arrays)


def pack(bench: Path) -> None:
    """Keep the rows of a bench, and of every case those of its last run."""
    costs = lines(MEASURED)
    last = {row["case"]: row["run"] for row in costs}  # later lines are of later runs
    rows = lines(bench) + [row for row in costs if row["run"] == last[row["case"]]]
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    ROWS.write_bytes(gzip.compress(text.encode(), mtime=0))


def mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean of values and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def scores(rows: Lines) -> str:
    """Whole graph and batches on the seeds that both have, and the paired difference."""
    task: dict[tuple[int, str], dict[int, dict[int, Mapping[str, float]]]] = {}  # by batch and seed
    for line in rows:
        row = Row.from_json(line)
        batch = int(row.fit_settings.get("batch", 0))  # type: ignore[arg-type]
        of_row = row.nodes.unlabelled_new, row.encoder
        task.setdefault(of_row, {}).setdefault(batch, {})[row.seed] = row.scores("block")
    table = []
    for (new, encoder), by_batch in sorted(task.items()):
        whole = by_batch.pop(0)
        for batch, some in sorted(by_batch.items()):
            seeds = sorted(whole.keys() & some.keys())
            cells = []
            for score in SCORES:
                both = [[each[s][score] for s in seeds] for each in (whole, some)]
                apart, error = mean(np.subtract(both[1], both[0]).tolist())
                values = " → ".join(f"{np.mean(each):.1f}" for each in both)
                cells.append(f"{values} ({apart:+.1f} ± {error:.1f})")
            table.append([f"{new:,}", encoder, f"{batch:,}", f"{len(seeds)}", *cells])
    heads = ["new nodes", "encoder", "nodes per batch", "seeds"]
    return markdown([*heads, *(name.capitalize() for name in SCORES)], table)


def costs(rows: Lines) -> str:
    """Size, memory beyond the graph and time of each case."""
    cases: dict[str, dict[str, float]] = {}
    against = {}
    for row in rows:
        cases.setdefault(row["case"], {})[row["quantity"]] = row["value"]
        against[row["case"]] = row["against"]
    table = []
    for case, found in cases.items():
        base = cases.get(against[case], {}).get("beyond_graph_mib")
        ratio = f" ({found['beyond_graph_mib'] / base:.2f}×)" if base else ""
        table.append(
            [
                case,
                f"{found['nodes']:,.0f}, {found['edges'] / 2:,.0f}",
                f"{found['peak_mib'] / 1024:.2f} GiB",
                f"{found['beyond_graph_mib']:,.0f} MiB{ratio}",
                f"{found['fit_epoch_seconds']:.2f}, {found['discover_epoch_seconds']:.2f}",
                f"{found['seconds'] / 60:.1f}",
                f"{found['all_percent']:.1f}" if "10 epochs" not in case else "",
            ]
        )
    heads = ["case", "nodes, edges", "peak", "beyond the graph", "s per epoch", "minutes", "All"]
    return markdown(heads, table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["graph", "rows", "page"])
    parser.add_argument("path", nargs="?", type=Path)
    options = parser.parse_args()
    if options.command == "page":
        rows = lines(ROWS)
        put(PAGE, "batch scores", scores([row for row in rows if "key" in row]))
        put(PAGE, "batch costs", costs([row for row in rows if "case" in row]))
    elif options.path is None:
        parser.error(f"{options.command} needs a path")
    else:
        (write_graph if options.command == "graph" else pack)(options.path)


if __name__ == "__main__":
    main()
