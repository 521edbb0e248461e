"""The paper's claims about SWORD, tested on the rows.

A claim is a sentence of Hou et al. (CIKM 2024, sections 4.2 to 4.4 and appendix) and a function of
rows that returns a verdict and its numbers; none is typed in. Scores are means over seeds, matched
`block`. Verdicts are by the test of the tables: paired t on common seeds, Holm-corrected within
the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import stats
from sklearn.metrics import silhouette_score

from nodenova.bench.embeddings import read_map
from nodenova.bench.render import markdown
from nodenova.bench.row import Row
from nodenova.bench.row_filters import (
    ablation_rows,
    depth_of,
    depth_rows,
    in_paper_setting,
    latest,
    left_out,
    sweep_rows,
    with_comparable_settings,
)
from nodenova.bench.titles import DATASETS, ENCODERS, LOSSES, METHODS, method_title
from nodenova.evaluation.scores import mean_std, number, score_title
from nodenova.evaluation.significance import holm, paired_t

MAPS = Path(__file__).resolve().parent.parent / "results/maps"
BASELINES = ("autonovel", "restune", "ncl", "dtc")  # the paper's baselines without labels
OWN_RIVALS = ("frozen_kmeans", "frost", "simgcd")  # rivals that the paper does not have
PLANETOID = ("cora", "citeseer", "pubmed")
MIN_COMMON = 3  # seeds, for a test within a claim
LEVEL = 0.05
# "holds", "holds in part", "not shown", "does not hold" or "not measured"; and the numbers.
Verdict = tuple[str, str]
Places = dict[tuple[str, str], list[Row]]  # {(dataset, encoder): rows}


@dataclass(frozen=True)
class Claim:
    """A sentence, and its verdict on rows; `is_ours` is a comparison that the paper lacks."""

    text: str
    verdict: Callable[[Sequence[Row]], Verdict]
    is_ours: bool = False


def claims_table(rows: Sequence[Row]) -> str:
    lines = []
    for claim in CLAIMS:
        text = claim.text + (" (our addition)" if claim.is_ours else "")
        lines.append([text, *claim.verdict(rows)])
    return markdown(["claim of the paper", "here", "numbers"], lines)


def mean(rows: Sequence[Row], score: str) -> float:
    """Mean over seeds; nan without any."""
    found = mean_std([row.score(score) for row in rows]).mean
    return float("nan") if found is None else found


# Tests


@dataclass(frozen=True)
class Difference:
    """Paired difference of a score of two groups of rows on common seeds."""

    place: str
    first: float
    second: float
    p: float  # corrected by Holm among the differences of a claim

    @property
    def sign(self) -> int:
        """1 if the first is significantly higher, -1 if lower, else 0."""
        if self.p >= LEVEL:
            return 0
        return 1 if self.first > self.second else -1

    @property
    def text(self) -> str:
        p = "p < 0.001" if self.p < 0.001 else f"p {self.p:.3f}"
        return f"{self.place} {number(self.second)} → {number(self.first)} ({p})"


def compare(
    pairs: Iterable[tuple[str, Sequence[Row], Sequence[Row]]], score: str
) -> list[Difference]:
    """Test the first rows of each place against the second; places with few seeds are left out."""
    found: list[tuple[str, float, float, float]] = []
    for place, first, second in pairs:
        a, b = ({row.seed: row.score(score) for row in each} for each in (first, second))
        both = [
            (x, y) for seed in sorted(a.keys() & b.keys())
            if (x := a[seed]) is not None and (y := b[seed]) is not None
        ]  # fmt: skip
        if len(both) >= MIN_COMMON:
            one, other = (fmean(each) for each in zip(*both, strict=True))
            found.append((place, one, other, paired_t([x - y for x, y in both])))
    corrected = holm([p for *_, p in found])
    return [
        Difference(place, first, second, p)
        for (place, first, second, _), p in zip(found, corrected, strict=True)
    ]


def judge(votes: Sequence[int]) -> str:
    """Return the verdict of votes: 1 for the claim, 0 open, -1 against it."""
    if not votes:
        return "not measured"
    if all(vote > 0 for vote in votes):
        return "holds"
    if any(vote > 0 for vote in votes):
        return "holds in part"
    return "does not hold" if any(vote < 0 for vote in votes) else "not shown"


def counts_text(differences: Sequence[Difference]) -> str:
    """Return how many differences are significant: "higher in 7 of 9, lower in 0"."""
    higher, lower = (sum(d.sign == sign for d in differences) for sign in (1, -1))
    return f"significantly higher in {higher} of {len(differences)}, lower in {lower}"


# Rows


def _done(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.is_done and row.map is None]


def cells(rows: Sequence[Row], method: str, joint: str = "") -> Places:
    """{(dataset, encoder): rows} of a method in the paper's setting, its heads joined one way."""
    found: Places = {}
    for row in _done(with_comparable_settings(in_paper_setting(rows))):
        is_joined_so = row.changed.get("new_rows", "") == joint
        if row.method == method and row.encoder in ENCODERS and is_joined_so:
            found.setdefault((row.dataset, row.encoder), []).append(row)
    return found


def _place(dataset: str, encoder: str) -> str:
    return f"{DATASETS[dataset]} {ENCODERS[encoder]}"


def _against(
    rows: Sequence[Row], first: str, second: str, score: str, name: str = ""
) -> list[Difference]:
    """Two methods in every cell that both have."""
    a, b = cells(rows, first), cells(rows, second)
    pairs = ((_place(*cell) + name, a[cell], b[cell]) for cell in a if cell in b)
    return compare(pairs, score)


def _against_best(rows: Sequence[Row], names: Sequence[str], score: str) -> list[Difference]:
    """SWORD against the best of some methods in each cell, with its better way of joining heads."""
    rivals = [cells(rows, name, joint) for name in names for joint in ("", *JOINTS)]
    pairs = []
    for cell, mine in cells(rows, "sword").items():
        here = [each[cell] for each in rivals if cell in each]
        if here:
            pairs.append((_place(*cell), mine, max(here, key=lambda each: mean(each, score))))
    return compare(pairs, score)


JOINTS = ("untrained", "concatenated")


# The comparison


def balance(rows: Sequence[Row]) -> Verdict:
    found = _against_best(rows, BASELINES, "h")
    ours, theirs = (fmean(getattr(d, name) for d in found) for name in ("first", "second"))
    numbers = f"H {counts_text(found)} cells than the best of the paper's four; "
    numbers += f"mean H {number(ours)} against {number(theirs)}"
    return judge([d.sign for d in found]), numbers


def balance_of_own_rivals(rows: Sequence[Row]) -> Verdict:
    votes, parts = [], []
    for name in OWN_RIVALS:
        found = _against(rows, "sword", name, "h")
        votes += [d.sign for d in found]
        significant = ", ".join(d.text for d in found if d.sign)
        shown = f": {significant}" if significant else ""
        parts.append(f"than {METHODS[name]}: {counts_text(found)} cells{shown}")
    return judge(votes), "H, " + "; ".join(parts)


def best_on_all(rows: Sequence[Row]) -> Verdict:
    found = _against_best(rows, BASELINES, "all")
    floor = _against(rows, "sword", "never_new", "all")
    numbers = f"All {counts_text(found)} cells than the best of the paper's four; "
    numbers += f"{counts_text(floor)} than never predicting a new class"
    if still_open := ", ".join(d.text for d in floor if d.sign <= 0):
        numbers += f" (not shown: never new → SWORD, {still_open})"
    return judge([d.sign for d in (*found, *floor)]), numbers


def joint_head_blind(rows: Sequence[Row]) -> Verdict:
    new = [
        mean(each, "new") for name in BASELINES for each in cells(rows, name, "untrained").values()
    ]
    new += [mean(each, "new") for each in cells(rows, "restune").values()]
    none = sum(value == 0 for value in new)
    numbers = f"New 0.0 in {none} of {len(new)} cells by the joint head alone "
    numbers += "(by construction: its new rows are never trained)"
    return judge([1 if value == 0 else -1 for value in new]), numbers


def average_accuracy(rows: Sequence[Row]) -> Verdict:
    found = _against_best(rows, BASELINES, "aa")
    numbers = f"AA {counts_text(found)} cells than the best of the paper's four"
    return judge([d.sign for d in found]), numbers


def forgets_less(rows: Sequence[Row]) -> Verdict:
    votes, parts = [], []
    for name in BASELINES:
        found = _against(rows, "sword", name, "af")
        votes += [d.sign for d in found]
        parts.append(f"than {METHODS[name]} {counts_text(found)}")
    own = list(cells(rows, "sword").values())
    numbers = f"AF of SWORD {number(fmean(mean(each, 'af') for each in own))} on the mean; "
    return judge(votes), numbers + "; ".join(parts)


def task_heads(rows: Sequence[Row]) -> Verdict:
    """New-N where there are two new classes or more; with one it is 100 for everything."""
    several = [row for row in rows if row.num_new > 1]
    votes, parts = [], []
    mine = cells(several, "sword")
    constants = [_constant(each[0]) for each in mine.values()]
    own = fmean(mean(each, "new_n") for each in mine.values())
    for name in ("frozen_kmeans", *BASELINES):
        found = _against(several, "sword", name, "new_n")
        votes += [d.sign for d in found]
        theirs = fmean(d.second for d in found)
        parts.append(f"{METHODS[name]} {number(theirs)} ({counts_text(found)})")
    numbers = f"New-N of SWORD {number(own)} on the mean of {len(mine)} cells, "
    numbers += f"of a constant {number(fmean(constants))}, of " + ", ".join(parts)
    return judge(votes), numbers


def heads_sentence(rows: Sequence[Row]) -> str:
    """Return what the front page says about New-N, from rows."""
    several = [row for row in rows if row.num_new > 1]
    mine = cells(several, "sword")
    own = {cell: mean(each, "new_n") for cell, each in mine.items()}
    parts = []
    for name in ("frozen_kmeans", "dtc"):
        theirs = cells(several, name)
        common = [cell for cell in own if cell in theirs]
        below = sum(own[cell] < mean(theirs[cell], "new_n") for cell in common)
        score = number(fmean(mean(theirs[cell], "new_n") for cell in common))
        parts.append(f"{METHODS[name]} ({score}; SWORD is lower in {below} of {len(common)} cells)")
    return (
        "**New nodes by the head for new classes alone (New-N)**, where the paper finds its method "
        f"effective: SWORD has {number(fmean(own.values()))} on the mean of {len(own)} cells "
        f"with several new classes, compared with {' and '.join(parts)} "
        "([table](docs/results/heads.md))."
    )


def _constant(row: Row) -> float:
    """New of calling every node the largest new class."""
    sizes = np.array(row.confusion).sum(axis=1)[row.num_old :]
    return 100.0 * float(sizes.max() / sizes.sum())


def labelled_forget(rows: Sequence[Row]) -> Verdict:
    votes, parts = [], []
    for name in ("gem", "er_gnn", "twp"):
        old = [mean(each, "old") for each in cells(rows, name).values()]
        votes += [1 if value < 10 else -1 for value in old]
        if old:
            below = sum(value < 10 for value in old)
            parts.append(
                f"{METHODS[name]} Old {number(fmean(old))}, below 10 in {below} of {len(old)} cells"
            )
    return judge(votes), "; ".join(parts) + " (one softmax over all classes)"


def cpca_blind(rows: Sequence[Row]) -> Verdict:
    new = [mean(each, "new") for each in cells(rows, "cpca").values()]
    if not new:
        return "not measured", ""
    numbers = f"New {number(fmean(new))} on the mean of {len(new)} cells, at least "
    numbers += f"{number(min(new))}; here it is given new labels, in the paper's table not"
    return judge([1 if value < 1 else -1 for value in new]), numbers


def joint_training(rows: Sequence[Row]) -> Verdict:
    several = [row for row in rows if row.num_new > 1]
    votes, parts = [], []
    for name in ("autonovel", "ncl", "dtc"):
        found = _against(several, f"{name}_ncd", name, "new_n")
        votes += [d.sign for d in found]
        if found:
            pair = (number(fmean(getattr(d, n) for d in found)) for n in ("second", "first"))
            parts.append(f"{METHODS[name]} {' → '.join(pair)} ({counts_text(found)})")
    return judge(votes), "New-N, isolated → joint: " + "; ".join(parts)


def gat_is_best(rows: Sequence[Row]) -> Verdict:
    sword = cells(rows, "sword")
    votes, parts = [], []
    for score in ("all", "h"):
        pairs = [
            (f"{DATASETS[name]} than {ENCODERS[other]}", sword[name, "gat"], sword[name, other])
            for name in PLANETOID for other in ("gcn", "sage")
            if (name, "gat") in sword and (name, other) in sword
        ]  # fmt: skip
        found = compare(pairs, score)
        votes += [d.sign for d in found]
        parts.append(f"{score_title(score)} {counts_text(found)}")
    return judge(votes), "; ".join(parts) + _by_encoder(sword)


def _by_encoder(sword: Places) -> str:
    everywhere = [name for name in PLANETOID if all((name, e) in sword for e in ENCODERS)]
    if not everywhere:
        return ""
    found = [
        f"{title} " + " · ".join(
            number(fmean(mean(sword[name, e], score) for name in everywhere))
            for score in ("all", "h")
        )
        for e, title in ENCODERS.items()
    ]  # fmt: skip
    return f". All · H: {', '.join(found)} (mean over {', '.join(DATASETS[d] for d in everywhere)})"


def gcn_as_sage(rows: Sequence[Row]) -> Verdict:
    sword = cells(rows, "sword")
    votes, parts = [], []
    for score in ("all", "h"):
        pairs = [
            (DATASETS[name], sword[name, "sage"], sword[name, "gcn"])
            for name in PLANETOID
            if (name, "gcn") in sword and (name, "sage") in sword
        ]
        found = compare(pairs, score)
        votes += [_alike(d) for d in found]
        parts.append(f"{score_title(score)}, GCN → GraphSAGE: {', '.join(d.text for d in found)}")
    return judge(votes), "; ".join(parts)


def _alike(difference: Difference, within: float = 3.0) -> int:
    """Vote for equality: 1 without a difference above `within`, -1 where one is significant."""
    if difference.sign:
        return -1
    return 1 if abs(difference.first - difference.second) <= within else 0


# The ablation


def _ablation(rows: Sequence[Row]) -> Places:
    """{(dataset, losses left out): rows} on GCN."""
    found: Places = {}
    for kind, row in ablation_rows(rows):
        if not kind and row.encoder == "gcn" and row.is_done and row.map is None:
            found.setdefault((row.dataset, left_out(row, beside=True) or ""), []).append(row)
    return found


def _datasets(table: Places) -> list[str]:
    return list(dict.fromkeys(name for name, _ in table))


def without(
    line: str,
    score: str,
    also: Callable[[float, float], bool] = lambda less, full: True,
    *,
    shown: Sequence[str] = (),
    over: str = "none",
    higher: bool = False,
    only: Sequence[str] = PLANETOID,
) -> Callable[[Sequence[Row]], Verdict]:
    """Return the judge of a claim that leaving losses out lowers (or raises) a score.

    Where `also` is not true of the means (less, full), the claim holds in part at most.
    """

    def verdict(rows: Sequence[Row]) -> Verdict:
        table = _ablation(rows)
        named = [d for d in _datasets(table) if d in only and (d, over) in table]
        pairs = [(DATASETS[d], table[d, line], table[d, over]) for d in named if (d, line) in table]
        found = compare(pairs, score)
        votes = [d.sign if higher else -d.sign for d in found]
        votes += [1 if also(d.first, d.second) else -1 for d in found]
        numbers = f"{score_title(score)}: {', '.join(d.text for d in found)}"
        for other in shown:
            numbers += f"; {score_title(other)}: "
            numbers += ", ".join(d.text for d in compare(pairs, other))
        is_against = found and all(d.sign == 0 for d in found)
        return "not shown" if is_against else judge(votes), numbers

    return verdict


def every_loss(rows: Sequence[Row]) -> Verdict:
    table = _ablation(rows)
    pairs = [
        (f"{DATASETS[d]} without {_losses(line)}", table[d, "none"], table[d, line])
        for d, line in table if line != "none" and (d, "none") in table
    ]  # fmt: skip
    found = compare(pairs, "h")
    still_open = ", ".join(
        f"{d.place} ({number(d.second)}, with all five {number(d.first)})"
        for d in found if d.sign <= 0
    )  # fmt: skip
    numbers = f"H with all five {counts_text(found)}; not shown: {still_open or 'none'}"
    return judge([d.sign for d in found]), numbers


def _losses(line: str) -> str:
    return " and ".join(LOSSES[loss] for loss in line.split("+"))


# The parameters


def _sweep(parameter: str, rows: Sequence[Row]) -> dict[str, dict[float, list[Row]]]:
    """{dataset: {value: rows}} of a parameter on GCN."""
    found: dict[str, dict[float, list[Row]]] = {}
    for (kind, value), each in sweep_rows(rows, parameter).items():
        for row in _done(each):
            if value and not kind and row.encoder == "gcn":  # a weight of zero is an ablation
                found.setdefault(row.dataset, {}).setdefault(value, []).append(row)
    return {name: dict(sorted(values.items())) for name, values in found.items()}


def moved(
    parameter: str, rows: Sequence[Row], score: str, ends: tuple[float, float] | None = None
) -> list[Difference]:
    """Score at the second of two values against the first, by dataset; by default the extremes."""
    pairs = []
    for dataset, values in _sweep(parameter, rows).items():
        low, high = ends or (min(values), max(values))
        if {low, high} <= values.keys():
            place = f"{DATASETS[dataset]} at {low:g} → {high:g}:"
            pairs.append((place, values[high], values[low]))
    return compare(pairs, score)


def up_and_down(parameter: str, up: str, down: str) -> Callable[[Sequence[Row]], Verdict]:
    """Return the judge of a claim that a parameter raises one score and lowers another."""

    def verdict(rows: Sequence[Row]) -> Verdict:
        found = {score: moved(parameter, rows, score) for score in (up, down, "all")}
        votes = [d.sign for d in found[up]] + [-d.sign for d in found[down]]
        parts = (f"{score_title(s)}: {', '.join(d.text for d in e)}" for s, e in found.items())
        return judge(votes), "; ".join(parts)

    return verdict


def alpha2(rows: Sequence[Row]) -> Verdict:
    found = {score: moved("alpha2", rows, score) for score in ("all", "old", "new")}
    votes = [_alike(d) for score in ("all", "old") for d in found[score]]
    votes += [d.sign for d in found["new"]]
    parts = (f"{score_title(s)}: {', '.join(d.text for d in e)}" for s, e in found.items())
    return judge(votes), "; ".join(parts)


def eta_small(rows: Sequence[Row]) -> Verdict:
    found = moved("eta", rows, "new", (0.05, 0.2))
    return judge([d.sign for d in found]), "New: " + ", ".join(d.text for d in found)


def eta_large(rows: Sequence[Row]) -> Verdict:
    """Spread over seeds, by the F-test of two variances."""
    votes, parts = [], []
    for dataset, values in _sweep("eta", rows).items():
        low, high = 0.2, max(values)
        if low not in values:
            continue
        common = {row.seed for row in values[low]} & {row.seed for row in values[high]}
        spreads = [
            mean_std([row.score("new") for row in values[at] if row.seed in common])
            for at in (low, high)
        ]
        small, large = (each.std or 0.0 for each in spreads)
        free = len(common) - 1
        p = float(stats.f.sf((large / small) ** 2, free, free)) if small and free else 1.0
        votes.append(1 if p < LEVEL else 0)
        parts.append(
            f"{DATASETS[dataset]} {number(small)} at {low:g} → {number(large)} at {high:g} "
            f"(p {p:.3f}, {len(common)} seeds)"
        )
    return judge(votes), "standard deviation of New: " + ", ".join(parts)


def small_lambda(rows: Sequence[Row]) -> Verdict:
    found = moved("lam", rows, "old", (0.1, 0.4))
    votes = [d.sign for d in found] + [1 if d.second < 10 else -1 for d in found]
    return judge(votes), "Old: " + ", ".join(d.text for d in found)


# Depth, embeddings


def _depths(rows: Sequence[Row]) -> dict[tuple[str, str], dict[int, list[Row]]]:
    by: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for kind, row in depth_rows(rows):
        if not kind and row.method == "sword" and row.is_done and row.map is None:
            by.setdefault((row.dataset, row.encoder), {}).setdefault(depth_of(row), []).append(row)
    return {cell: dict(sorted(depths.items())) for cell, depths in sorted(by.items())}


def two_layers(rows: Sequence[Row]) -> Verdict:
    pairs, parts = [], []
    for cell, depths in _depths(rows).items():
        if 2 in depths:
            pairs += [
                (f"{_place(*cell)} {depth}", depths[2], each)
                for depth, each in depths.items()
                if depth != 2
            ]
            means = ", ".join(f"{number(mean(e, 'all'))} with {d}" for d, e in depths.items())
            parts.append(f"{_place(*cell)}: All {means}")
    found = compare(pairs, "all")
    untested = len(pairs) - len(found)
    few = f"; {untested} with fewer than {MIN_COMMON} seeds not tested" if untested else ""
    return judge([d.sign for d in found]), f"{counts_text(found)} depths{few}. " + "; ".join(parts)


def deep_is_lost(rows: Sequence[Row]) -> Verdict:
    """Old is gone, and New is that of one class for all nodes."""
    votes, parts = [], []
    for (dataset, encoder), depths in _depths(rows).items():
        if encoder in ("gat", "sage") and max(depths) > 4:
            deepest = depths[max(depths)]
            old, new = mean(deepest, "old"), mean(deepest, "new")
            votes += [1 if old < 10 else -1, 1 if new <= _constant(deepest[0]) + 1 else -1]
            parts.append(
                f"{_place(dataset, encoder)}, {max(depths)} layers, {len(deepest)} seed(s): "
                f"Old {number(old)}, New {number(new)}, of a constant "
                f"{number(_constant(deepest[0]))}"
            )
    return judge(votes), "; ".join(parts)


def separation(rows: Sequence[Row]) -> Verdict:
    """Silhouette of the true classes in the maps' embeddings; one seed each, so no test."""
    found = {}
    for row in latest(rows):
        if row.map and (path := MAPS / Path(row.map).name).exists():
            arrays = read_map(path)
            found[row.method] = float(silhouette_score(arrays["z"], arrays["y"], metric="cosine"))
    if "sword" not in found:
        return "not measured", ""
    ordered = sorted(found, key=lambda name: -found[name])
    values = {name: f"{found[name]:.2f}".replace("-", "−") for name in ordered}
    shown = ", ".join(f"{method_title(name)} {value}" for name, value in values.items())
    return (
        "not shown",
        f"silhouette of true classes in z, Cora GCN, one seed each, no test: {shown}",
    )


CLAIMS = (
    Claim(
        "SWORD balances old and new classes better than the other methods without labels", balance
    ),
    Claim("The same against methods that the paper does not have", balance_of_own_rivals, True),
    Claim("and is better on all classes", best_on_all),
    Claim("Those methods cannot predict a new class with a joint head", joint_head_blind),
    Claim("With the task-specific head SWORD classifies new classes well (New-N)", task_heads),
    Claim("SWORD has a high average accuracy over both phases (AA)", average_accuracy),
    Claim("and forgets less than the other methods without labels (AF)", forgets_less),
    Claim("Task-incremental methods (GEM, ER-GNN, TWP) lose the old classes", labelled_forget),
    Claim("CPCA cannot predict a new class", cpca_blind),
    Claim("NCD trained on old and new nodes together is better than trained apart", joint_training),
    Claim("GAT is the best encoder", gat_is_best),
    Claim("GCN and GraphSAGE are alike", gcn_as_sage),
    Claim("Every loss is needed: all five together are best", every_loss),
    Claim(
        "Without L_Pseudo new classes are hardly learned",
        without("pseudo", "new", lambda less, full: less < full / 2, shown=("h", "all")),
    ),
    Claim(
        "Without L_Self no new class is predicted",
        without("alpha1", "new", lambda less, _: less < 1),
    ),
    Claim("Without L_Perturb new classes are learned less well", without("alpha2", "new")),
    Claim(
        "Without L_Replay old classes are forgotten",
        without("replay", "old", lambda less, _: less < 10),
    ),
    Claim(
        "Without L_Distill old classes are forgotten",
        without("omega", "old", lambda less, _: less < 10),
    ),
    Claim(
        "Without both even more so (than without L_Replay)",
        without("replay+omega", "old", over="replay"),
    ),
    Claim(
        "Without both New is higher on CiteSeer",
        without("replay+omega", "new", higher=True, only=("citeseer",)),
    ),
    Claim(
        "Without L_Self, L_Replay and L_Distill Old falls too",
        without("alpha1+replay+omega", "old", over="alpha1"),
    ),
    Claim("A larger α1 helps new classes and costs old ones", up_and_down("alpha1", "new", "old")),
    Claim("α2 matters little, with a slight gain of new classes", alpha2),
    Claim("η from 0.05 to 0.2 helps new classes", eta_small),
    Claim("A larger η makes new classes fluctuate more", eta_large),
    Claim("A larger λ keeps old classes and costs new ones", up_and_down("lam", "old", "new")),
    Claim("With a small λ forgetting is catastrophic", small_lambda),
    Claim("Two layers are best for every encoder", two_layers),
    Claim("Deep GAT and GraphSAGE lose old and new classes", deep_is_lost),
    Claim("The classes are better separated in SWORD's embeddings (t-SNE)", separation),
)
