"""Measure growth on Debian's packages: one class and a fifth of the rest come later.

    python tools/measure_growth.py run|show ROWS [--seeds 6] [--packages FILE]

run   for each seed, draws 18 sections (tools/make_debian.py, at most 250 packages each), takes 7 of
      them for new classes and labels 15% of the packages of the others. The early table lacks one
      of the new classes and a fifth of all other packages. Appends one JSON line to ROWS for each
      of: the early table, the whole table from a fresh start, and the whole table continued from
      the early run, also with `--revise`. Existing lines are not computed again.
show  prints the table; --page docs/growth.md writes it into that page.

All numbers of new classes are estimated. Right are, among the unlabelled packages of a new class,
those in the discovered class that stands for it; each discovered class stands for one new class at
most, in the best way. Nothing is tuned here.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import into_page
import make_debian
import numpy as np
from scipy.optimize import linear_sum_assignment

SECTIONS, CAP, NUM_NEW, LABELLED, LATER = 18, 250, 7, 0.15, 0.2
FORMS = {
    "early": "Early table",
    "fresh": "Whole table, fresh start",
    "from": "Whole table, `--from`",
    "revise": "Whole table, `--from --revise`",
}


def draw(packages: dict[str, make_debian.Package], seed: int) -> dict[str, Any]:
    """Sections, new ones among them, labelled packages, and packages of the early table."""
    chosen = make_debian.choose(packages, sections=SECTIONS, min_size=100, cap=CAP, seed=seed)
    rng = np.random.default_rng([seed, 18])
    sections = sorted({fields["section"] for fields in chosen.values()})
    new = sorted(rng.permutation(sections)[:NUM_NEW].tolist())
    absent = str(rng.choice(new))
    labelled, early = set[str](), set[str]()
    for name, fields in chosen.items():
        is_labelled, comes_later = rng.random(2) < (LABELLED, LATER)
        if is_labelled and fields["section"] not in new:
            labelled.add(name)
        if fields["section"] != absent and not comes_later:
            early.add(name)
    return {"chosen": chosen, "new": new, "absent": absent, "labelled": labelled, "early": early}


def write_tables(packages: dict[str, make_debian.Package], labelled: set[str], out: Path) -> None:
    """Write the two tables; only labelled packages have a section."""
    shown = {
        name: fields | {"section": fields["section"] if name in labelled else ""}
        for name, fields in packages.items()
    }
    make_debian.write_tables(shown, out)


def discover(*arguments: str) -> str:
    """What `nodenova discover` prints."""
    command = [sys.executable, "-m", "nodenova", "discover", *arguments, "--no-report"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"nodenova discover {' '.join(arguments)}: {done.stderr}")
    return done.stdout + done.stderr


def measure(packages: dict[str, make_debian.Package], seed: int) -> Iterator[dict[str, Any]]:
    """The rows of a seed."""
    drawn = draw(packages, seed)
    chosen = drawn["chosen"]
    early = {name: fields for name, fields in chosen.items() if name in drawn["early"]}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, part in (("early", early), ("whole", chosen)):
            write_tables(part, drawn["labelled"], place / name)
        columns = ("--label-column", "section", "--edge-type-column", "kind")
        for form in FORMS:
            table = place / ("early" if form == "early" else "whole")
            files = ("--nodes", str(table / "nodes.csv"), "--edges", str(table / "edges.csv"))
            later = ("--from", str(place / "runs-early"))
            more = {"from": later, "revise": (*later, "--revise")}.get(form, columns)
            run = place / f"runs-{form}"
            text = discover(*files, *more, "--out", str(run))
            nodes = early if form == "early" else chosen
            yield {
                "seed": seed,
                "form": form,
                "nodes": len(nodes),
                "true": NUM_NEW - (form == "early"),
                "absent": drawn["absent"],
                "advised": "--revise searches" in " ".join(text.split()),
                **score(run, nodes, drawn["labelled"], drawn["new"], drawn["absent"]),
            }


def score(
    run: Path,
    packages: Mapping[str, make_debian.Package],
    labelled: set[str],
    new: list[str],
    absent: str,
) -> dict[str, float | int | None]:
    """Percentages of the unlabelled packages of new, known and all classes that are right."""
    with (run / "predictions.csv").open(newline="") as file:
        found = {row["node"]: (row["kind"], row["name"]) for row in csv.DictReader(file)}
    names = [name for name in packages if name not in labelled]
    truth = np.array([packages[name]["section"] for name in names])
    groups = sorted({name for kind, name in found.values() if kind == "discovered"})
    is_found = np.array([found[name][0] == "discovered" for name in names])
    group = np.array([found[name][1] for name in names])
    shared = np.array(
        [[(is_found & (group == g) & (truth == c)).sum() for c in new] for g in groups]
    ).reshape(len(groups), len(new))
    right = ~is_found & (group == truth)
    for row, column in zip(*linear_sum_assignment(shared, maximize=True), strict=True):
        right |= is_found & (group == groups[row]) & (truth == new[column])
    is_new, back = np.isin(truth, new), truth == absent

    def percent(of: np.ndarray) -> float | None:
        return round(100 * float(right[of].mean()), 2) if of.any() else None

    return {
        "number": len(groups),
        "new": percent(is_new),
        "known": percent(~is_new),
        "all": percent(np.ones(len(names), bool)),
        "back": percent(back),
    }


def read(rows: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds, and the difference to a fresh start on the same tables."""
    fresh = {row["seed"]: row["new"] for row in rows if row["form"] == "fresh"}
    lines = [
        "| | new classes, 1:1 | against a fresh start | worst | the class that came | known | all "
        "| number found, of |",
        "|---|---|---|---|---|---|---|---|",
    ]

    def mean(mine: list[dict[str, Any]], name: str) -> str:
        values = [row[name] for row in mine if row[name] is not None]
        return f"{np.mean(values):.1f}" if values else ""

    for form, title in FORMS.items():
        mine = [row for row in rows if row["form"] == form]
        apart = [row["new"] - fresh[row["seed"]] for row in mine if row["seed"] in fresh]
        against = form in ("from", "revise")
        cells = [
            title,
            mean(mine, "new"),
            f"{np.mean(apart):+.1f}" if against else "",
            f"{min(apart):+.1f}" if against else "",
            *(mean(mine, name) for name in ("back", "known", "all", "number")),
        ]
        cells[-1] += f", {mean(mine, 'true')[:1]}"
        lines.append(f"| {' | '.join(cells)} |")
    each = [
        f"| {seed} | {by['early']['number']} of {by['early']['true']} | {by['fresh']['number']} "
        f"| {by['from']['number']} | {by['revise']['number']} | {by['fresh']['new']:.1f} "
        f"| {by['from']['new']:.1f} | {by['revise']['new']:.1f} "
        f"| {'yes' if by['from']['advised'] else 'no'} |"
        for seed in sorted(fresh)
        for by in [{row["form"]: row for row in rows if row["seed"] == seed}]
        if len(by) == len(FORMS)
    ]
    head = (
        "| seed | number, early | fresh | `--from` | `--revise` | new 1:1, fresh | `--from` "
        "| `--revise` | `--revise` advised |\n|---|---|---|---|---|---|---|---|---|"
    )
    means = "\n".join(lines)
    return f"{means}\n\n{head}\n" + "\n".join(each)


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("step", choices=("run", "show"))
    parser.add_argument("rows", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--packages", type=Path, default=None)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.step == "run":
        packages = make_debian.parse(make_debian.read_text(options.packages))
        for seed in range(options.first, options.first + options.seeds):
            if seed in {row["seed"] for row in read(options.rows)}:
                continue
            lines = []
            for row in measure(packages, seed):
                lines.append(json.dumps(row) + "\n")
                print(lines[-1], end="", flush=True)
            with options.rows.open("a") as file:
                file.writelines(lines)
    text = table(read(options.rows))
    print(text)
    if options.page:
        into_page.put(options.page, "growth", text)


if __name__ == "__main__":
    main()
