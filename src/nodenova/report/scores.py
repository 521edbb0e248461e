"""Scores of graded runs, for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodenova.experiments.results import mean_std, score_of
from nodenova.experiments.run import Row
from nodenova.report.html import section, table, text
from nodenova.report.tables import cell, number

SCORES = {
    "old": ("Old", "how many test nodes of old classes got their class"),
    "new": ("New", "how many test nodes of new classes got the class that stands for theirs"),
    "all": ("All", "how many of all test nodes are right; it can look good while no new class is found at all"),
    "h": ("H", "harmonic mean of Old and New: high only when both are, and 0 when either is"),
    "gate": ("Gate", "how many test nodes land on the right side, old or new, whichever class it is there"),
    "nmi": ("NMI", "normalised mutual information of true and predicted classes; needs no matching"),
    "ari": ("ARI", "adjusted Rand index: pairs of nodes rightly kept together or apart; 0 is chance, needs no matching"),
    "old_n": ("Old-N", "the same as Old in an easier exam: old nodes only, told apart among old classes"),
    "new_n": ("New-N", "the same as New in an easier exam: new nodes only, told apart by the head for new classes"),
    "all_n": ("All-N", "the same as All when every node comes with whether its class is old or new: both easier exams"),
}
MATCHED = {
    "block": "old classes keep their names and discovered classes are paired with true new ones as well as possible; "
    "an old node called new, or a new node called old, is wrong. The headline.",
    "identity": "the discovered class with number i has to be the true class with number i. Without labels a method "
    "cannot know those numbers, so New is a matter of luck here; only for comparison with papers that count so.",
    "global": "all predicted classes, old ones too, are paired with true classes as well as possible.",
}
OVERALL = {
    "aa": ("AA", "average accuracy: the mean of Old and New (block matching) after the last phase"),
    "af": ("AF", "average forgetting: Old after phase 2 minus Old after phase 1; negative means forgotten"),
    "new_used": ("New classes used", "how many of the discovered classes are said of at least one test node"),
    "new_largest": ("Largest of them", "its share of the test nodes that are called new; near 100: the others collapsed"),
    "fit": ("Seconds, phase 1", "time to learn the old classes"),
    "discover": ("Seconds, phase 2", "time to discover the new ones"),
}


def scores(rows: Sequence[Row]) -> str:
    """The section with the scores of graded seeds, and what each of them means."""
    head = ["Matching", *(name for name, _ in SCORES.values())]
    body = [
        [
            f"{matching} (headline)" if matching == "block" else matching,
            *(_mean(row["scores"][matching].get(score) for row in rows) for score in SCORES),
        ]
        for matching in MATCHED
    ]
    overall = [_mean(_overall(row, key) for row in rows) for key in OVERALL]
    each = [
        [str(row["seed"]), *(number(row["scores"]["block"].get(score)) for score in SCORES)]
        + [number(_overall(row, key)) for key in OVERALL]
        for row in rows
    ]
    n = f"mean ± standard deviation over {len(rows)} seeds" if len(rows) > 1 else "one seed, so there is no spread to show"
    names = [name for name, _ in OVERALL.values()]
    words = [*SCORES.values(), *OVERALL.values(), *((f"Matching: {name}", why) for name, why in MATCHED.items())]
    meaning = "".join(f"<dt>{text(name)}</dt><dd>{text(why)}</dd>" for name, why in words)
    return section(
        "Scores",
        f"<p>In percent of the test nodes, {n}. – means that there was nothing to measure.</p>\n"
        + table("Scores by matching", head, body, "scores")
        + table("Over both phases", ["Seeds", *names], [[str(len(rows)), *overall]], "overall")
        + f'<details open><summary>What the scores mean</summary><dl class="meaning">{meaning}</dl></details>\n'
        "<details><summary>Each seed (block matching)</summary>\n"
        + table("Each seed", ["Seed", *head[1:], *names], each, "seeds")
        + "</details>",
    )


def _overall(row: Row, key: str) -> float | None:
    return row["seconds"][key] if key in ("fit", "discover") else score_of(row, key)


def _mean(values: Iterable[float | None]) -> str:
    return cell(mean_std(list(values)))
