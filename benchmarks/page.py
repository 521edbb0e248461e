"""Frames per second, size and time to open of the review page, by the number of points on its map.

The points are those of a mixture of classes; the page is opened in Chromium without a graphics
card, so that the processor draws. While frames are counted the map is moved, zoomed, and searched
for the node under the pointer. Requires Chromium and Playwright.

    python benchmarks/page.py                 # into results/page.jsonl and docs/classes.md
    python benchmarks/page.py table           # only the table, from the committed rows
    python benchmarks/page.py 10000 100000    # print rows of these sizes
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rows import ROOT, commit

import nodenova as nova
from nodenova.bench.render import markdown
from nodenova.review.page import review_page
from nodenova.review.page_data import Nodes, PageData, collect

sys.path.append(str(ROOT / "tools"))
from into_page import put

SIZES = (10_000, 100_000, 1_000_000)
ROWS = ROOT / "results/page.jsonl"
PAGE = ROOT / "docs/classes.md"
WINDOW = {"width": 1280, "height": 900}
OPENED = 3  # times that a page is opened, of which the median counts
MOVING = 3000  # milliseconds of each kind of motion
CLASSES = 12
# Milliseconds between frames while something is done at every frame.
FRAMES = """([what, duration]) => new Promise(done => {
  const times = [], canvas = document.getElementById("map");
  const {left, top, width, height} = canvas.getBoundingClientRect();
  const step = {
    move: k => map.pan(k % 80 < 40 ? 6 : -6, k % 60 < 30 ? 4 : -4),
    zoom: k => map.zoomBy(k % 60 < 30 ? 1.04 : 1 / 1.04),
    hover: k => canvas.dispatchEvent(new PointerEvent("pointermove", {
      pointerId: 9, clientX: left + width * (0.2 + 0.6 * (k % 97) / 97),
      clientY: top + height * (0.2 + 0.6 * (k % 89) / 89)})),
  }[what];
  const begun = performance.now();
  let before = begun, k = 0;
  function frame(now) {
    if (k) times.push(now - before);
    before = now;
    if (now - begun > duration) return done(times);
    step(k++);
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);
})"""
OPEN = "() => document.querySelector('#legend li') && map.cost > 0"


def page_data(points: int) -> PageData:
    """A page with this many points, spread as t-SNE spreads classes of uneven sizes."""
    data = nova.synthetic(nodes=60 * CLASSES, classes=CLASSES, words=120, seed=0)
    old, new, _ = nova.split(data, range(CLASSES // 2))
    small = collect(nova.discover(nova.fit(old), new), data.graph, title=f"{points:,} points",
                    model_hash="0")  # fmt: skip
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(CLASSES, 3.0))
    mine = rng.choice(CLASSES, points, p=share)
    turn = np.linspace(0, 2 * np.pi, CLASSES, endpoint=False)
    middles = 0.5 + 0.33 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    xy = np.clip(middles[mine] + 0.055 * rng.standard_normal((points, 2)), 0, 1)
    likely = small.nodes.best.shape[1]
    best = (mine[:, None] + np.arange(likely)) % CLASSES
    p = np.tile(np.array([0.9, *[0.1 / (likely - 1)] * (likely - 1)]), (points, 1))
    degree = rng.poisson(8, points)
    start = np.arange(points + 1) * 2
    near = np.stack([mine, (mine + 1) % CLASSES, (mine + 2) % CLASSES], axis=1)
    nodes = Nodes(
        names=tuple(f"node {i}" for i in range(points)), xy=xy, best=best, p=p, degree=degree,
        near=near, near_count=np.tile([5, 2, 1], (points, 1)), start=start,
        targets=rng.integers(0, points, 2 * points),
    )  # fmt: skip
    sizes = np.bincount(mine, minlength=CLASSES).tolist()
    classes = tuple(replace(c, size=n) for c, n in zip(small.classes, sizes, strict=True))
    return replace(small, nodes=nodes, classes=classes, num_nodes=points)


def chromium() -> str:
    """The browser of this machine."""
    found = os.environ.get("NODENOVA_CHROMIUM") or shutil.which("chromium")
    if not found:
        raise SystemExit("no Chromium here (apt-get install chromium, or set NODENOVA_CHROMIUM)")
    return found


def measure(points: int, browser: Any) -> dict[str, Any]:
    """One row: size, time to open, time of a whole drawing, frames per second of each motion."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(review_page(page_data(points)), encoding="utf-8")
        opened = []
        for _ in range(OPENED):
            page = browser.new_page(viewport=WINDOW)
            begun = time.perf_counter()
            page.goto(path.as_uri(), timeout=120_000)
            page.wait_for_function(OPEN, timeout=120_000)
            opened.append(time.perf_counter() - begun)
            if len(opened) < OPENED:
                page.close()
        drawn = page.evaluate("map.cost")
        values = {}
        for what in ("move", "zoom", "hover"):
            page.wait_for_timeout(400)
            gaps = page.evaluate(FRAMES, [what, MOVING])
            values[f"{what}_fps"] = 1000 * len(gaps) / sum(gaps)
            values[f"{what}_slowest_ms"] = float(np.quantile(gaps, 0.95))
        page.close()
        return {
            "points": points,
            "mib": path.stat().st_size / 2**20,
            "open_clock": statistics.median(opened),
            "draw_ms": drawn,
            **values,
            "commit": commit(),
            "browser": browser.version,
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
        }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows in Markdown, with what they were measured on."""
    title = ["points", "page, MiB", "opens, s", "drawn anew, ms"]
    title += ["moving, frames/s", "zooming", "pointing"]
    lines = [
        [
            f"{row['points']:,}", f"{row['mib']:.1f}", f"{row['open_clock']:.1f}",
            f"{row['draw_ms']:.0f}",
            *(f"{row[f'{what}_fps']:.0f}" for what in ("move", "zoom", "hover")),
        ]
        for row in rows
    ]  # fmt: skip
    one = rows[0]
    loads = ", ".join(f"{row['load']:.1f}" for row in rows)
    return (
        f"{markdown(title, lines)}\n\nChromium {one['browser']} without a graphics card, "
        f"{WINDOW['width']} × {WINDOW['height']} pixels; {one['cores']} cores, load of the machine "
        f"{loads}; commit {one['commit']}."
    )


def main() -> None:
    if sys.argv[1:] != ["table"]:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            rows = []
            for points in map(int, sys.argv[1:] or SIZES):
                rows.append(measure(points, browser))
                print(json.dumps(rows[-1]), flush=True)
            browser.close()
        if sys.argv[1:]:
            return
        ROWS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = [json.loads(line) for line in ROWS.read_text().splitlines()]
    put(PAGE, "frames", table(kept))


if __name__ == "__main__":
    main()
