"""The gallery: discover in real graphs, photograph the pages, and write docs/gallery.md.

Needs Chromium and Playwright, no network and no data but what comes with the package and with
scikit-learn. Takes some minutes.

    python tools/gallery.py [NAME ...]
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import nodenova as nova
from nodenova.runs.folder import DiscoveryFolder
from nodenova.runs.run import DiscoveryRun

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "images/gallery"
MAX_BYTES = 400_000  # of all pictures
LABELLED_SHARE = 0.5  # of the nodes of a known class; the others are unlabelled, as all new ones
HEAD = """<!-- Written by tools/gallery.py: edit that. -->

# Gallery

Pages that `nodenova discover` wrote of real graphs, photographed. In each graph some classes were
hidden: none of their nodes has a label, and neither has half of the nodes of the others. Nobody
said which nodes are new, nor how many classes there are. `tools/gallery.py` makes all of it again.
"""


@dataclass(frozen=True)
class Picture:
    """A page of the gallery.

    Attributes:
        title: What the page is called.
        graph: Gives the graph with all its classes.
        num_known: So many classes are known; the others are hidden.
        what: What nodes, links and features are, as a sentence.
        width: Of the window, in pixels.
        height: Of the window, in pixels.
        dark: Whether the reader prefers dark pages.
        at: What the picture begins with, as a selector; the top of the page unless given.
    """

    title: str
    graph: Callable[[], nova.LabelledGraph]
    num_known: int
    what: str
    width: int = 1000
    height: int = 700
    dark: bool = False
    at: str = ""


def digits() -> nova.LabelledGraph:
    """Handwritten digits of scikit-learn, each linked to the five images most like it."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    x, y = load_digits(return_X_y=True)
    links = kneighbors_graph(x, 5).tocoo()
    pixels = [f"pixel {row + 1}/{column + 1}" for row in range(8) for column in range(8)]
    graph = nova.Graph.of(x, np.stack([links.row, links.col]), feature_names=pixels)
    return nova.LabelledGraph(graph, y, tuple(map(str, range(10))), name="digits")


def wordnet() -> nova.LabelledGraph:
    """The graph of the demo."""
    return nova.load_dataset("wordnet")


def citeseer() -> nova.LabelledGraph:
    """The other graph that ships."""
    return nova.load_dataset("citeseer")


PICTURES = {
    "wordnet": Picture(
        "Nouns of WordNet",
        wordnet,
        7,
        "Nouns of WordNet, linked by meaning, with the words that explain them.",
        height=480,
    ),
    "wordnet-classes": Picture(
        "Nouns of WordNet",
        wordnet,
        7,
        "The same page further down: what is in a class. Names are typed into the cards.",
        height=560,
        at="#classes",
    ),
    "citeseer": Picture(
        "Papers of CiteSeer",
        citeseer,
        4,
        "Papers of CiteSeer, linked by citations; its words were published as numbers. The map, on "
        "a dark page.",
        width=780,
        height=450,
        dark=True,
        at="#map-section",
    ),
    "digits": Picture(
        "Handwritten digits",
        digits,
        6,
        "Images of digits, each linked to the five that are most like it; features are pixels. The "
        "page as wide as a phone.",
        width=420,
        height=600,
    ),
}


def discover(picture: Picture) -> DiscoveryRun:
    """What is found once labels are hidden as the picture says."""
    whole = picture.graph()
    told = np.random.default_rng(0).random(whole.graph.num_nodes) < LABELLED_SHARE
    y = [
        whole.class_names[c] if 0 <= c < picture.num_known and is_told else None
        for c, is_told in zip(whole.y.tolist(), told, strict=True)
    ]
    found = nova.NodeDiscoverer(random_state=0).fit(whole.graph, y)
    return replace(found.run_, title=picture.title)


def heading_of(name: str) -> str:
    """What a picture is headed with.

    >>> heading_of("wordnet-classes")
    'Nouns of WordNet, classes'
    """
    return ", ".join([PICTURES[name].title, *name.split("-")[1:]])


def sentence(picture: Picture, run: DiscoveryRun) -> str:
    """What is seen; with its numbers, for the first picture of a run."""
    if picture.at == "#classes":
        return picture.what
    found = [info.name for info in run.classes if info.is_new]
    names = " · ".join(f"*{name}*" for name in found) if found else "nothing"
    hidden = picture.graph().num_classes - picture.num_known
    seen = f"{run.graph.num_nodes:,} nodes, {picture.num_known} known classes, {hidden} hidden ones"
    return f"{picture.what} {seen}; found: {names}."


def photograph(browser: Any, page: Path, picture: Picture, target: Path) -> None:
    """Open a page as its reader would, and keep what the window shows."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.dark else "light",
        reduced_motion="reduce",
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_timeout(1000)  # the map is drawn
    if picture.at:
        tab.locator(picture.at).first.evaluate("part => part.scrollIntoView()")
        tab.wait_for_timeout(300)
    tab.screenshot(path=str(target))
    context.close()


def main(names: list[str]) -> None:
    """Make the pictures of these names, of all unless given, and write the page."""
    from playwright.sync_api import sync_playwright

    unknown = sorted(set(names) - PICTURES.keys())
    if unknown:
        raise SystemExit(f"unknown picture {unknown[0]}; known: {', '.join(PICTURES)}")
    chromium = os.environ.get("NODENOVA_CHROMIUM") or shutil.which("chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    runs: dict[str, tuple[DiscoveryRun, Path]] = {}
    page = DOCS / "gallery.md"
    written = page.read_text(encoding="utf-8") if page.is_file() else ""
    parts = {part.partition("\n")[0]: part for part in written.split("## ")[1:]}
    with TemporaryDirectory() as scratch, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, picture in PICTURES.items():
            if names and name not in names and heading_of(name) in parts:
                continue
            if picture.title not in runs:
                print(f"{name}: discovering")
                run = discover(picture)
                folder = DiscoveryFolder.write(Path(scratch) / name, run)
                runs[picture.title] = run, folder.path / "report.html"
            run, report = runs[picture.title]
            photograph(browser, report, picture, IMAGES / f"{name}.png")
            said = textwrap.fill(sentence(picture, run), 100)
            image = f"![{picture.title}, a page of a run](images/gallery/{name}.png)"
            parts[heading_of(name)] = f"{heading_of(name)}\n\n{said}\n\n{image}"
        browser.close()
    ordered = [f"## {parts[heading_of(name)].strip()}" for name in PICTURES]
    page.write_text("\n\n".join([HEAD.strip(), *ordered]) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in IMAGES.glob("*.png"))
    print(f"Written: docs/gallery.md and {len(PICTURES)} pictures, {size:,} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"the pictures have {size:,} bytes, more than {MAX_BYTES:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
