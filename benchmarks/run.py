"""Run all benchmarks, or some: each case in its own process, ratios within one run.

    make bench                                          # a quarter of an hour on two cores
    make bench ONLY=rivals                              # rivals, layers, scaling or costs
    make bench ONLY=large                               # a million nodes; largest: ten million
    make bench ONLY=batches                             # SWORD at ogbn-arxiv's size
    python benchmarks/run.py scaling --further-nodes 160000,1000000
    python tools/performance.py                         # rows into results/ and docs/performance.md

Cases with rows of this commit are skipped, unless the source has changes or with --again.
"""

from __future__ import annotations

import argparse
import os
import time

import batches
import costs
import large
import layers
import rivals
import scaling
from rows import Case, commit, run

PARTS = {
    "costs": costs.CASES,
    "layers": layers.CASES,
    "rivals": rivals.CASES,
    "scaling": scaling.CASES,
}
OPTIONAL = {  # run only when named
    "large": large.CASES,
    "largest": large.LARGEST,
    "batches": batches.CASES,
}


def format_case(case: Case, values: dict[str, float], base: dict[str, float]) -> str:
    """A line for the terminal; ratios are to the case that it is compared with."""
    parts = []
    for quantity, value in values.items():
        if quantity.endswith(("before_mib", "fit_clock", "discover_clock", "predict_clock")):
            continue
        ratio = f" ({value / base[quantity]:.2f}×)" if base.get(quantity) else ""
        parts.append(f"{quantity.replace('_', ' ')} {value:,.4g}{ratio}")
    return f"{case.name}: {', '.join(parts)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "only",
        nargs="*",
        help=f"of {', '.join(PARTS | OPTIONAL)}; unless given, all but {', '.join(OPTIONAL)}",
    )
    parser.add_argument("--again", action="store_true", help="also cases that have rows")
    parser.add_argument("--case", default="", help="only cases with this in their name")
    parser.add_argument("--further-nodes", default="", help="sizes behind the curve of nodes")
    options = parser.parse_args()
    wrong = [part for part in options.only if part not in PARTS | OPTIONAL]
    if wrong:
        parser.error(f"there is no {wrong[0]}, only {', '.join(PARTS | OPTIONAL)}")
    further = [int(size) for size in options.further_nodes.split(",") if size]
    parts = PARTS | OPTIONAL | {"scaling": scaling.cases(further)}
    here, run_id = commit(), time.strftime("%Y-%m-%dT%H:%M:%S")
    print(f"commit {here}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for part in options.only or PARTS:
        print(f"\n{part}", flush=True)
        values: dict[str, dict[str, float]] = {}
        for case in parts[part]:
            if options.case in case.name:
                rows = run(case, here, run_id, options.again)
                values[case.name] = {row["quantity"]: row["value"] for row in rows}
                base = values.get(case.against, {})
                print(f"  {format_case(case, values[case.name], base)}", flush=True)


if __name__ == "__main__":
    main()
