"""Make a table of Debian's packages, to develop with: packages, what they need, their sections.

    python tools/make_debian.py OUT --sections 18 --seed 0 --cap 1500
    python tools/make_debian.py OUT --all --packages Packages
    python tools/make_debian.py debian.npz --npz --all --min-size 150

OUT gets nodes.csv (id, description, maintainer, installed_size, priority, section) and edges.csv
(source, target, kind). `--npz` writes one file that `nova.load_graph` reads instead, with at most
450 packages of each section if `--cap` gives no other number: words of the description and
maintainers as a bag, edges of all kinds.

The packages are those in `--packages`, an uncompressed file or one that apt can read. Without it,
the list of the machine's first source is taken, as `apt-get update` left it. The same packages and
seed give the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

KINDS = {
    "pre-depends": "depends",
    "depends": "depends",
    "recommends": "recommends",
    "suggests": "suggests",
}
CAP = 450  # most packages of a section in an npz file by default
MIN_NODES = 3  # that must have a word or a maintainer for it to be a feature
COLUMNS = ("id", "description", "maintainer", "installed_size", "priority", "section")
Package = dict[str, str]


def read_text(path: Path | None) -> str:
    """Text of a list of packages: `path`, else the first one that apt has."""
    if path is None:
        command = ["apt-get", "indextargets", "--format", "$(FILENAME)", "Created-By: Packages"]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        if not found:
            raise SystemExit("apt has no list of packages: run apt-get update, or give --packages")
        path = Path(found[0])
    if path.suffix not in (".lz4", ".gz", ".xz", ".zst", ".bz2"):
        return path.read_text("utf-8")
    command = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8")


def parse(text: str) -> dict[str, Package]:
    """Fields of each package by its name, in the order of names; the first of a name counts."""
    packages: dict[str, Package] = {}
    for paragraph in re.split(r"\n\s*\n", text):
        # A line that starts with a space continues the field above it.
        lines = re.sub(r"\n[ \t]+", " ", paragraph.strip()).splitlines()
        fields = {
            key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)
        }
        if {"package", "section"} <= fields.keys():
            fields["section"] = fields["section"].rpartition("/")[2]  # without "contrib/"
            packages.setdefault(fields["package"], fields)
    return dict(sorted(packages.items()))


def choose(
    packages: dict[str, Package], *, sections: int | None, min_size: int, cap: int | None, seed: int
) -> dict[str, Package]:
    """Packages of `sections` sections with at least `min_size`, at most `cap` of each, by seed."""
    rng = np.random.default_rng(seed)
    members: dict[str, list[str]] = {}
    for name, fields in packages.items():
        members.setdefault(fields["section"], []).append(name)
    large = sorted(section for section, names in members.items() if len(names) >= min_size)
    if sections is not None:
        if sections > len(large):
            raise SystemExit(f"only {len(large)} sections have {min_size} packages or more")
        large = sorted(rng.permutation(large)[:sections].tolist())
    chosen: set[str] = set()
    for section in large:
        chosen.update(rng.permutation(members[section])[:cap].tolist())
    return {name: fields for name, fields in packages.items() if name in chosen}


def relations(packages: dict[str, Package]) -> Iterator[tuple[str, str, str]]:
    """(source, target, kind) of every relation between two of the packages, each kind once."""
    for source, fields in packages.items():
        found = set()
        for field, kind in KINDS.items():
            for target in re.split(r"[,|]", fields.get(field, "")):
                # "libc6:any (>= 2.34) [amd64]" is libc6.
                name = re.split(r"[\s:(\[]", target.strip(), maxsplit=1)[0]
                if name in packages and name != source:
                    found.add((name, kind))
        for target, kind in sorted(found):
            yield source, target, kind


def node_row(name: str, fields: Package) -> tuple[str, ...]:
    """Row of a package in nodes.csv; a maintainer is a name without an address."""
    return (
        name,
        fields.get("description", ""),
        re.sub(r"\s*<.*", "", fields.get("maintainer", "")).strip('"'),
        fields.get("installed-size", ""),
        fields.get("priority", ""),
        fields["section"],
    )


def write_tables(packages: dict[str, Package], out: Path) -> None:
    """Write nodes.csv and edges.csv to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[tuple[str, ...]]] = {
        "nodes.csv": [COLUMNS, *(node_row(*one) for one in packages.items())],
        "edges.csv": [("source", "target", "kind"), *relations(packages)],
    }
    for name, rows in tables.items():
        with (out / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        print(f"{name}: {len(rows) - 1:,} rows")


def arrays(packages: dict[str, Package]) -> dict[str, np.ndarray]:
    """Arrays of one labelled graph (`nova.load_graph`)."""
    rows = [node_row(*one) for one in packages.items()]
    bags = []
    for _, description, maintainer, *_ in rows:
        words = set(re.findall(r"[a-z]{3,}", description.lower())) - ENGLISH_STOP_WORDS
        bags.append(sorted(words) + ([f"maintainer={maintainer}"] if maintainer else []))
    having = Counter(word for bag in bags for word in bag)
    vocabulary = sorted(word for word, nodes in having.items() if nodes >= MIN_NODES)
    place = {word: j for j, word in enumerate(vocabulary)}
    indices = [[place[word] for word in bag if word in place] for bag in bags]
    starts = np.cumsum([0, *map(len, indices)])
    flat = np.array([j for row in indices for j in row], dtype=np.int32)
    x = sp.csr_array((np.ones(len(flat), np.uint8), flat, starts), (len(rows), len(vocabulary)))
    number = {name: i for i, name in enumerate(packages)}
    pairs = sorted(
        {(min(number[a], number[b]), max(number[a], number[b])) for a, b, _ in relations(packages)}
    )
    sections = sorted({row[-1] for row in rows})
    return {
        "x_data": x.data,
        "x_indices": x.indices.astype(np.int32),
        "x_indptr": x.indptr.astype(np.int32),
        "x_shape": np.array(x.shape),
        "edge_index": np.array(pairs, dtype=np.int32).reshape(-1, 2).T,
        "y": np.array([sections.index(row[-1]) for row in rows], dtype=np.int16),
        "node_ids": np.array(list(packages)),
        "feature_names": np.array(vocabulary),
        "class_names": np.array(sections),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder of the two tables, or file with --npz")
    parser.add_argument("--packages", type=Path, default=None, help="list of packages to read")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--sections", type=int, default=None, help="number of sections to draw")
    which.add_argument("--all", action="store_true", help="all sections that are large enough")
    parser.add_argument("--min-size", type=int, default=None, help="default: 100; --npz: 60")
    parser.add_argument(
        "--cap",
        type=int,
        default=None,
        help="most packages of a section (default: all; --npz: 450)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--npz", action="store_true", help="one npz file instead of two tables")
    options = parser.parse_args(arguments)
    min_size, cap = (60, CAP) if options.npz else (100, None)
    packages = choose(
        parse(read_text(options.packages)),
        sections=options.sections,
        min_size=min_size if options.min_size is None else options.min_size,
        cap=cap if options.cap is None else options.cap,
        seed=options.seed,
    )
    if not options.npz:
        write_tables(packages, options.out)
        return
    content = arrays(packages)
    np.savez_compressed(options.out, **content)  # type: ignore[arg-type]
    print(
        f"{len(content['y']):,} packages, {content['edge_index'].shape[1]:,} relations, "
        f"{len(content['feature_names']):,} features, {len(content['class_names'])} sections"
    )


if __name__ == "__main__":
    main()
