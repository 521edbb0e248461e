"""Write what training on batches of nodes costs, in scores and in memory, into docs/scale.md.

    B="nodenova bench comparison --datasets pubmed --encoders gcn,sage --methods sword --seeds 10"
    $B --out runs/batches
    $B --out runs/batches --fit-set batch=256
    make bench ONLY=batches
    python tools/batch_tables.py runs/batches/rows.jsonl   # the rows of both, then the tables
    python tools/batch_tables.py                           # only the tables, from kept rows

Rows are kept in results/batches.jsonl.gz: those of the bench, which have a key, and the latest of
every case of benchmarks/batches.py.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from into_page import put

from nodenova.bench.render import markdown
from nodenova.bench.row import Row

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "results/batches.jsonl.gz"
MEASURED = ROOT / "benchmarks/rows/batches.jsonl"
PAGE = ROOT / "docs/scale.md"
SCORES = ("old", "new", "all")
Lines = list[dict[str, Any]]


def lines(path: Path) -> Lines:
    if not path.exists():
        return []
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.splitlines()]


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
    found: dict[str, dict[int, dict[int, Mapping[str, float]]]] = {}  # encoder, batch, seed
    for line in rows:
        row = Row.from_json(line)
        batch = int(row.fit_settings.get("batch", 0))  # type: ignore[arg-type]
        found.setdefault(row.encoder, {}).setdefault(batch, {})[row.seed] = row.scores("block")
    table = []
    for encoder, by_batch in found.items():
        whole = by_batch.pop(0)
        for batch, some in sorted(by_batch.items()):
            seeds = sorted(whole.keys() & some.keys())
            cells = []
            for score in SCORES:
                both = [[each[s][score] for s in seeds] for each in (whole, some)]
                apart, error = mean(np.subtract(both[1], both[0]).tolist())
                values = " → ".join(f"{np.mean(each):.1f}" for each in both)
                cells.append(f"{values} ({apart:+.1f} ± {error:.1f})")
            table.append([encoder, f"{batch:,}", f"{len(seeds)}", *cells])
    heads = ["encoder", "nodes per batch", "seeds", *(name.capitalize() for name in SCORES)]
    return markdown(heads, table)


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
                f"{found['all_percent']:.1f}",
            ]
        )
    heads = ["case", "nodes, edges", "peak", "beyond the graph", "s per epoch", "minutes", "All"]
    return markdown(heads, table)


def main() -> None:
    if len(sys.argv) > 1:
        pack(Path(sys.argv[1]))
    rows = lines(ROWS)
    put(PAGE, "batch scores", scores([row for row in rows if "key" in row]))
    put(PAGE, "batch costs", costs([row for row in rows if "case" in row]))


if __name__ == "__main__":
    main()
