"""The paper's claims about SWORD, tested on the rows.

A claim is a sentence of Hou et al. (CIKM 2024, sections 4.2 to 4.4 and appendix) and a function of
rows that returns a verdict and its numbers; none is typed in. Scores are means over seeds, matched
`block`; All · H unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from nodenova.bench.paper import RERUN
from nodenova.bench.render import markdown
from nodenova.bench.row import Row
from nodenova.bench.row_filters import (
    ablation_rows,
    depth_of,
    depth_rows,
    in_paper_setting,
    in_setting,
    left_out,
    sweep_rows,
    with_comparable_settings,
    with_defaults,
    with_usual_schedule,
)
from nodenova.bench.titles import DATASETS, ENCODERS, LOSSES, METHODS
from nodenova.evaluation.scores import mean_std, number, score_title

BASELINES = ("autonovel", "restune", "ncl", "dtc")  # the paper's baselines without labels
PLANETOID = ("cora", "citeseer", "pubmed")
# "holds", "holds in part", "does not hold" or "not measured"; and the numbers.
Verdict = tuple[str, str]


@dataclass(frozen=True)
class Claim:
    text: str
    verdict: Callable[[Sequence[Row]], Verdict]


def claims_table(rows: Sequence[Row]) -> str:
    lines = [[claim.text, *claim.verdict(rows)] for claim in CLAIMS]
    return markdown(["claim of the paper", "here", "numbers"], lines)


def mean(rows: Sequence[Row], score: str) -> float:
    """Mean over seeds; nan without any."""
    found = mean_std([row.score(score) for row in rows]).mean
    return float("nan") if found is None else found


def _done(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.is_done and row.map is None]


def cells(rows: Sequence[Row], method: str, joint: str = "") -> dict[tuple[str, str], list[Row]]:
    """{(dataset, encoder): rows} of a method in the paper's setting, its heads joined one way."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in _done(with_comparable_settings(in_paper_setting(rows))):
        is_joined_so = row.changed.get("new_rows", "") == joint
        if row.method == method and row.encoder in ENCODERS and is_joined_so:
            found.setdefault((row.dataset, row.encoder), []).append(row)
    return found


def _share(right: int, of: int) -> str:
    if not of:
        return "not measured"
    if right == of:
        return "holds"
    return "does not hold" if right < of / 2 else "holds in part"


def _best_baseline(rows: Sequence[Row], cell: tuple[str, str], score: str) -> tuple[float, str]:
    """Best of the paper's label-free baselines, each with its better way of joining heads."""
    scores = [
        (mean(here[cell], score), METHODS[name])
        for name in BASELINES
        for joint in ("", "untrained", "concatenated")
        if cell in (here := cells(rows, name, joint))
    ]
    return max(scores, default=(float("nan"), ""))


def balance(rows: Sequence[Row]) -> Verdict:
    sword = cells(rows, "sword")
    pairs = {
        cell: (mean(each, "h"), _best_baseline(rows, cell, "h")[0]) for cell, each in sword.items()
    }
    better = sum(ours > theirs for ours, theirs in pairs.values())
    ours, theirs = (
        (fmean(pair[i] for pair in pairs.values()) for i in (0, 1)) if pairs else (0.0, 0.0)
    )
    numbers = f"H higher than the best of them in {better} of {len(pairs)} cells; "
    numbers += f"mean H {number(ours)} against {number(theirs)}"
    return _share(better, len(pairs)), numbers


def best_on_all(rows: Sequence[Row]) -> Verdict:
    sword = cells(rows, "sword")
    never = cells(rows, "never_new")
    over = sum(
        mean(each, "all") > _best_baseline(rows, cell, "all")[0] for cell, each in sword.items()
    )
    floor = sum(
        mean(each, "all") > mean(never[cell], "all")
        for cell, each in sword.items()
        if cell in never
    )
    numbers = f"All higher than the best of them in {over} of {len(sword)} cells, "
    numbers += f"than never predicting a new class in {floor}"
    return _share(over, len(sword)), numbers


def joint_head_blind(rows: Sequence[Row]) -> Verdict:
    new = [
        mean(each, "new") for name in BASELINES for each in cells(rows, name, "untrained").values()
    ]
    new += [mean(each, "new") for each in cells(rows, "restune").values()]
    none = sum(value == 0 for value in new)
    numbers = f"New 0.0 in {none} of {len(new)} cells by the joint head alone "
    numbers += "(its new rows are never trained)"
    return _share(none, len(new)), numbers


def _ablation(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """{(dataset, losses left out): rows} on GCN."""
    found: dict[tuple[str, str], list[Row]] = {}
    for kind, row in ablation_rows(rows):
        if not kind and row.encoder == "gcn" and row.is_done and row.map is None:
            found.setdefault((row.dataset, left_out(row, beside=True) or ""), []).append(row)
    return found


def _without(
    line: str, score: str, holds: Callable[[float, float], bool]
) -> Callable[[Sequence[Row]], Verdict]:
    """A score with all losses and without some of them, on every dataset of the ablation."""

    def compare(rows: Sequence[Row]) -> Verdict:
        table, right, parts = _ablation(rows), [], []
        for dataset in dict.fromkeys(name for name, _ in table):
            if (dataset, line) in table and (dataset, "none") in table:
                full, less = (mean(table[dataset, which], score) for which in ("none", line))
                right.append(holds(full, less))
                parts.append(f"{DATASETS[dataset]} {number(full)} → {number(less)}")
        title = score_title(score)
        return _share(sum(right), len(right)), f"{title}: {', '.join(parts)}"

    return compare


def every_loss(rows: Sequence[Row]) -> Verdict:
    table, right, parts = _ablation(rows), [], []
    for dataset in dict.fromkeys(name for name, _ in table):
        h = {line: mean(each, "h") for (name, line), each in table.items() if name == dataset}
        best = max(h, key=lambda line: h[line])
        right.append(best == "none")
        names = " and ".join(LOSSES[loss] for loss in best.split("+")) if best != "none" else ""
        beaten = f", more without {names} ({number(h[best])})" if names else ""
        parts.append(f"{DATASETS[dataset]}: H {number(h.get('none'))} with all five{beaten}")
    return _share(sum(right), len(right)), "; ".join(parts)


def encoders(rows: Sequence[Row]) -> Verdict:
    sword = cells(rows, "sword")
    found = {}
    everywhere = [
        name for name in PLANETOID if all((name, encoder) in sword for encoder in ENCODERS)
    ]
    for encoder, title in ENCODERS.items():
        mine = [sword[name, encoder] for name in everywhere]
        if mine:
            found[title] = [fmean(mean(each, score) for each in mine) for score in ("all", "h")]
    if len(found) < len(ENCODERS):
        return "not measured", ""
    first = [max(found, key=lambda title: found[title][i]) for i in (0, 1)]
    right = sum(name == "GAT" for name in first)
    over = ", ".join(DATASETS[name] for name in everywhere)
    numbers = ", ".join(f"{title} {number(a)} · {number(h)}" for title, (a, h) in found.items())
    return _share(right, 2), f"{numbers} (mean over {over})"


def _trend(parameter: str, score: str, rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """{dataset: [(value, mean score)]} of one sweep_rows parameter on GCN."""
    found: dict[str, list[tuple[float, float]]] = {}
    for (kind, value), each in sweep_rows(rows, parameter).items():
        if not value:
            continue  # a weight of zero is an ablation
        for dataset in dict.fromkeys(
            row.dataset for row in each if not kind and row.encoder == "gcn"
        ):
            mine = _done([row for row in each if row.dataset == dataset and row.encoder == "gcn"])
            if mine:
                found.setdefault(dataset, []).append((value, mean(mine, score)))
    return {name: sorted(points) for name, points in found.items()}


def _ends(
    parameter: str, rows: Sequence[Row], scores: Sequence[str]
) -> tuple[list[dict[str, float]], str]:
    """Change of each score from the smallest value to the largest, by dataset, and as text."""
    moved: dict[str, dict[str, float]] = {}
    parts = []
    for score in scores:
        for dataset, points in _trend(parameter, score, rows).items():
            moved.setdefault(dataset, {})[score] = points[-1][1] - points[0][1]
    for dataset, change in moved.items():
        low, high = (_trend(parameter, scores[0], rows)[dataset][i][0] for i in (0, -1))
        shown = ", ".join(f"{score.capitalize()} {value:+.1f}" for score, value in change.items())
        parts.append(f"{DATASETS[dataset]} from {low:g} to {high:g}: {shown}")
    return list(moved.values()), "; ".join(parts)


def alpha1(rows: Sequence[Row]) -> Verdict:
    moved, numbers = _ends("alpha1", rows, ("old", "new", "all"))
    right = [move["new"] > 0 for move in moved] + [move["old"] < 0 for move in moved]
    return _share(sum(right), len(right)), numbers


def alpha2(rows: Sequence[Row]) -> Verdict:
    moved, numbers = _ends("alpha2", rows, ("old", "new", "all"))
    right = [abs(move["all"]) < 2 for move in moved] + [abs(move["old"]) < 4 for move in moved]
    return _share(sum(right), len(right)), numbers


def lam(rows: Sequence[Row]) -> Verdict:
    moved, numbers = _ends("lam", rows, ("old", "new", "all"))
    right = [move["old"] > 0 for move in moved] + [move["new"] < 0 for move in moved]
    return _share(sum(right), len(right)), numbers


def eta(rows: Sequence[Row]) -> Verdict:
    found, right = [], []
    for dataset, points in _trend("eta", "new", rows).items():
        at = dict(points)
        if {0.05, 0.2} <= at.keys():
            right.append(at[0.2] > at[0.05])
            found.append(
                f"{DATASETS[dataset]} New {number(at[0.05])} at 0.05, {number(at[0.2])} at 0.2, "
                f"{number(points[-1][1])} at {points[-1][0]:g}"
            )
    return _share(sum(right), len(right)), "; ".join(found)


def two_layers(rows: Sequence[Row]) -> Verdict:
    by: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for kind, row in depth_rows(rows):
        if not kind and row.method == "sword" and row.is_done and row.map is None:
            by.setdefault((row.dataset, row.encoder), {}).setdefault(depth_of(row), []).append(row)
    right, parts = [], []
    for (dataset, encoder), depths in sorted(by.items()):
        all_ = {depth: mean(each, "all") for depth, each in depths.items()}
        best = max(all_, key=lambda depth: all_[depth])
        deepest = max(all_)
        right.append(best == 2)
        parts.append(
            f"{DATASETS[dataset]} {ENCODERS[encoder]}: All {number(all_.get(2))} with 2, "
            f"best {best} ({number(all_[best])}), {number(all_[deepest])} with {deepest}"
        )
    return _share(sum(right), len(right)), "; ".join(parts)


def forgets_least(rows: Sequence[Row]) -> Verdict:
    sword = cells(rows, "sword")
    pairs = {
        cell: (mean(each, "aa"), _best_baseline(rows, cell, "aa")[0])
        for cell, each in sword.items()
    }
    better = sum(ours > theirs for ours, theirs in pairs.values())
    af = fmean(mean(each, "af") for each in sword.values()) if sword else float("nan")
    numbers = f"AA higher than the best of them in {better} of {len(pairs)} cells; "
    numbers += f"mean AF of SWORD {number(af)}"
    return _share(better, len(pairs)), numbers


CLAIMS = (
    Claim(
        "SWORD balances old and new classes better than the other methods without labels", balance
    ),
    Claim("and is better on all classes", best_on_all),
    Claim("Those methods cannot predict a new class with a joint head", joint_head_blind),
    Claim("SWORD has a high average accuracy over both phases (AA)", forgets_least),
    Claim("GAT is the best encoder, GCN and GraphSAGE are alike", encoders),
    Claim("Every loss is needed: all five together are best", every_loss),
    Claim(
        "Without L_Pseudo new classes are hardly learned",
        _without("pseudo", "h", lambda full, less: less < full - 5),
    ),
    Claim(
        "Without L_Self no new class is predicted",
        _without("alpha1", "new", lambda full, less: less < 1),
    ),
    Claim(
        "Without L_Perturb new classes are learned less well",
        _without("alpha2", "new", lambda full, less: less < full),
    ),
    Claim(
        "Without L_Replay old classes are forgotten",
        _without("replay", "old", lambda full, less: less < 10),
    ),
    Claim(
        "Without L_Distill old classes are forgotten",
        _without("omega", "old", lambda full, less: less < 10),
    ),
    Claim(
        "Without both even more so", _without("replay+omega", "old", lambda full, less: less < 10)
    ),
    Claim("A larger α1 helps new classes and costs old ones", alpha1),
    Claim("α2 matters little", alpha2),
    Claim("η from 0.05 to 0.2 helps new classes", eta),
    Claim("A larger λ keeps old classes and costs new ones", lam),
    Claim("Two layers are best for every encoder", two_layers),
)


def beside_the_authors(rows: Sequence[Row]) -> str:
    """SWORD's cells and those of the authors' code without its label leak.

    "reached": at least theirs minus one standard error of ours.
    """
    sword = cells(rows, "sword")
    lines = []
    for (dataset, encoder), theirs in RERUN.items():
        mine = sword.get((dataset, encoder), [])
        if not mine:
            continue
        line = [DATASETS[dataset], ENCODERS[encoder], str(len(mine))]
        for score in ("all", "h"):
            ours = mean_std([row.score(score) for row in mine])
            line.append(f"{number(ours.mean)} ± {number(ours.std)}")
            if score in theirs:
                error = (ours.std or 0.0) / sqrt(ours.n or 1)
                reached = (ours.mean or 0.0) >= theirs[score].mean - error
                about = "about " if theirs[score].about else ""
                verdict = "reached" if reached else "missed"
                line.append(f"{about}{number(theirs[score].mean)}: {verdict}")
            else:
                line.append("unknown")
        full = sum(row.score("new_used") == row.num_new for row in mine)
        lines.append([*line, f"{full} of {len(mine)}"])
    heads = ["dataset", "encoder", "seeds", "All", "theirs", "H", "theirs"]
    return markdown([*heads, "seeds that use every new class"], lines)


def short_comparison(rows: Sequence[Row], encoder: str = "gcn") -> str:
    """Every method with its defaults on one encoder, All · H; methods given labels last, with †."""
    plain = _done(with_defaults(with_usual_schedule(in_setting(rows))))
    plain = [row for row in plain if row.encoder in (encoder, "prism")]
    lines = []
    for given in (False, True):
        for name, title in METHODS.items():
            mine = [row for row in plain if row.method == name]
            is_given = any({"new_labels", "old_labels"} & set(row.sees) for row in mine)
            if not mine or is_given != given:
                continue
            shown = [title + (" †" if given else "")]
            for dataset in PLANETOID:
                here = [row for row in mine if row.dataset == dataset]
                pair = " · ".join(number(mean(here, score)) for score in ("all", "h"))
                shown.append(pair if here else "–")
            seeds = min(len([r for r in mine if r.dataset == d]) for d in {r.dataset for r in mine})
            lines.append([*shown, str(seeds)])
    return markdown(["method", *(DATASETS[name] for name in PLANETOID), "seeds"], lines)
