"""Run discoveries on real graphs, keep their pages and screenshots, and write docs/gallery.md.

Requires Chromium and Playwright. All data comes with the package and with scikit-learn, so no
network is needed. Takes some minutes.

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
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "images/gallery"
LIVE = DOCS / "live"  # the pages themselves
MAX_BYTES = 400_000  # total size of all screenshots
MAX_LIVE_BYTES = 1_000_000  # total size of all pages
LABELLED_SHARE = 0.5  # of the nodes of each known class; all other nodes are unlabelled
HEAD = """<!-- Written by tools/gallery.py: edit that. -->

# Gallery

Pages that nodenova wrote for real graphs; those that can be opened here need no network. In each
graph some classes are hidden: none of their nodes has a label. Of the known classes, half of the
nodes are unlabelled too. Which nodes are new is not given, and the number of new classes is
estimated. `tools/gallery.py` makes this page again.
"""


@dataclass(frozen=True)
class Picture:
    """One screenshot of the gallery.

    Attributes:
        title: Title of the page.
        graph: Function that loads the graph with all its classes.
        num_known: Number of known classes; the others are hidden.
        description: Sentence about nodes, edges and features.
        width: Width of the window in pixels.
        height: Height of the window in pixels.
        dark: Whether the page is shown in its dark colors.
        at: CSS selector of the element at the top of the screenshot; the page's top by default.
        is_live: Whether the page itself is kept; `nodenova demo` writes one of WordNet.
    """

    title: str
    graph: Callable[[], nova.LabelledGraph]
    num_known: int
    description: str
    width: int = 1000
    height: int = 700
    dark: bool = False
    at: str = ""
    is_live: bool = True


def digits() -> nova.LabelledGraph:
    """Load scikit-learn's handwritten digits, each linked to the five most similar images."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    x, y = load_digits(return_X_y=True)
    links = kneighbors_graph(x, 5).tocoo()
    pixels = [f"pixel {row + 1}/{column + 1}" for row in range(8) for column in range(8)]
    graph = nova.Graph.of(x, np.stack([links.row, links.col]), feature_names=pixels)
    return nova.LabelledGraph(graph, y, tuple(map(str, range(10))), name="digits")


def wordnet() -> nova.LabelledGraph:
    """Load the graph of the demo."""
    return nova.load_dataset("wordnet")


def citeseer() -> nova.LabelledGraph:
    """Load the other graph that comes with the package."""
    return nova.load_dataset("citeseer")


PICTURES = {
    "wordnet": Picture(
        "Nouns of WordNet",
        wordnet,
        7,
        "Nouns of WordNet, linked by meaning; features are the words of their definitions.",
        height=480,
        is_live=False,
    ),
    "wordnet-classes": Picture(
        "Nouns of WordNet",
        wordnet,
        7,
        "The same page further down: the contents of each class. Cards have a field for its name.",
        height=560,
        at="#classes",
        is_live=False,
    ),
    "citeseer": Picture(
        "Papers of CiteSeer",
        citeseer,
        4,
        "Papers of CiteSeer, linked by citations; its words were published as numbers. The "
        "screenshot shows the map in dark colors.",
        width=780,
        height=450,
        dark=True,
        at="#map-section",
    ),
    "digits": Picture(
        "Handwritten digits",
        digits,
        6,
        "Images of digits, each linked to the five most similar ones; features are pixels. The "
        "screenshot has the width of a phone.",
        width=420,
        height=600,
    ),
}


def discover(picture: Picture) -> DiscoveryRun:
    """Hide the labels of all but `num_known` classes and run a discovery."""
    whole = picture.graph()
    labelled = np.random.default_rng(0).random(whole.graph.num_nodes) < LABELLED_SHARE
    y = [
        whole.class_names[c] if 0 <= c < picture.num_known and is_labelled else None
        for c, is_labelled in zip(whole.y.tolist(), labelled, strict=True)
    ]
    found = nova.NodeDiscoverer(random_state=0).fit(whole.graph, y)
    return replace(found.run_, title=picture.title)


def heading_of(name: str) -> str:
    """Return the heading of a screenshot.

    >>> heading_of("wordnet-classes")
    'Nouns of WordNet, classes'
    """
    return ", ".join([PICTURES[name].title, *name.split("-")[1:]])


def sentence(picture: Picture, run: DiscoveryRun) -> str:
    """Describe a screenshot; the first one of a run with the numbers of its graph."""
    if picture.at == "#classes":
        return picture.description
    found = [info.name for info in run.classes if info.is_new]
    names = " · ".join(f"*{name}*" for name in found) if found else "nothing"
    hidden = picture.graph().num_classes - picture.num_known
    sizes = f"{run.graph.num_nodes:,} nodes, {picture.num_known} known and {hidden} hidden classes"
    return f"{picture.description} {sizes}; discovered: {names}."


def live_name(title: str) -> str:
    """Return the file name of a page.

    >>> live_name("Papers of CiteSeer")
    'papers-of-citeseer.html'
    """
    return title.lower().replace(" ", "-") + ".html"


def photograph(browser: Any, page: Path, picture: Picture, target: Path) -> None:
    """Open a page in the browser and save a screenshot of the window."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.dark else "light",
        reduced_motion="reduce",
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_timeout(1000)  # until the map is drawn
    if picture.at:
        tab.locator(picture.at).first.evaluate("part => part.scrollIntoView()")
        tab.wait_for_timeout(300)
    tab.screenshot(path=str(target))
    context.close()


def main(names: list[str]) -> None:
    """Make the screenshots with these names, all by default, and write the page."""
    from playwright.sync_api import sync_playwright

    unknown = sorted(set(names) - PICTURES.keys())
    if unknown:
        raise SystemExit(f"unknown screenshot {unknown[0]}; available: {', '.join(PICTURES)}")
    chromium = os.environ.get("NODENOVA_CHROMIUM") or shutil.which("chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    LIVE.mkdir(parents=True, exist_ok=True)
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
                folder = RunFolder.write(Path(scratch) / name, run)
                runs[picture.title] = run, folder.path / "report.html"
                if picture.is_live:
                    shutil.copyfile(folder.path / "report.html", LIVE / live_name(picture.title))
            run, report = runs[picture.title]
            photograph(browser, report, picture, IMAGES / f"{name}.png")
            text = textwrap.fill(sentence(picture, run), 100)
            image = f"![{picture.title}, page of a run](images/gallery/{name}.png)"
            link = "`nodenova demo` writes such a page."
            if picture.is_live:
                link = f"[Open this page](live/{live_name(picture.title)})"
            parts[heading_of(name)] = f"{heading_of(name)}\n\n{text}\n{link}\n\n{image}"
        browser.close()
    ordered = [f"## {parts[heading_of(name)].strip()}" for name in PICTURES]
    page.write_text("\n\n".join([HEAD.strip(), *ordered]) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in IMAGES.glob("*.png"))
    print(f"Written: docs/gallery.md and {len(PICTURES)} screenshots, {size:,} bytes")
    if size > MAX_BYTES:
        raise SystemExit(f"the screenshots have {size:,} bytes; the limit is {MAX_BYTES:,}")
    size = sum(path.stat().st_size for path in LIVE.glob("*.html"))
    if size > MAX_LIVE_BYTES:
        raise SystemExit(f"the pages have {size:,} bytes; the limit is {MAX_LIVE_BYTES:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
