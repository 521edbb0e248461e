"""The script that makes a table of Debian's packages, on a few packages of our own."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

import nodenova as nova

MAKER = Path(__file__).parents[2] / "tools/make_debian.py"
PACKAGES = """\
Package: ruby-rose
Installed-Size: 12
Maintainer: Debian Ruby Team <ruby@example.org>
Pre-Depends: ruby-leaf:any (>= 1.0), ruby
Depends: ruby-leaf, perl | ruby-stem
Description: garden library for roses
Section: ruby
Priority: optional
Tag: role::shared-lib,
 devel::library

Package: ruby-leaf
Maintainer: Debian Ruby Team <ruby@example.org>
Suggests: ruby-rose, missing
Description: garden library for leaves
Section: ruby

Package: ruby-stem
Maintainer: Debian Ruby Team <ruby@example.org>
Description: garden library, the stem of it
Section: contrib/ruby

Package: chess
Description: chess, a game
Recommends: chess, ruby-stem
Section: games

Package: chess
Description: chess, an older game
Section: games

Package: nowhere
Description: without a section
"""


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_debian", MAKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    path = tmp_path / "Packages"
    path.write_text(PACKAGES)
    return path


def test_it_writes_two_tables(maker, packages: Path, tmp_path: Path) -> None:
    maker.main([str(tmp_path / "out"), "--all", "--min-size", "1", "--packages", str(packages)])
    with (tmp_path / "out/nodes.csv").open() as file:
        nodes = {row["id"]: row for row in csv.DictReader(file)}
    assert list(nodes) == ["chess", "ruby-leaf", "ruby-rose", "ruby-stem"]
    assert nodes["ruby-rose"] == {
        "id": "ruby-rose",
        "description": "garden library for roses",
        "maintainer": "Debian Ruby Team",
        "installed_size": "12",
        "priority": "optional",
        "section": "ruby",
    }
    assert nodes["ruby-stem"]["section"] == "ruby"
    assert nodes["chess"]["description"] == "chess, a game"
    assert (tmp_path / "out/edges.csv").read_text().splitlines() == [
        "source,target,kind",
        "chess,ruby-stem,recommends",
        "ruby-leaf,ruby-rose,suggests",
        "ruby-rose,ruby-leaf,depends",
        "ruby-rose,ruby-stem,depends",
    ]


def test_it_writes_one_graph_the_same_each_time(maker, packages: Path, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        options = ["--npz", "--all", "--min-size", "1", "--packages", str(packages)]
        maker.main([str(tmp_path / name), *options])
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    labelled = nova.load_graph(tmp_path / "a.npz")
    assert labelled.class_names == ("games", "ruby")
    assert labelled.y.tolist() == [0, 1, 1, 1]
    assert labelled.graph.feature_names == ("garden", "library", "maintainer=Debian Ruby Team")
    assert labelled.graph.adjacency.toarray().sum() == 2 * 3  # leaf and rose are one edge


def test_it_draws_sections_and_packages_by_seed(maker, packages: Path) -> None:
    whole = maker.parse(packages.read_text())
    draws = {
        seed: maker.choose(whole, sections=1, min_size=1, cap=2, seed=seed) for seed in range(8)
    }
    assert {len(draw) for draw in draws.values()} == {1, 2}
    assert len({tuple(draw) for draw in draws.values()}) > 2
    large = maker.choose(whole, sections=None, min_size=2, cap=None, seed=0)
    assert list(large) == ["ruby-leaf", "ruby-rose", "ruby-stem"]
    with pytest.raises(SystemExit, match="only 2 sections have 1 packages or more"):
        maker.choose(whole, sections=3, min_size=1, cap=None, seed=0)
