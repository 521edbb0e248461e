"""Figures of a report: plain data in, a plotly Figure out. Names are shown as they are, never read as markup.

Backgrounds are transparent and the ink is the page's own (its style sheet colours text and grid lines), so that a
figure reads on light and on dark.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

# Seven colours that stay apart for every kind of colour vision (Paul Tol's "vibrant"), on white and on black.
COLOURS = ("#0077bb", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#999999")
# From the eighth class on the colours come back, in another drawing of the same shape.
DRAWINGS = ("", "-open", "-open-dot", "-cross-open", "-x-open")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
BLUES = [[0.0, "#f2f6fb"], [0.25, "#c3d9ee"], [0.5, "#7fb2da"], [0.75, "#3a7fbd"], [1.0, "#0b4a8b"]]
INK, GRID = "#555", "#ccc"
LONGEST = 24  # letters of a name on an axis or in a legend; the hover text has all of it
COUNTS_UP_TO = 20  # columns of a confusion matrix with a number in each cell

# Draws every embedded figure, lets the choices called "view" switch the map, and fits the figures to paper.
SCRIPT = """
const plots = [...document.querySelectorAll("[data-plot]")].map(block => {
  const plot = document.getElementById(block.dataset.plot), {data, layout} = JSON.parse(block.textContent);
  Plotly.newPlot(plot, data, layout, {responsive: true, displayModeBar: false});
  return plot;
});
for (const choice of document.querySelectorAll("input[name=view]")) choice.addEventListener("change", () => {
  const map = document.getElementById("map");
  Plotly.restyle(map, {visible: map.data.map(trace => trace.meta === choice.value)});
});
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const plot of plots) Plotly.relayout(plot, {width: 660});
});
addEventListener("afterprint", () => { for (const plot of plots) Plotly.relayout(plot, {width: null, autosize: true}); });
"""


def label(name: object, longest: int | None = LONGEST) -> str:
    """A name as text for plotly, which reads labels as HTML and knows only the entities of &, < and >."""
    text = " ".join(str(name).split())
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    return html.escape(text, quote=False)


def loss_curves(history: Mapping[str, Sequence[float]]) -> go.Figure:
    """One line a weighted term, over the epochs; a term that is zero or not finite leaves a gap."""
    figure = go.Figure()
    values = [value for term in history.values() for value in term if math.isfinite(value)]
    positive = [value for value in values if value > 0]
    logarithmic = len(positive) > 1 and min(values) >= 0 and max(positive) > 20 * min(positive)
    for i, (name, term) in enumerate(history.items()):
        drawn = [v if math.isfinite(v) and (v > 0 or not logarithmic) else None for v in term]
        figure.add_scatter(
            x=list(range(1, len(term) + 1)),
            y=drawn,
            name=label(name),
            mode="lines" if len(term) > 1 else "markers",
            line={"color": COLOURS[i % len(COLOURS)], "dash": DASHES[i % len(DASHES)], "width": 2},
            hovertemplate="epoch %{x}: %{y:.4g}",
        )
    figure.update_xaxes(title=_title("epoch"), rangemode="tozero")
    figure.update_yaxes(title=_title("weighted loss"), type="log" if logarithmic else "linear")
    if logarithmic:
        figure.update_yaxes(dtick=1, exponentformat="power", minor={"ticks": "outside", "ticklen": 3})
    return _finished(figure, height=340)


def confusion(
    counts: np.ndarray, true_names: Sequence[str], predicted_names: Sequence[str], n_old: int, notes: Sequence[str] = ()
) -> go.Figure:
    """Counts (true x predicted) as a heat map, coloured by the share of the true class.

    Lines part the old classes from the new. `notes`, one a predicted class, stand under the names on that axis.
    """
    n_true, n_predicted = counts.shape
    total = counts.sum(axis=1, keepdims=True)
    share = counts / np.maximum(total, 1)
    hover = [
        [
            f"true: {label(t, None)}<br>predicted: {label(p, None)}<br>"
            f"{counts[i, j]} of {total[i, 0]} nodes ({100 * share[i, j]:.1f} %)"
            for j, p in enumerate(predicted_names)
        ]
        for i, t in enumerate(true_names)
    ]
    with_counts = n_predicted <= COUNTS_UP_TO
    figure = go.Figure(
        go.Heatmap(
            z=share.round(4).tolist(),
            text=counts.tolist(),
            texttemplate="%{text}" if with_counts else None,
            hovertext=hover,
            hoverinfo="text",
            colorscale=BLUES,
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    for line in ({"x0": n_old - 0.5, "x1": n_old - 0.5, "y0": -0.5, "y1": n_true - 0.5},
                 {"y0": n_old - 0.5, "y1": n_old - 0.5, "x0": -0.5, "x1": n_predicted - 0.5}):  # fmt: skip
        figure.add_shape(type="line", line={"color": "#ee7733", "width": 2.5}, **line)
    longest = max(map(len, [*predicted_names, *notes]))
    upright = min(longest, LONGEST) * n_predicted <= 60
    below = [
        label(name) + (("<br>" if upright else " ") + label(note) if note else "")
        for name, note in zip(predicted_names, notes or [""] * n_predicted, strict=True)
    ]
    figure.update_xaxes(title=_title("predicted"), tickangle=0 if upright else -90)
    figure.update_yaxes(title=_title("true"), range=[n_true - 0.5, -0.5])
    figure.update_xaxes(tickvals=list(range(n_predicted)), ticktext=below, range=[-0.5, n_predicted - 0.5])
    figure.update_yaxes(tickvals=list(range(n_true)), ticktext=[label(name) for name in true_names])
    figure.update_layout(showlegend=False)
    return _finished(
        figure, height=130 + (0 if upright else 8 * max(map(len, below))) + min(900, max(200, 36 * n_true)), grid=False
    )


def positions(z: np.ndarray) -> np.ndarray | None:
    """(n, 2) places of the embeddings z on a t-SNE map, the same every time; None where there is nothing to lay out."""
    z = np.asarray(z, dtype=np.float64)
    n = len(z)
    if n < 4 or not np.isfinite(z).all() or not np.ptp(z, axis=0).any():
        return None
    z = np.pad(z, ((0, 0), (0, max(0, 2 - z.shape[1]))))
    # One thread: sums in one order, and on a busy machine many times faster than threads that wait for each other.
    with threadpool_limits(1):
        return TSNE(random_state=0, init="pca", perplexity=min(30.0, (n - 1) / 3)).fit_transform(z)


def predicted_names(names: Sequence[str], n_old: int, n_predicted: int) -> list[str]:
    """What predicted classes are called before they are matched: old ones by name, discovered ones new-<id>."""
    return [*names[:n_old], *(f"new-{i}" for i in range(n_old, n_predicted))]


def node_map(
    xy: np.ndarray,
    node_ids: Sequence[object],
    y: np.ndarray,
    predicted: np.ndarray,
    names: Sequence[str],
    n_old: int,
    matched: np.ndarray,
) -> go.Figure:
    """Nodes at `xy`, coloured by true class and, hidden at first, by predicted class; a trace's `meta` says which.

    A predicted class has the colour of the true class it is matched to. Old classes are circles, new ones diamonds.
    """
    said = predicted_names(names, n_old, len(matched))
    colour = {int(p): len(names) + i for i, p in enumerate(np.flatnonzero(matched < 0))}
    colour |= {p: int(t) for p, t in enumerate(matched) if t >= 0}
    told = [n if p < n_old else f"{n} = {names[t]}" if t >= 0 else f"{n} (no partner)"
            for p, (n, t) in enumerate(zip(said, matched, strict=True))]  # fmt: skip
    hover = [
        f"node {label(node, None)}<br>true: {label(names[c], None)}<br>predicted: {label(told[p], None)}"
        for node, c, p in zip(node_ids, y, predicted, strict=True)
    ]
    figure = go.Figure()
    views = [("true", y, c, name, c) for c, name in enumerate(names)]
    views += [("predicted", predicted, p, name, colour[p]) for p, name in enumerate(told)]
    for view, classes, c, name, number in views:
        members = np.flatnonzero(classes == c)
        if not len(members):
            continue
        figure.add_scatter(
            x=xy[members, 0].astype(float).round(2).tolist(),
            y=xy[members, 1].astype(float).round(2).tolist(),
            mode="markers",
            name=label(name, 2 * LONGEST),
            meta=view,
            visible=view == "true",
            hovertext=[hover[i] for i in members],
            hoverinfo="text",
            marker={
                "color": COLOURS[number % len(COLOURS)],
                "symbol": _symbol(number, c >= n_old),
                "size": 8,
                "opacity": 0.85,
            },
        )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return _finished(figure, height=640, grid=False)


def _symbol(number: int, is_new: bool) -> str:
    return ("diamond" if is_new else "circle") + DRAWINGS[number // len(COLOURS) % len(DRAWINGS)]


def _title(text: str) -> dict[str, object]:
    return {"text": text, "standoff": 12}


def _finished(figure: go.Figure, height: int, grid: bool = True) -> go.Figure:
    """The look all figures share."""
    figure.update_layout(
        template="none",
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        margin={"l": 60, "r": 16, "t": 16, "b": 50},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.02 if grid else -0.03,
            "yanchor": "bottom" if grid else "top",
            "itemsizing": "constant",
        },
        hoverlabel={"bgcolor": "#fff", "bordercolor": "#888", "font": {"color": "#111"}, "align": "left"},
    )
    if len(figure.data) == 1 and figure.layout.showlegend is None:
        figure.update_layout(showlegend=True)
    axis = {"showgrid": grid, "gridcolor": GRID, "zeroline": False, "automargin": True, "ticklen": 4}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure


def embedded(name: str, figure: go.Figure, what: str) -> str:
    """HTML: a place for a figure and its data, which `SCRIPT` draws there. No name in the data can end the data block."""
    data = json.dumps(json.loads(figure.to_json()), separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return (
        f'<div class="plot" id="{name}" role="img" aria-label="{html.escape(what)}" '
        f'style="min-height:{figure.layout.height}px"></div>'
        f'<script type="application/json" data-plot="{name}">{data}</script>'
    )
