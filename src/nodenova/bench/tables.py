"""The tables of the bench, each a pure function of rows: it selects its own and measures them.

The order of rows does not matter, but of two rows with one key (a failed run and its repetition)
the later counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product

import numpy as np

from nodenova.bench import titles
from nodenova.bench.paper import LEFT_OUT, published_lines, published_source
from nodenova.bench.row import Row
from nodenova.bench.row_filters import (
    PHASE_1,
    ablation_rows,
    by_method,
    changes,
    confusions,
    depth_of,
    depth_rows,
    in_paper_setting,
    in_setting,
    latest,
    left_out,
    once,
    panels,
    sweep_rows,
    variants,
    with_comparable_settings,
    with_defaults,
    with_usual_schedule,
    without_ncd,
)
from nodenova.bench.table import (
    Cell,
    Column,
    Entry,
    Line,
    Measure,
    Table,
    TableText,
    score_measures,
    table,
)
from nodenova.bench.titles import (
    COUNTERS,
    DATASETS,
    ENCODERS,
    LABEL_GROUPS,
    LOSSES,
    METHODS,
    PARAMETERS,
    caption,
    dataset_title,
    encoder_title,
    in_order,
    method_title,
)
from nodenova.data.protocols import SHARES_COUNTED, SHARES_MIXED
from nodenova.data.splits import SETTINGS
from nodenova.evaluation import metrics
from nodenova.evaluation.grade import Grade
from nodenova.evaluation.scores import mean_std

ACCURACIES = ("old", "new", "all", "h")


def _text(name: str, title: str = "", **options: object) -> TableText:
    """Title and caption of a table of the paper, and options of `TableText`."""
    words = options.pop("caption", None) or caption(name)
    title = title or titles.TABLES[name].title
    return TableText(title, words, paper=name, **options)  # type: ignore[arg-type]


# Tables of the paper


def settings(rows: Sequence[Row]) -> list[Table]:
    """Methods by what phase 2 is given, scored with and without knowing old from new."""
    by_labels: dict[tuple[bool, bool], list[Entry]] = {labels: [] for labels in LABEL_GROUPS}
    for entry in by_method(with_defaults(in_paper_setting(rows))):
        sees = {what for row in entry.rows for what in row.sees}
        labels = ("new_labels" in sees, bool({"new_labels", "old_labels"} & sees))
        group = f"{LABEL_GROUPS[labels]}, {entry.group}"
        by_labels[labels].append(replace(entry, group=group, reference=False))
    measures = score_measures(("old_n", "new_n", "all_n", *ACCURACIES))
    return [table(_text("settings"), list(chain(*by_labels.values())), measures)]


def comparison(rows: Sequence[Row], run_keys: Collection[str] = ()) -> list[Table]:
    """Methods, on other schedules and sizes too; `run_keys` are shown with changed settings."""
    selected = without_ncd(with_comparable_settings(in_setting(rows, PHASE_1), run_keys))
    entries = by_method(selected, _line_variants(selected, variants(selected)))
    marked = score_measures(ACCURACIES, ("all", "h"))
    block = table(_text("comparison", average=True), entries, marked)
    options = {"caption": caption("comparison-identity"), "matching": "identity", "average": True}
    text = _text("comparison", "Comparison, matched by identity", **options)
    measures = score_measures(("old", "new", "all"), matching="identity")
    identity = table(text, entries, measures)
    inductive_rows = in_paper_setting(rows, visibility="inductive")
    met = without_ncd(with_comparable_settings(inductive_rows, run_keys))
    words = caption("comparison-inductive")
    text = _text("comparison", "Comparison, inductive", caption=words, average=True)
    inductive = table(text, by_method(met, _line_variants(met)), marked)
    return [block, identity, *([inductive] if inductive.lines else [])]


def _line_variants(rows: Sequence[Row], names: Sequence[str] | None = None) -> list[str]:
    """For each row the changed settings of its method, then its name in `names`."""
    more = [""] * len(rows) if names is None else names
    pairs = zip(rows, more, strict=True)
    return [", ".join(filter(None, (changes(row), name))) for row, name in pairs]


def collapse(rows: Sequence[Row]) -> list[Table]:
    """Number of new classes that each method uses."""
    selected = without_ncd(with_comparable_settings(in_paper_setting(rows)))
    counts = {row.dataset: row.num_new for row in selected}
    named = (f"{dataset_title(d)} {counts[d]}" for d in in_order(set(counts), DATASETS))
    text = _text("collapse", caption=caption("collapse", ", ".join(named)))
    measures = score_measures(("new_used", "new_all", "new_largest"))
    return [table(text, by_method(selected), measures)]


def heads(rows: Sequence[Row]) -> list[Table]:
    """New nodes by the head for new classes alone."""
    entries = by_method(without_ncd(with_defaults(in_paper_setting(rows))))
    measures = score_measures(("old", "new_n", "all"), ("new_n", "all"))
    return [table(_text("heads"), entries, measures)]


def forgetting(rows: Sequence[Row]) -> list[Table]:
    """Mean accuracy after phase 2, and its cost for the old classes."""
    entries = by_method(without_ncd(with_comparable_settings(in_paper_setting(rows))))
    measures = score_measures(("aa", "af"), ("aa", "af"))
    return [table(_text("forgetting", average=True), entries, measures)]


def _block(encoder: str, kind: str) -> str:
    """Title of a block: its encoder, and the settings of all of its lines."""
    return f"{encoder_title(encoder)}, {kind}" if kind else encoder_title(encoder)


def ablation(rows: Sequence[Row]) -> list[Table]:
    """SWORD without some of its losses."""
    found = ablation_rows(rows)
    entries = []
    for encoder in in_order({row.encoder for _, row in found}, ENCODERS):
        for kind in dict.fromkeys(kind for kind, row in found if row.encoder == encoder):
            mine = [row for same, row in found if (same, row.encoder) == (kind, encoder)]
            for line in LEFT_OUT:
                its = [row for row in mine if left_out(row, beside=True) == line]
                ticks = tuple("" if loss in line.split("+") else "✓" for loss in LOSSES)
                paper_line = "" if kind else line
                group = _block(encoder, kind)
                entries.append(Entry(group, ticks, its, encoder, paper_line, line == "none"))
    measures = score_measures(ACCURACIES, ("all", "h"))
    return [table(_text("ablation", heads=tuple(LOSSES.values())), entries, measures)]


def sensitivity(rows: Sequence[Row]) -> list[Table]:
    """SWORD with one parameter moved."""
    entries = []
    for parameter, letter in PARAMETERS.items():
        sweep = sweep_rows(rows, parameter)
        for encoder in in_order({row.encoder for each in sweep.values() for row in each}, ENCODERS):
            for (kind, value), each in sweep.items():
                mine = [row for row in each if row.encoder == encoder]
                default = " (default)" if any(parameter not in row.changed for row in mine) else ""
                group = f"{letter}, {_block(encoder, kind)}"
                entries += [Entry(group, (f"{value:g}{default}",), mine, encoder)] if mine else []
    return [table(_text("sensitivity", heads=("Value",)), entries, score_measures(ACCURACIES))]


def layers(rows: Sequence[Row]) -> list[Table]:
    """Methods by the depth of their encoder."""
    blocks: dict[tuple[str, str, str], list[Row]] = {}
    for kind, row in depth_rows(rows):
        blocks.setdefault((row.encoder, row.method, kind), []).append(row)
    entries = []
    for encoder in in_order({encoder for encoder, _, _ in blocks}, ENCODERS):
        for method in in_order({method for its, method, _ in blocks if its == encoder}, METHODS):
            for kind in (kind for its, whose, kind in blocks if (its, whose) == (encoder, method)):
                group = f"{method_title(method)}, {_block(encoder, kind)}"
                by_depth: dict[int, list[Row]] = {}
                for row in blocks[encoder, method, kind]:
                    by_depth.setdefault(depth_of(row), []).append(row)
                for depth in sorted(by_depth) if len(by_depth) > 1 else ():
                    entries.append(Entry(group, (str(depth),), by_depth[depth], encoder))
    return [table(_text("layers", heads=("Layers",)), entries, score_measures(ACCURACIES))]


def class_splits(rows: Sequence[Row]) -> list[Table]:
    """Methods over random choices of the old classes."""
    rows = [row for row in latest(rows) if row.class_split is not None and not row.protocol]
    rows = [row for row in with_defaults(rows) if set(row.fit_changed) <= {"hidden", "schedule"}]
    rows = without_ncd(with_usual_schedule(rows))
    entries: list[Entry] = []
    for draw in in_order({row.draw for row in rows}, ("published", "balanced", "as-it-comes")):
        for visibility in in_order({row.visibility for row in rows}, SETTINGS):
            mine = [row for row in rows if row.draw == draw and row.visibility == visibility]
            suffix = f", {draw}{_suffix(visibility)}"
            entries += [replace(entry, group=entry.group + suffix) for entry in by_method(mine)]
    measures = score_measures(("all", "h"), ("all", "h"))
    return [table(_text("class-splits", unit="class splits"), entries, measures)]


def confusion(rows: Sequence[Row]) -> list[Table]:
    """Matched confusion matrices, one per method."""
    tables = []
    for (dataset, encoder, title), each in panels(rows).items():
        each = once(each)
        names = each[0].class_names
        counts = confusions(each)  # (runs, true, predicted)
        share = 100 * counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
        predicted = [*names, *(["no partner"] if counts[:, :, -1].any() else [])]
        columns = tuple(Column("predicted", f"class {j}", name) for j, name in enumerate(predicted))
        lines = []
        for i, name in enumerate(names):
            spreads = [mean_std(share[:, i, j].tolist()) for j in range(len(predicted))]
            cells = tuple(Cell(spread.mean, spread.std, len(share)) for spread in spreads)
            group = "old classes" if i < each[0].num_old else "new classes"
            lines.append(Line(group, (name,), cells))
        what = f"Confusion: {dataset_title(dataset)}, {encoder_title(encoder)}, {title}"
        words = caption("confusion")
        tables.append(Table(what, words, ("True class",), columns, tuple(lines)))
    return tables


def tsne(rows: Sequence[Row]) -> list[Table]:
    """Agreement of the methods whose maps are drawn."""
    mapped = {(r.dataset, r.encoder, r.method) for r in latest(rows) if r.map}
    plain = without_ncd(with_defaults(in_paper_setting(rows)))
    selected = [r for r in plain if (r.dataset, r.encoder, r.method) in mapped]
    text = _text("tsne", "What the t-SNE panels show, in numbers")
    return [table(text, by_method(selected), score_measures(("nmi", "ari", "old_new_accuracy")))]


# Measures of the open-world tables


def _score(title: str, name: str, matching: str = "block", marked: bool = False) -> Measure:
    return Measure(title, lambda row: row.score(name, matching), marked=marked)


def _stored_measure(title: str, name: str, is_share: bool = False) -> Measure:
    return Measure(title, lambda row: row.measured.get(name), is_share)


def _unknown(row: Row) -> float:
    return metrics.new_alone(np.array(row.confusion), sum(row.sizes[:-1]))


def _known_and_unknown(row: Row) -> float:
    return metrics.harmonic_mean(row.score("old") or 0.0, _unknown(row))


def _error(row: Row) -> float:
    return row.measured["counted"] - row.measured["true"]


def session_grades(row: Row) -> list[Grade]:
    """Grade after each phase of a run of many stages; the first is that of phase 1."""
    sizes, predicted = row.sizes, row.predicted_sizes
    return [
        Grade(np.array(counts), None, sizes[:i], predicted[:i])
        for i, counts in enumerate(row.sessions, start=1)
    ]


def kept_accuracy(row: Row) -> float:
    """Final accuracy on the labelled classes in percent of that before the first session."""
    first, *_, last = session_grades(row)
    return metrics.percentage(last.phase_row()[0], first.phase_row()[0])


def average_accuracy(row: Row) -> float:
    """AA: mean over phases of the accuracy on their classes after the last session."""
    return metrics.average_accuracy([session_grades(row)[-1].phase_row()])


def _mean_all(row: Row) -> float:
    return float(np.mean([each.scores("block")["all"] for each in session_grades(row)[1:]]))


def session_score(session: int, score: str) -> Callable[[Row], float | None]:
    """Return a reader of "all", "old" (classes met before) or "new" after a session, from 1."""

    def read(row: Row) -> float | None:
        grades = session_grades(row)
        return grades[session].scores("block")[score] if session < len(grades) else None

    return read


def _open_accuracy(row: Row) -> float:
    """Percentage of the nodes of new classes that are in any discovered class."""
    counts = np.array(row.confusion)[row.sizes[0] :]
    return metrics.percentage(counts[:, row.predicted_sizes[0] :].sum(), counts.sum())


def _with_unknown(row: Row) -> float:
    """Accuracy with all new classes as one class, "unknown", on both sides."""
    counts, o = np.array(row.confusion), row.sizes[0]
    right = np.trace(counts[:o, :o]) + counts[o:, row.predicted_sizes[0] :].sum()
    return metrics.percentage(right, counts.sum())


def _known_accuracy(row: Row) -> float | None:
    """Accuracy of known nodes among known classes; of phase 1 alone its plain accuracy."""
    return row.score("old_n") if row.confusion_old else row.score("old")


# What no confusion matrix gives: a row of an earlier version, or of a method that gives classes
# without probabilities, does not store it.
CALIBRATION: Mapping[str, Measure] = {
    "brier": _stored_measure("Brier", "brier"),
    "ece": _stored_measure("ECE", "ece"),
}
# Of protocols with one matching over all outputs: what it hides.
OWN_IDS: Mapping[str, Measure] = {
    "own": _score("own ids", "all", "block"),
    "side": _score("old-new", "old_new_accuracy"),
}
MEASURES: Mapping[str, Mapping[str, Measure]] = {
    "pown": {
        "all": _score("all", "all", "global", marked=True),
        "known": _score("known", "old"),
        "unknown": Measure("unknown", _unknown),
        "h": Measure("H", _known_and_unknown, marked=True),
        **OWN_IDS,
        **CALIBRATION,
    },
    "openima": {
        "all": _score("All", "all", "global", marked=True),
        "seen": _score("Seen", "old", "global"),
        "novel": _score("Novel", "new", "global"),
        **OWN_IDS,
        **CALIBRATION,
    },
    "gnnsafe": {
        "auroc": _stored_measure("AUROC", "auroc"),
        "aupr": _stored_measure("AUPR", "aupr"),
        "fpr95": _stored_measure("FPR95 (less is better)", "fpr95"),
        "accuracy": Measure("Accuracy", _known_accuracy),
        **CALIBRATION,
    },
    "cfc": {
        "closed": _score("Closed", "old"),
        "open": Measure("Open", _open_accuracy),
        "overall": Measure("Overall", _with_unknown),
        **CALIBRATION,
    },
    "hope": {
        "accuracy": Measure("Accuracy", _with_unknown),
        "known": _score("Known", "old"),
        "new": Measure("New", _open_accuracy),
        **CALIBRATION,
    },
    "closed": {"accuracy": _score("Accuracy", "old"), **CALIBRATION},
    "clusters": {
        "nmi_all": _stored_measure("NMI", "nmi_all"),
        "error": Measure("error", lambda row: abs(_error(row))),
        "all": _score("All", "all"),
        **CALIBRATION,
    },
    "mixed": {
        "all": _score("All", "all", marked=True),
        "h": _score("H", "h", marked=True),
        "side": _score("Old-new accuracy", "old_new_accuracy"),
        **CALIBRATION,
    },
    "stages": {
        "mean_all": Measure("mean All", _mean_all, marked=True),
        "aa": Measure("AA", average_accuracy, marked=True),
        "kept": Measure("kept", kept_accuracy),
        **CALIBRATION,
    },
    "count": {
        "exact": Measure("exact", lambda row: 100.0 * (_error(row) == 0), is_share=True),
        "within": Measure("within one", lambda row: 100.0 * (abs(_error(row)) <= 1), is_share=True),
        "error": Measure("error", lambda row: abs(_error(row))),
        "bias": Measure("bias", _error),
        "holds": _stored_measure("set holds", "holds", is_share=True),
        "likely": _stored_measure("set size", "likely"),
    },
    "count-worth": {
        "all": _score("All", "all"),
        "h": _score("H", "h"),
        "nmi_all": _stored_measure("NMI", "nmi_all"),
        "error": Measure("error", lambda row: abs(_error(row))),
        **CALIBRATION,
    },
    "count-alarm": {
        "new": Measure("finds new", lambda row: 100.0 * (row.measured["counted"] > 0), True),
    },
}


# Open-world tables


def _open_world_text(title: str, words: Sequence[str], **options: object) -> TableText:
    defaults: dict[str, object] = {"unit": "runs", "mark_best": False, "per_dataset": True}
    return TableText(title, words, **defaults | options)  # type: ignore[arg-type]


def _of(rows: Sequence[Row], protocol: str, setting: str = SETTINGS[0]) -> list[Row]:
    return [r for r in latest(rows) if r.protocol == protocol and r.visibility == setting]


def _settings_in(rows: Sequence[Row], protocol: str) -> list[str]:
    """Settings that rows of a protocol have; the first of SETTINGS if there are none."""
    found = {row.visibility for row in rows if row.protocol.startswith(protocol)}
    return [setting for setting in SETTINGS if setting in found] or [SETTINGS[0]]


def _suffix(setting: str) -> str:
    return "" if setting == SETTINGS[0] else f", {setting}"


def _setting_text(setting: str) -> str:
    return "" if setting == SETTINGS[0] else titles.INDUCTIVE


def _entrants(rows: Sequence[Row], group: str = "measured here") -> list[Entry]:
    """Lines by method and by how unlabelled nodes were given to it."""
    known = list(titles.ENTRANTS)
    pairs = dict.fromkeys((row.method, row.handed) for row in rows)
    ordered = sorted(pairs, key=lambda pair: known.index(pair) if pair in known else len(known))
    return [
        Entry(
            group,
            (titles.ENTRANTS.get(pair, f"{method_title(pair[0])}, {pair[1]}"),),
            [row for row in rows if (row.method, row.handed) == pair],
            reference=pair == ("prism", "mixed"),
        )
        for pair in ordered
    ]


def _published_protocol(name: str) -> Callable[[Sequence[Row]], list[Table]]:
    """Return the builder of the table of a published protocol, with the numbers of others."""

    def build(rows: Sequence[Row]) -> list[Table]:
        others = {"published": published_lines(name), "source": published_source(name)}
        text = _open_world_text(titles.TABLES[name].title, caption(name), **others)
        return [table(text, _entrants(_of(rows, name)), MEASURES[name])]

    return build


def mixed(rows: Sequence[Row]) -> list[Table]:
    """One block for each share of old nodes among the unlabelled; a table for each setting."""
    tables = []
    for setting in _settings_in(rows, "mixed"):
        entries = []
        for share in SHARES_MIXED:
            mine = _of(rows, f"mixed-{share}", setting)
            entries += _entrants(mine, f"{share}% of the unlabelled are old")
        title = titles.TABLES["mixed"].title + _suffix(setting)
        words = caption("mixed", _setting_text(setting))
        text = _open_world_text(title, words, average=True)
        tables.append(table(text, entries, MEASURES["mixed"]))
    return tables


def stages(rows: Sequence[Row]) -> list[Table]:
    """One table for each dataset: All, Old and New after every session."""
    tables = []
    found = {s: _of(rows, "stages", s) for s in _settings_in(rows, "stages")}
    datasets = in_order({row.dataset for some in found.values() for row in some}, DATASETS)
    for setting, dataset in product(found, datasets):
        mine = [row for row in found[setting] if row.dataset == dataset]
        if not mine:
            continue
        sizes = next((row.sizes for row in mine if row.is_done), ())
        measures = {
            f"{score}-{i}": Measure(f"{score.capitalize()} {i}", session_score(i, score))
            for i, score in product(range(1, len(sizes)), ("all", "old", "new"))
        }
        words = caption("stages", " + ".join(map(str, sizes)), _setting_text(setting))
        title = f"{titles.TABLES['stages'].title}{_suffix(setting)}: {dataset_title(dataset)}"
        text = _open_world_text(title, words)
        tables.append(table(text, _entrants(mine), measures | dict(MEASURES["stages"])))
    return tables


def count(rows: Sequence[Row]) -> list[Table]:
    """Errors of the counts, what they are worth, and false alarms."""
    some_new, some_old = SHARES_COUNTED[:-1], SHARES_COUNTED[1:]
    rules = [row for row in rows if row.method != "prism"]
    errors = _open_world_text(titles.TABLES["count"].title, caption("count"), average=True)
    worth = _open_world_text("What a count is worth", caption("count-worth"))
    alarm = _open_world_text("Is there anything new", caption("count-alarm"), average=True)
    return [
        table(errors, _counters(rules, some_new), MEASURES["count"]),
        table(worth, _counters(rows, some_new), MEASURES["count-worth"]),
        table(alarm, _counters(rules, some_old), MEASURES["count-alarm"]),
    ]


def _counters(rows: Sequence[Row], shares: Sequence[int]) -> list[Entry]:
    """Lines by share of old nodes and by counting rule."""
    found = []
    for share in shares:
        mine = _of(rows, f"count-{share}")
        group = f"{share}% of the unlabelled are old" if share else "all new"
        for method in in_order({row.method for row in mine}, COUNTERS | METHODS):
            its = [row for row in mine if row.method == method]
            found.append(Entry(group, (COUNTERS.get(method, method_title(method)),), its))
    return found


def clusters(rows: Sequence[Row]) -> list[Table]:
    """Clusters of all nodes, their number not given, beside those found without any label."""
    others = {"published": _published_errors(), "source": published_source("clusters")}
    text = _open_world_text(titles.TABLES["clusters"].title, caption("clusters"), **others)
    mine = _of(rows, "clusters")
    entries = [
        Entry("measured here", (COUNTERS[method],), [row for row in mine if row.method == method])
        for method in in_order({row.method for row in mine}, COUNTERS)
    ]
    return [table(text, entries, MEASURES["clusters"])]


def _published_errors() -> dict[str, Mapping[tuple[str, str], float]]:
    """Published numbers of clusters as errors."""
    found: dict[str, Mapping[tuple[str, str], float]] = {}
    for name, numbers in published_lines("clusters").items():
        found[name] = cells = {}
        for d in dict.fromkeys(dataset for dataset, _ in numbers):
            cells[d, "nmi_all"] = numbers[d, "nmi_all"]
            cells[d, "error"] = abs(numbers[d, "clusters"] - numbers[d, "classes"])
    return found


TABLES: Mapping[str, Callable[[Sequence[Row]], list[Table]]] = {
    "comparison": comparison,
    "collapse": collapse,
    "settings": settings,
    "heads": heads,
    "ablation": ablation,
    "forgetting": forgetting,
    "sensitivity": sensitivity,
    "layers": layers,
    "confusion": confusion,
    "tsne": tsne,
    "class-splits": class_splits,
    "mixed": mixed,
    "count": count,
    "stages": stages,
    "pown": _published_protocol("pown"),
    "openima": _published_protocol("openima"),
    **{name: _published_protocol(name) for name in ("gnnsafe", "cfc", "hope", "closed")},
    "clusters": clusters,
}


def tables_of(name: str, rows: Sequence[Row], run_keys: Collection[str] = ()) -> list[Table]:
    """Return the tables of a name; the comparison shows the runs of `run_keys` in any case."""
    return comparison(rows, run_keys) if name == "comparison" else TABLES[name](rows)
