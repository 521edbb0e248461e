"""The report of a run: one HTML file that opens offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nodenova.bench.embeddings import layout_of
from nodenova.bench.folder import MAP, GradedFolder
from nodenova.bench.row import Row
from nodenova.display import plural
from nodenova.errors import StorageError
from nodenova.evaluation import metrics
from nodenova.files.atomic import write_atomically
from nodenova.model.model import Stage
from nodenova.report.charts import before_and_after_matching, loss_curves, predicted_names
from nodenova.report.html import MAP_SCRIPTS, START, render_page
from nodenova.report.node_map import map_data
from nodenova.report.scores import score_tables
from nodenova.report.tsne import differ, positions

SEEN = {
    "graph": "the graph (features and edges)",
    "new_ids": "which nodes are the unlabelled ones, and how many classes to find",
}


def write_report(folder: GradedFolder) -> Path:
    """Write report.html into the run's folder and return its path; equal runs give equal bytes."""
    rows = folder.rows()
    if not rows:
        raise StorageError(
            f"{folder.path}: this run has no finished seed yet, so there is nothing to report"
        )
    path, node_map = folder.path / "report.html", folder.map()
    xy = None if node_map is None else layout_of(folder.path / MAP, node_map["z"], "z")
    content = page(rows, folder.model().stages, node_map, xy).encode()
    write_atomically(path, content, follow=False)
    return path


def page(
    rows: Sequence[Row],
    stages: Sequence[Stage],
    node_map: Mapping[str, np.ndarray] | None,
    xy: np.ndarray | None = None,
) -> str:
    """Return the page of one run: a row per seed, the phases of the first seed, and its map.

    `xy` is (n, 2) the places of the nodes of `node_map`, if they are known already.
    """
    first = rows[0]
    counts, names, n_old = np.array(first.confusion), list(first.class_names), first.num_old
    data, map_note = _map(rows, node_map, xy)
    return render_page(
        "nodenova.bench",
        "run.html.j2",
        f"{first.dataset} · {first.method} · {first.encoder}",
        kind="run",
        scripts=() if data is None else (*MAP_SCRIPTS, START),
        data=data,
        lead=_lead(rows),
        labels_given=[what for what in first.sees if "label" in what],
        asked=_options(rows),
        scores=score_tables(rows),
        seed=first.seed,
        losses=[
            (
                f"Phase {number}: {stage.method}",
                loss_curves(stage.history, f"Losses of phase {number}"),
            )
            for number, stage in enumerate(stages, start=1)
        ],
        confusions=before_and_after_matching(
            counts, names, n_old, first.sizes, first.predicted_sizes
        ),
        views={"class": "predicted class", "true": "true class"},
        map_note=map_note,
        class_view=False,
        shown={
            "Phase 2 was shown": "; ".join(SEEN.get(what, what) for what in first.sees),
            "Fingerprint of the data": _common_value(rows, [row.data for row in rows]),
        },
        settings=[
            ("Phase 1", "fit_settings", _settings(rows, "fit_settings")),
            (f"Phase 2: {first.method}", "settings", _settings(rows, "settings")),
            ("Versions", "versions", _settings(rows, "versions")),
        ],
    )


def _lead(rows: Sequence[Row]) -> str:
    first = rows[0]
    n_old, n_true, num_new, nodes = first.num_old, first.sizes[-1], first.num_new, first.nodes
    found = any(np.array(row.confusion)[:, n_old:].any() for row in rows)
    among = f"among {plural(nodes.unlabelled_new, 'unlabelled node')}"
    new = f"{num_new} new {'one' if num_new == 1 else 'ones'} {_was(num_new)}"
    lead = f"{plural(n_old, 'labelled class', 'labelled classes')} {_was(n_old)} learned, "
    if found:
        lead += f"{new} discovered {among}, "
    else:
        lead += f"{new} looked for {among} but no test node was assigned to one, "
    lead += f"graded on {plural(nodes.test, 'test node')}."
    if num_new == n_true:
        return lead
    return f"{lead} There {_was(n_true)} truly {plural(n_true, 'new class', 'new classes')}."


def _options(rows: Sequence[Row]) -> dict[str, str]:
    first = rows[0]
    n_old, names = first.num_old, first.class_names
    return {
        "Dataset": first.dataset,
        "Method": first.method,
        "Encoder": first.encoder,
        "Old classes": ", ".join(names[:n_old]),
        "New classes": f"{', '.join(names[n_old:])} (phase 2 had to find {first.num_new})",
        "Split": first.split,
        "Setting": first.visibility,
        "Seeds": ", ".join(str(row.seed) for row in rows),
    }


def _map(
    rows: Sequence[Row], node_map: Mapping[str, np.ndarray] | None, xy: np.ndarray | None
) -> tuple[dict[str, object] | None, str]:
    """Return the data of the map's scripts, if there is a map, and a note on it."""
    if node_map is None:
        return None, "There is no map: this run has no stored embeddings (map.npz)."
    if not differ(node_map["z"]):
        return None, "There is no map: too few nodes, or their embeddings do not differ."
    for name in ("predicted", "node_ids", "seed"):
        if name not in node_map:
            raise StorageError(f"map.npz: damaged, the array {name} is missing")
    first = rows[0]
    y, predicted = node_map["y"], node_map["predicted"]
    if node_map["seed"].dtype.kind not in "iu" or node_map["seed"].size != 1:
        raise StorageError("map.npz: damaged, its seed is not a whole number")
    if not len(y) == len(predicted) == len(node_map["z"]):
        raise StorageError("map.npz: damaged, its arrays do not fit together")
    seed = int(node_map["seed"].item())
    names = first.class_names
    n_old, n_predicted = first.num_old, first.num_old + first.num_new
    highest = max(y.max(initial=0) - len(names), predicted.max(initial=0) - n_predicted)
    if highest >= 0 or min(y.min(initial=0), predicted.min(initial=0)) < 0:
        raise StorageError("map.npz: damaged, it has other classes than the rows of the run")
    counts = metrics.confusion_matrix(y, predicted, len(names), n_predicted)
    # All test nodes of the row match classes better than the nodes of the map alone.
    for row in rows:
        if row.seed == seed:
            counts = np.array(row.confusion)
    if counts.shape != (len(names), n_predicted):
        raise StorageError("map.npz: damaged, the row of its seed has other classes")
    matched = metrics.match_block(counts, first.sizes, first.predicted_sizes)
    true_as = np.full(len(names), -1)
    true_as[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
    predicted_titles = predicted_names(names, n_old, n_predicted)
    class_titles = [
        name if c < n_old else f"{name} = {names[t]}" if t >= 0 else f"{name} (no partner)"
        for c, (name, t) in enumerate(zip(predicted_titles, matched, strict=True))
    ]
    members = np.bincount(predicted, minlength=n_predicted).tolist()
    data = map_data(
        [str(node) for node in node_map["node_ids"].tolist()],
        positions(node_map["z"]) if xy is None else xy,
        [(c, name, c >= n_old, members[c]) for c, name in enumerate(class_titles)],
        predicted[:, None],
        true=y,
        true_names=names,
        true_as=true_as.tolist(),
    )
    return data, (
        f"{plural(len(y), 'test node')} of seed {seed}. A true class has the color of its matched "
        "class; one without a match is drawn with crosses."
    )


def _settings(rows: Sequence[Row], key: str) -> list[tuple[str, str]]:
    names = dict.fromkeys(name for row in rows for name in getattr(row, key))
    return [
        (name, _common_value(rows, [getattr(row, key).get(name, "–") for row in rows]))
        for name in names
    ]


def _common_value(rows: Sequence[Row], values: Sequence[object]) -> str:
    """Return the value, or, where seeds differ, each value with its seeds."""
    seeds: dict[str, list[str]] = {}
    for row, value in zip(rows, values, strict=True):
        seeds.setdefault(str(value), []).append(str(row.seed))
    if len(seeds) == 1:
        return next(iter(seeds))
    return "; ".join(f"{value} (seed {', '.join(its)})" for value, its in seeds.items())


def _was(n: int) -> str:
    return "was" if n == 1 else "were"
