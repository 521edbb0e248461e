"""Collect the rows of `make bench` in results/performance.jsonl.gz and write their tables.

python tools/performance.py          # the latest rows of every case, then the tables
python tools/performance.py page     # only the tables, from the committed rows
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from into_page import put

from nodenova.bench.render import markdown

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "benchmarks/rows"
ROWS = ROOT / "results/performance.jsonl.gz"
PAGE = ROOT / "docs/performance.md"
README = ROOT / "README.md"
PHASES = ("fit", "discover", "predict")
CURVES = {
    "nodes": "nodes",
    "edges": "edges (both directions)",
    "words": "words",
    "classes": "classes",
    "unlabelled": "unlabelled nodes",
}
FIGURE = ROOT / "docs/images/h-against-seconds.svg"
GRAPHS = {"citeseer": "CiteSeer", "wordnet": "WordNet"}
# Labels of the figure, where the name of a case is longer.
SHORT = {
    "GCD's k-means on Prism's features": "GCD k-means",
    "Leiden, majority label": "Leiden",
    "smoothed features, TruncatedSVD, k-means": "smoothed SVD, k-means",
    "Deep Graph Infomax, k-means": "DGI, k-means",
    "SWORD on GCN": "SWORD",
    "GCN given all labels": "GCN given all labels †",
}
MIN_HALVED = 6  # points of a curve whose larger half has an exponent of its own
Row = dict[str, Any]
Cases = dict[str, Row]  # by name: what all of its rows say, and "values" by quantity


def latest(rows: list[Row]) -> list[Row]:
    """Of every case the rows of its last run."""
    last: dict[tuple[str, str], str] = {}
    for row in rows:
        key = row["benchmark"], row["case"]
        last[key] = max(last.get(key, ""), row["run"])
    kept = [row for row in rows if row["run"] == last[row["benchmark"], row["case"]]]
    once = {(row["benchmark"], row["case"], row["quantity"]): row for row in kept}
    return list(once.values())


def read() -> list[Row]:
    if not ROWS.exists():
        return []
    return [json.loads(line) for line in gzip.decompress(ROWS.read_bytes()).splitlines()]


def pack() -> None:
    """What was measured, over what is committed."""
    rows = read()
    for path in sorted(MEASURED.glob("*.jsonl")):
        rows += [json.loads(line) for line in path.read_text().splitlines()]
    lines = "".join(json.dumps(row, sort_keys=True) + "\n" for row in latest(rows))
    ROWS.write_bytes(gzip.compress(lines.encode(), mtime=0))


def cases(rows: list[Row], benchmark: str) -> Cases:
    found: Cases = {}
    for row in rows:
        if row["benchmark"] == benchmark:
            case = found.setdefault(row["case"], {**row, "values": {}})
            case["values"][row["quantity"]] = row["value"]
    return found


def figure(value: float | None, digits: int = 2) -> str:
    """A number of so many digits; a dash where there is none.

    Examples:
        >>> figure(0.0312), figure(12.34), figure(1234.5), figure(None)
        ('0.031', '12', '1,234', '–')
    """
    if value is None or not np.isfinite(value):
        return "–"
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits - 1 - int(np.floor(np.log10(abs(value))))}f}"


def ratio(value: float | None, base: float | None) -> str:
    return f"{figure(value / base)}×" if value is not None and base else "–"


def exponent(sizes: list[float], values: list[float]) -> float:
    """b of value ~ size^b, by least squares of the logarithms.

    Examples:
        >>> round(exponent([1, 2, 4], [3, 12, 48]), 3)
        2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def seconds(values: dict[str, float]) -> float:
    return sum(values[f"{phase}_seconds"] for phase in PHASES)


def clock(values: dict[str, float]) -> float:
    return sum(values[f"{phase}_clock"] for phase in PHASES)


def peak(values: dict[str, float]) -> float:
    return max(values[f"{phase}_peak_mib"] for phase in PHASES)


def on_top(values: dict[str, float]) -> float:
    """MiB beyond what the process had when it held the graph and nothing else."""
    return peak(values) - values["fit_before_mib"]


def curve(found: Cases, what: str) -> list[tuple[float, dict[str, float]]]:
    """(size, values), ascending. Of edges, the size is how many there are in the end."""
    mine = [case for case in found.values() if case["given"]["what"] == what]
    pairs = [
        (case["values"]["edges"] if what == "edges" else case["given"]["size"], case["values"])
        for case in mine
    ]
    return sorted(pairs, key=lambda pair: pair[0])


def sizes_table(rows: list[Row]) -> str:
    lines = []
    for size, values in curve(cases(rows, "scaling"), "nodes"):
        phases = [figure(values[f"{phase}_seconds"]) for phase in PHASES]
        graph = values["graph_mib"]
        memory = [figure(peak(values), 3), figure(graph), ratio(on_top(values), graph)]
        lines.append([f"{size:,.0f}", f"{values['edges']:,.0f}", *phases, *memory])
    title = ["nodes", "edges, both directions", "fit, s", "discover, s", "predict all, s"]
    title += ["peak, MiB", "the graph, MiB", "peak beyond it"]
    return markdown(title, lines)


def large_table(rows: list[Row]) -> str:
    found = cases(rows, "large")
    lines = []
    for name, case in found.items():
        values = case["values"]
        base = found.get(case["against"], {}).get("values", {})
        phases = [figure(values[f"{phase}_seconds"], 3) for phase in PHASES]
        faster = figure(clock(base) / clock(values), 3) if base and case["threads"] > 1 else ""
        kept = max(values[f"{phase}_anonymous_mib"] for phase in PHASES)
        memory = [f"{mib / 1024:.2f}" for mib in (peak(values), kept)]
        right = f"{values['found_percent']:.2f}"
        lines.append([name, *phases, figure(clock(values), 3), faster, *memory, right])
    title = ["what", *(f"{phase}, s" for phase in PHASES), "all by the clock, s"]
    title += ["times one thread", "peak, GiB", "of it not mapped, GiB", "found, %"]
    return markdown(title, lines)


def costs_table(rows: list[Row]) -> str:
    found = cases(rows, "costs")
    lines = []
    for name, case in found.items():
        values = case["values"]
        base = found.get(case["against"], {}).get("values", {})
        said = ""
        if values.get("products_seconds") and not base:
            said = f"{figure(values['seconds'] / values['products_seconds'], 3)} times its products"
        if base.get("clock"):
            said = f"{figure(base['clock'] / values['clock'], 3)} times as fast by the clock"
        if values.get("files_mib"):
            said = f"{figure(values['files_mib'])} MiB of files"
        taken = [figure(values.get("seconds")), figure(values.get("clock"))]
        lines.append([name, *taken, figure(values.get("peak_mib"), 3), said])
    return markdown(["what", "s of processor", "s by the clock", "peak, MiB", ""], lines)


def rivals_table(rows: list[Row]) -> str:
    found = cases(rows, "rivals")
    parts = []
    for graph in dict.fromkeys(case["given"]["graph"] for case in found.values()):
        lines = []
        for name, case in found.items():
            if case["given"]["graph"] == graph:
                values, base = case["values"], found[case["against"]]["values"]
                scores = [f"{values[f'{score}_percent']:.1f}" for score in ("all", "h")]
                taken = [figure(values["seconds"]), ratio(values["seconds"], base["seconds"])]
                memory = [figure(values["peak_mib"], 3)]
                memory += [ratio(values["peak_mib"], base["peak_mib"])]
                way = name.removesuffix(f", {graph}")
                lines.append([way, *scores, *taken, *memory, str(case["given"]["seeds"])])
        title = [graph, "All", "H", "s of processor", "of Prism's"]
        parts.append(markdown([*title, "peak, MiB", "of Prism's", "seeds"], lines))
    return "\n\n".join(parts)


def readme_table(rows: list[Row]) -> str:
    """One line per way of discovering classes, with All, H and seconds on each graph."""
    found = cases(rows, "rivals")
    lines: dict[str, list[str]] = {}
    for name, case in found.items():
        graph, values = case["given"]["graph"], case["values"]
        numbers = [f"{values[f'{score}_percent']:.1f}" for score in ("all", "h")]
        way = name.removesuffix(f", {graph}")
        way = {"Prism": "**Prism (default)**"}.get(way, way)
        lines.setdefault(way, [way]).extend([*numbers, figure(values["seconds"])])
    head = [f"{title} {what}" for title in GRAPHS.values() for what in ("All", "H", "seconds")]
    return markdown(["", *head], [line for line in lines.values() if len(line) == 7])


PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP = 400, 330, 46, 34
CHARACTER = 7.0  # width of a letter of a label, in pixels
STYLE = """
svg { font: 12px system-ui, sans-serif; fill: #24292f; }
.bold { font-weight: 600; } .grid { stroke: #d0d7de; }
.ours { fill: #3949ab; } .other { fill: #8c959f; } .axis { fill: #57606a; }
"""


def rivals_figure(rows: list[Row]) -> str:
    """H against processor seconds on each graph, as an SVG: up and to the left is better."""
    found = cases(rows, "rivals")
    points: dict[str, list[tuple[str, float, float]]] = {graph: [] for graph in GRAPHS}
    for name, case in found.items():
        graph, values = case["given"]["graph"], case["values"]
        way = name.removesuffix(f", {graph}")
        points[graph].append((SHORT.get(way, way), values["seconds"], values["h_percent"]))
    every = [seconds for each in points.values() for _, seconds, _ in each]
    low, high = np.floor(np.log10(min(every))), np.ceil(np.log10(max(every)))
    panels = []
    for place, (graph, each) in enumerate(points.items()):
        content = panel(GRAPHS[graph], each, low, high)
        panels.append(f'<g transform="translate({place * PANEL_WIDTH} 0)">{content}</g>')
    size = f"{PANEL_WIDTH * len(points)} {PANEL_HEIGHT}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">\n'
        "<title>H (percent) against seconds of one core</title>\n"
        f"<style>{STYLE}</style>\n"
        '<rect width="100%" height="100%" rx="8" style="fill: #fff"/>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def panel(title: str, points: list[tuple[str, float, float]], low: float, high: float) -> str:
    """Axes, points and labels of one graph."""
    width, height = PANEL_WIDTH - LEFT - 14, PANEL_HEIGHT - TOP - 44

    def x(seconds: float) -> float:
        return LEFT + width * float(np.log10(seconds) - low) / float(high - low)

    def y(percent: float) -> float:
        return TOP + height * (1 - percent / 100)

    parts = [f'<text class="bold" x="{LEFT}" y="18">{title}</text>']
    for percent in range(0, 101, 20):
        line = f'x1="{LEFT}" x2="{LEFT + width}" y1="{y(percent):.1f}" y2="{y(percent):.1f}"'
        parts.append(f'<line class="grid" {line}/>')
        at = f'x="{LEFT - 6}" y="{y(percent) + 4:.1f}" text-anchor="end"'
        parts.append(f'<text class="axis" {at}>{percent}</text>')
    for power in range(round(low), round(high) + 1):
        at = f'x="{x(10.0**power):.1f}" y="{TOP + height + 17}" text-anchor="middle"'
        parts.append(f'<text class="axis" {at}>{10.0**power:g}</text>')
    middle = f'x="{LEFT + width / 2:.1f}" y="{TOP + height + 36}" text-anchor="middle"'
    parts.append(f'<text class="axis" {middle}>seconds of one core</text>')
    corner = f'x="{LEFT + width}" y="18" text-anchor="end"'
    parts.append(f'<text class="axis" {corner}>H in percent; up and left is better</text>')
    boxes = [(x(s) - 6, y(h) - 6, x(s) + 6, y(h) + 6) for _, s, h in points]
    for name, seconds, score in points:
        ours = name == "Prism"
        left, base = label_place(x(seconds), y(score), CHARACTER * len(name), boxes)
        mark = f'cx="{x(seconds):.1f}" cy="{y(score):.1f}" r="{6 if ours else 4.5}"'
        parts.append(f'<circle class="{"ours" if ours else "other"}" {mark}/>')
        bold = ' class="bold ours"' if ours else ""
        parts.append(f'<text{bold} x="{left:.1f}" y="{base:.1f}">{name}</text>')
    return "".join(parts)


def label_place(
    x: float, y: float, width: float, boxes: list[tuple[float, float, float, float]]
) -> tuple[float, float]:
    """Left end and base line of a label beside a point, away from `boxes`, to which it is added."""
    sides = [
        (x + 9, y + 4),
        (x - 9 - width, y + 4),
        (x - width / 2, y - 10),
        (x - width / 2, y + 19),
    ]
    sides += [(x + 6, y - 9), (x + 6, y + 17), (x - 6 - width, y - 9), (x - 6 - width, y + 17)]

    def cost(place: tuple[float, float]) -> float:
        box = (place[0], place[1] - 11, place[0] + width, place[1] + 3)
        outside = max(0, LEFT - box[0]) + max(0, box[2] - PANEL_WIDTH + 4)
        over = [
            max(0, min(box[2], b[2]) - max(box[0], b[0]))
            * max(0, min(box[3], b[3]) - max(box[1], b[1]))
            for b in boxes
        ]
        return 20 * outside + sum(over)

    best = min(sides, key=cost)
    boxes.append((best[0], best[1] - 11, best[0] + width, best[1] + 3))
    return best


def layers_table(rows: list[Row]) -> str:
    found = cases(rows, "layers")
    lines = []
    for name, case in found.items():
        values, base = case["values"], found.get(case["against"], {}).get("values", {})
        taken = [figure(values["seconds"]), figure(values["clock"])]
        by = "clock" if case["threads"] > 1 else "seconds"
        beside = ratio(values[by], base[by]) if base else ""
        lines.append([name, *taken, beside, figure(values["peak_mib"] - values["before_mib"])])
    title = ["what", "s of processor", "s by the clock", "of ours", "MiB on top"]
    return markdown(title, lines)


def curves_table(rows: list[Row]) -> str:
    found = cases(rows, "scaling")
    measures: dict[str, Callable[[dict[str, float]], float]] = {
        phase: lambda values, phase=phase: values[f"{phase}_seconds"]  # type: ignore[misc]
        for phase in PHASES
    }
    measures |= {"all three": seconds, "memory on top": on_top}
    exponents, parts = [], []
    for what, title in CURVES.items():
        points = curve(found, what)
        if len(points) < 2:
            continue
        # The larger half as well: there, what does not grow weighs less.
        for first in (0, len(points) // 2) if len(points) >= MIN_HALVED else (0,):
            at, some = [size for size, _ in points[first:]], points[first:]
            fitted = [exponent(at, [of(values) for _, values in some]) for of in measures.values()]
            span = f"{at[0]:,.0f} to {at[-1]:,.0f}"
            exponents.append([title, span, *(f"{value:.2f}" for value in fitted)])
        lines = [
            [name, *(figure(of(values)) for _, values in points)] for name, of in measures.items()
        ]
        names = [f"{name}, {'MiB' if 'memory' in name else 's'}" for name, *_ in lines]
        shown = [[name, *line[1:]] for name, line in zip(names, lines, strict=True)]
        parts.append(markdown([title, *(f"{size:,.0f}" for size, _ in points)], shown))
    table = markdown(["exponent against", "from, to", *measures], exponents)
    return "\n\n".join([table, *parts])


def how(rows: list[Row]) -> str:
    """On what, by what: of every row."""
    of = {key: sorted({str(row[key]) for row in rows}) for key in ("commit", "cores")}
    loads = [row["load"] for row in rows]
    days = sorted({row["run"][:10] for row in rows})
    said = {f"{name} {v}" for row in rows for name, v in row["versions"].items()}
    return (
        f"Commit {', '.join(of['commit'])} ({', '.join(days)}); {' or '.join(of['cores'])} cores; "
        f"load of the machine before a case {min(loads):.1f} to {max(loads):.1f}; "
        f"{', '.join(sorted(said))}."
    )


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "sizes": sizes_table,
    "large": large_table,
    "costs": costs_table,
    "rivals": rivals_table,
    "layers": layers_table,
    "curves": curves_table,
    "how": how,
}


def write(page: Path = PAGE, readme: Path = README, image: Path = FIGURE) -> None:
    """Write every table into its place in the page and in the README, and the figure."""
    rows = read()
    for name, table in TABLES.items():
        put(page, name, table(rows))
    put(readme, "results", readme_table(rows))
    image.write_text(rivals_figure(rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["page"])
    if parser.parse_args().what is None:
        pack()
    write()


if __name__ == "__main__":
    main()
