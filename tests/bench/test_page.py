"""The page of the bench and the files: whole, self-contained, the same for the same rows."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from nodenova.bench.page import bench_page, write_outputs, write_page
from nodenova.bench.row import Row
from nodenova.bench.runs import OPEN_WORLD
from nodenova.bench.tables import TABLES
from nodenova.bench.titles import TABLES as HEADINGS
from nodenova.errors import SettingError, StorageError
from tests.bench.rows import NAMES, bench, failed, row, seeds

HOSTILE = "</svg><script>alert(1)</script>\"'&"


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.text = " ".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    folder = tmp_path / "maps"
    folder.mkdir()
    draw = np.random.default_rng(0)
    np.savez(
        folder / "sword.npz",
        z=draw.normal(size=(30, 4)),
        y=np.arange(30) % 3,
        features=draw.normal(size=(30, 5)),
    )
    return folder


def mapped() -> list[Row]:
    return [*bench(), row(seed=6, map="sword.npz"), row("dtc", 6, map="gone.npz")]


def test_shows_every_table_and_figure(maps: Path) -> None:
    page = bench_page(mapped(), maps)
    for name, heading in HEADINGS.items():
        if name in OPEN_WORLD:  # see test_open_world
            continue
        assert f'<section id="{name}">\n<h2>{heading.title}</h2>' in page
        assert f'href="#{name}"' in page
    assert list(HEADINGS) == list(TABLES)
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    # η, α1 and λ and one curve of layers on two datasets; matrices of SWORD, two ablations, DTC and
    # GEM on GCN, two on GAT, one on prism, twice; one map of embeddings and one of features.
    assert len(drawings) == 2 * (3 + 1) + 2 * (5 + 2 + 1) + 2
    for drawing in drawings:
        assert ElementTree.fromstring(drawing).get("aria-label")
    assert page.count("<summary>In numbers</summary>") == 3  # under the curves and the maps
    assert "Failed runs" not in page


def test_tables_say_what_the_rows_say(maps: Path) -> None:
    page = bench_page([*seeds(6), *seeds(6, "dtc", 90), failed(seed=6)], maps)
    assert re.search(
        r"<td><b>9\d\.\d ± \d\.\d</b> <abbr title=\"difference \+[^\"]*\">▲</abbr>", page
    )
    assert '<span class="paper">(53.5)<sup>1</sup></span>' in page
    text = Tags(page).text
    assert "12 finished runs, 1 failed." in text
    assert "cora, sword on gcn, seed 6: Traceback: RuntimeError: 50% of_it & <b>x</b>" in text


def test_needs_no_network_and_no_script(maps: Path) -> None:
    page = bench_page(mapped(), maps)
    own = page.replace('xmlns="http://www.w3.org/2000/svg"', "").replace(
        '<link rel="icon" href="data:,">', ""
    )
    assert not re.search(
        r"https?:|\bsrc\s*=|href\s*=\s*\"[^#]|<link|@import|url\(|<iframe|<script|\bon\w+=", own
    )
    assert "content=\"default-src 'none'; script-src 'none'; style-src 'sha256-" in page


def test_names_are_text_never_markup(tmp_path: Path) -> None:
    rows = [
        row(HOSTILE, s, dataset=HOSTILE, class_names=[HOSTILE, *NAMES[1:]], commit=HOSTILE)
        for s in range(2)
    ]
    rows += [failed(method=HOSTILE, seed=3, error=HOSTILE)]
    page = Tags(bench_page(rows, tmp_path))
    assert not {"script", "img"} & set(page.tags)
    assert HOSTILE in page.text
    for path in write_outputs("confusion", rows, tmp_path):
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_text())


def test_equal_rows_give_equal_bytes_whatever_their_order(maps: Path, tmp_path: Path) -> None:
    rows = mapped()
    shuffled = rows[:]
    random.Random(1).shuffle(shuffled)
    for name in TABLES:
        first = {path.name: path.read_bytes() for path in write_outputs(name, rows, tmp_path)}
        assert {
            path.name: path.read_bytes() for path in write_outputs(name, shuffled, tmp_path)
        } == first
        assert {f"{name}.md", f"{name}.tex", f"{name}.csv"} <= set(first)
    page = write_page(rows, tmp_path).read_bytes()
    assert write_page(shuffled, tmp_path).read_bytes() == page
    assert (tmp_path / "bench.html").is_file()


def test_figures_are_files_too(maps: Path, tmp_path: Path) -> None:
    names = {path.name for path in write_outputs("tsne", mapped(), tmp_path)}
    assert names == {
        "tsne.md",
        "tsne.tex",
        "tsne.csv",
        "tsne-cora-gcn-sword.svg",
        "tsne-cora-gcn-original-features.svg",
    }
    names = {path.name for path in write_outputs("sensitivity", mapped(), tmp_path)}
    letters = ("alpha1", "eta", "lambda")
    assert {
        f"sensitivity-{d}-{letter}-gcn.svg" for d in ("cora", "citeseer") for letter in letters
    } <= names


def test_figures_whose_names_look_alike_keep_their_own_files(tmp_path: Path) -> None:
    rows = [row("mine.py:A", s) for s in (0, 1)] + [row("mine.py:a", s) for s in (0, 1)]
    drawn = [path for path in write_outputs("confusion", rows, tmp_path) if path.suffix == ".svg"]
    assert len({path.name.lower() for path in drawn}) == 2


def test_a_map_without_features_is_drawn_alone(maps: Path, tmp_path: Path) -> None:
    np.savez(
        maps / "sword.npz", z=np.random.default_rng(0).normal(size=(30, 4)), y=np.arange(30) % 3
    )
    assert [
        path.name for path in write_outputs("tsne", mapped(), tmp_path) if path.suffix == ".svg"
    ] == ["tsne-cora-gcn-sword.svg"]


def test_files_and_page_show_what_a_command_asked_for(tmp_path: Path) -> None:
    moved = seeds(2, changed={"eta": 0.5})
    asked, rows = {row.key for row in moved}, [*seeds(2), *moved]
    for path in write_outputs("comparison", rows, tmp_path, asked):
        said = {".tex": r"SWORD, $\eta$=0.5"}.get(path.suffix, "SWORD, η=0.5")
        assert said in path.read_text(), path.name
    assert '<th scope="row">SWORD, η=0.5</th>' in write_page(rows, tmp_path, asked).read_text()
    assert "SWORD, η=0.5" not in write_page(rows, tmp_path).read_text()


def test_a_damaged_map_is_named(maps: Path) -> None:
    (maps / "sword.npz").write_bytes(b"no")
    with pytest.raises(StorageError, match=r"sword\.npz: not a readable npz file"):
        bench_page(mapped(), maps)


def test_nothing_yet(tmp_path: Path) -> None:
    assert "No finished runs yet." in bench_page([], tmp_path)
    for name in TABLES:
        assert write_outputs(name, [], tmp_path)[0].read_text() == "No runs of this table yet.\n"


def test_unknown_table(tmp_path: Path) -> None:
    with pytest.raises(
        SettingError, match="unknown table 'tables'; known: ablation, cfc, class-splits"
    ):
        write_outputs("tables", [], tmp_path)
