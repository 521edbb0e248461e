"""Tables of REPRODUCIBILITY.md over seeds: beside the authors' code, fresh seeds, every method.

`H of means` is the harmonic mean of mean Old and mean New: all that is known of the authors' code.
Elsewhere H is a mean over seeds, which is never above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

import numpy as np

from nodenova.bench.paper import OLD_SHARE, RERUN
from nodenova.bench.render import markdown
from nodenova.bench.row import Row
from nodenova.bench.row_filters import in_setting, with_defaults, with_usual_schedule
from nodenova.bench.titles import DATASETS, ENCODERS, METHODS, in_order
from nodenova.evaluation.scores import Spread, mean_std, number, spread_text
from nodenova.evaluation.significance import bootstrap_interval
from nodenova.methods.sword import Sword

PLANETOID = ("cora", "citeseer", "pubmed")
MORE_SEEDS = ("sword", "frozen_kmeans", "never_new")
FRESH = range(100, 110)  # seeds with lines of their own, in no other table


def done(rows: Sequence[Row]) -> list[Row]:
    """Return finished runs, without those that were made for a map."""
    return [row for row in rows if row.is_done and row.map is None]


def scores_of(rows: Sequence[Row], score: str) -> list[float]:
    """Return the values of a score, without runs that do not have it."""
    return [value for row in rows if (value := row.score(score)) is not None]


# Beside the authors' code


def of_means(old: float, new: float) -> float:
    """Return the harmonic mean of two means.

    >>> of_means(60.0, 30.0)
    40.0
    """
    return 2.0 * old * new / (old + new) if old + new else 0.0


def h_of_means(old: Spread, new: Spread, everything: Spread, share: float) -> Spread:
    """Return H of means, with its deviation over seeds to first order.

    The covariance of Old and New follows from the deviation of All, whose nodes are old ones by
    `share`. So the same formula serves where single runs are not known.
    """
    a, b = old.mean or 0.0, new.mean or 0.0
    s, t, u = old.std or 0.0, new.std or 0.0, everything.std or 0.0
    together = (u**2 - (share * s) ** 2 - ((1 - share) * t) ** 2) / (2 * share * (1 - share))
    together = float(np.clip(together, -s * t, s * t))  # the deviations are rounded
    by_old, by_new = 2 * (b / (a + b)) ** 2, 2 * (a / (a + b)) ** 2  # derivatives of H
    variance = (by_old * s) ** 2 + (by_new * t) ** 2 + 2 * by_old * by_new * together
    return Spread(of_means(a, b), sqrt(max(variance, 0.0)), old.n)


def standard_error(ours: Spread, theirs: Spread) -> float:
    """Return the standard error of the difference of two means."""
    parts = ((each.std or 0.0) ** 2 / max(each.n, 1) for each in (ours, theirs))
    return sqrt(sum(parts))


def word(ours: Spread, theirs: Spread) -> str:
    """Return "above", "level" or "below", by one standard error of the difference."""
    apart = (ours.mean or 0.0) - (theirs.mean or 0.0)
    if abs(apart) <= standard_error(ours, theirs):
        return "level"
    return "above" if apart > 0 else "below"


def authors_line(rows: Sequence[Row], dataset: str, encoder: str) -> list[str]:
    """Return the cells of a line: seeds, All and H of means of both, with the difference."""
    share, theirs = OLD_SHARE[dataset], RERUN[dataset, encoder]
    old, new, everything = (mean_std(scores_of(rows, score)) for score in ("old", "new", "all"))
    known = (theirs[score] for score in ("old", "new", "all"))
    its_old, its_new, its_all = (Spread(each.mean, each.std, each.seeds) for each in known)
    h, its_h = h_of_means(old, new, everything, share), h_of_means(its_old, its_new, its_all, share)
    line = [DATASETS[dataset], ENCODERS[encoder], f"{len(rows)} · {its_all.n}"]
    for mine, its in ((everything, its_all), (h, its_h)):
        apart = f"{(mine.mean or 0.0) - (its.mean or 0.0):+.1f}".replace("-", "−")
        verdict = f"{apart} ± {number(standard_error(mine, its))}: {word(mine, its)}"
        line += [spread_text(mine), spread_text(its), verdict]
    return line


def beside_the_authors(rows: Sequence[Row]) -> str:
    """SWORD with its defaults and the authors' code without its label leak."""
    lines = []
    for dataset, encoder in RERUN:
        mine = sword_rows(with_defaults(with_usual_schedule(in_setting(rows))), dataset, encoder)
        if mine:
            full = sum(row.score("new_used") == row.num_new for row in mine)
            lines.append([*authors_line(mine, dataset, encoder), f"{full} of {len(mine)}"])
    return markdown([*AUTHOR_HEADS, "seeds that use every new class"], lines)


def on_the_released_schedule(rows: Sequence[Row]) -> str:
    """The same with the epochs and GAT of the authors' configuration files, by reading."""
    lines = []
    released = [row for row in in_setting(rows, OF_GAT) if _is_released(row)]
    for dataset, encoder in RERUN:
        mine = sword_rows(released, dataset, encoder)
        for reading, settings in READINGS.items():
            if its := [row for row in mine if row.changed == settings]:
                line = authors_line(its, dataset, encoder)
                lines.append([*line[:2], reading, *line[2:]])
    return markdown([*AUTHOR_HEADS[:2], "reading", *AUTHOR_HEADS[2:]], lines)


READINGS = {"default": {}, "released": dict(Sword.READINGS["released"])}
OF_GAT = ("attention", "dropout", "input_dropout", "early_stopping")
AUTHOR_HEADS = (
    "dataset", "encoder", "seeds, ours · theirs", "All", "theirs", "difference",
    "H of means", "theirs", "difference",
)  # fmt: skip


def _is_released(row: Row) -> bool:
    return row.fit_changed.get("schedule") == "released"


def sword_rows(rows: Sequence[Row], dataset: str, encoder: str) -> list[Row]:
    place = (dataset, encoder, "sword")
    return [row for row in done(rows) if (row.dataset, row.encoder, row.method) == place]


# Seeds


def interval_text(rows: Sequence[Row], score: str) -> str:
    """Return mean ± std and the 95% bootstrap interval: "61.0 ± 1.9 [59.9, 62.1]"."""
    values = scores_of(rows, score)
    shown = spread_text(mean_std(values))
    if len(values) < 2:
        return shown
    low, high = bootstrap_interval([[value] for value in values], lambda means: means[:, 0])
    return f"{shown} [{number(low)}, {number(high)}]"


def seeds_text(seeds: Sequence[int]) -> str:
    """Return seeds as runs of numbers.

    >>> seeds_text([0, 1, 2, 7])
    '0–2, 7'
    """
    blocks: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if blocks and seed == blocks[-1][-1] + 1:
            blocks[-1].append(seed)
        else:
            blocks.append([seed])
    return ", ".join(f"{b[0]}–{b[-1]}" if len(b) > 1 else str(b[0]) for b in blocks)


def by_seeds(rows: Sequence[Row], fresh: Sequence[Row]) -> str:
    """SWORD and its floors on all seeds, and on fresh ones in a line below."""
    plain = [done(with_defaults(with_usual_schedule(in_setting(each)))) for each in (rows, fresh)]
    lines = []
    for encoder in ENCODERS:
        for dataset in PLANETOID:
            for method in MORE_SEEDS:
                for each in plain:
                    place = (dataset, encoder, method)
                    its = [r for r in each if (r.dataset, r.encoder, r.method) == place]
                    if its:
                        cells = (interval_text(its, score) for score in ("old", "new", "all", "h"))
                        titles = DATASETS[dataset], ENCODERS[encoder], METHODS[method]
                        lines.append([*titles, seeds_text([r.seed for r in its]), *cells])
    return markdown(["dataset", "encoder", "method", "seeds", "Old", "New", "All", "H"], lines)


def over_never_new(rows: Sequence[Row], fresh: Sequence[Row]) -> str:
    """All of SWORD minus All of never new on common seeds, with its interval."""
    lines = []
    for name, each in (("of the tables", rows), ("fresh", fresh)):
        plain = done(with_defaults(with_usual_schedule(in_setting(each))))
        for dataset, encoder in ((d, e) for e in ENCODERS for d in PLANETOID):
            mine, floor = (
                {
                    row.seed: row.score("all") or 0.0
                    for row in plain
                    if (row.dataset, row.encoder, row.method) == (dataset, encoder, method)
                }
                for method in ("sword", "never_new")
            )
            apart = [mine[seed] - floor[seed] for seed in sorted(mine.keys() & floor.keys())]
            if len(apart) > 1:
                low, high = bootstrap_interval([[d] for d in apart], lambda means: means[:, 0])
                shown = f"{fmean(apart):+.1f} ± {stdev(apart):.1f} [{low:+.1f}, {high:+.1f}]"
                wins = f"{sum(d > 0 for d in apart)} of {len(apart)}"
                titles = DATASETS[dataset], ENCODERS[encoder], seeds_text(sorted(mine))
                lines.append([name, *titles, shown.replace("-", "−"), wins])
    return markdown(
        ["rows", "dataset", "encoder", "seeds", "All above never new", "seeds with more"], lines
    )


# Every method


def short_comparison(rows: Sequence[Row], encoder: str = "gcn") -> str:
    """Every method with its defaults on one encoder, All · H; methods given labels last, with †."""
    plain = done(with_defaults(with_usual_schedule(in_setting(rows))))
    plain = [row for row in plain if row.encoder in (encoder, "prism")]
    lines = []
    for given in (False, True):
        for name in in_order({row.method for row in plain}, METHODS):
            mine = [row for row in plain if row.method == name]
            if any({"new_labels", "old_labels"} & set(row.sees) for row in mine) != given:
                continue
            line = [METHODS[name] + (" †" if given else "")]
            for dataset in PLANETOID:
                here = [row for row in mine if row.dataset == dataset]
                pair = (spread_text(mean_std(scores_of(here, score))) for score in ("all", "h"))
                line += [" · ".join(pair) if here else "–"]
            counts = [len([r for r in mine if r.dataset == d]) for d in PLANETOID]
            known = sorted({count for count in counts if count})
            lines.append([*line, "–".join(map(str, dict.fromkeys([known[0], known[-1]])))])
    return markdown(["method", *(DATASETS[name] for name in PLANETOID), "seeds"], lines)
