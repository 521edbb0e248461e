"""The verdict on a discovered class, the evidence for it, and the estimated number of classes.

The verdict is the probability that at least 80% of the class is one true class, by a logistic model
of six features. A second one calibrates the probabilities of its nodes by the same features. Both
were learned on discoveries whose answer is known (tools/learn_trust.py); see docs/trust.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from nodenova.display import percent, plural
from nodenova.model.decisions import Create, Edit, Merge, Split
from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.review.user_labels import labels_against

MIN_SHARE = 0.002  # of all nodes; a smaller class is probably nothing
MIN_NODES = 5
MAX_INSIDE = 2.0  # times the labels of a known class
CLIP = 3.0  # standard deviations from the mean at which a feature is clipped
MIN_GOOD, MIN_LOOK = 0.75, 0.3  # least probabilities of the levels
MIN_AGAINST = 0.2  # log-odds from which a feature is given as a reason
LARGE = 1.5  # times the size of known classes from which a class is large
FLOOR = 1e-6  # least probability before its log-odds

Weights = dict[str, tuple[float, float, float]]
# Written by tools/learn_trust.py: mean, standard deviation and weight of each feature of
# `class_evidence`. Log-odds that a class is one class, and that a node in it is of that class.
ONE_CLASS: Weights = {
    "confidence": (0.7993, 0.1687, 0.7971),
    "log_size": (-0.1887, 0.7008, -0.3615),
    "held_out_accuracy": (0.8549, 0.1382, 0.3628),
    "held_out_inside": (0.08894, 0.1536, -1.376),
    "halves_alike": (0.6323, 0.2479, 0.7528),
    "log_found": (1.734, 0.9441, -0.739),
}
ONE_CLASS_BIAS = 0.48
NODES: Weights = {
    "log_size": (-0.1358, 0.6457, -0.2634),
    "held_out_accuracy": (0.8552, 0.1393, -0.1695),
    "held_out_inside": (0.08617, 0.1375, -0.4898),
    "halves_alike": (0.6312, 0.2487, 0.2257),
    "log_found": (1.708, 0.9364, -0.362),
}
NODES_BIAS = 0.4694
# Of the log-odds that the model gives a node.
SLOPE = 0.4776

# From good to bad; the last is that of a class that a person decided on, and is no judgement.
LEVELS = {"good": "Holds up", "look": "Look closer", "doubt": "Doubtful", "yours": "Yours"}


@dataclass(frozen=True)
class Trust:
    """The verdict on a discovered class: a level (a key of `LEVELS`) and its reasons."""

    level: str
    reasons: tuple[str, ...]

    @property
    def word(self) -> str:
        """The level in words."""
        return LEVELS[self.level]


def class_evidence(infos: Sequence[ClassInfo]) -> list[dict[str, float]]:
    """Features of each class by which a discovered one is judged; NaN where there is no evidence.

    confidence:         mean probability of the class over its nodes, before calibration.
    log_size:           log of its size over the mean size of the known classes.
    held_out_accuracy:  share of the user's labels that are predicted without themselves.
    held_out_inside:    labels that land in it so, over those of a known class of its size.
    halves_alike:       correlation of the means of its halves.
    log_found:          log of the number of classes that were discovered with it.
    """
    known = sum(info.predicted_size for info in infos if not info.is_new)
    num_known = sum(not info.is_new for info in infos)
    labels = sum(info.held_out or 0 for info in infos)
    right = sum(info.held_out_right or 0 for info in infos)
    stages = [info.stage for info in infos]
    evidence = []
    for info in infos:
        size = max(info.predicted_size, 1)
        expected = labels * size / max(known, 1)  # labels of a known class of this size
        confidence = info.confidence_by_model
        confidence = info.confidence if confidence is None else confidence
        alike = info.halves_alike
        evidence.append(
            {
                "confidence": np.nan if confidence is None else confidence,
                "log_size": float(np.log(size * num_known / max(known, 1))),
                "held_out_accuracy": right / labels if labels else np.nan,
                "held_out_inside": min((info.held_out or 0) / expected, MAX_INSIDE)
                if labels and expected
                else np.nan,
                "halves_alike": np.nan if alike is None else alike,
                "log_found": float(np.log(stages.count(info.stage))),
            }
        )
    return evidence


def contributions(evidence: Mapping[str, float], weights: Weights) -> dict[str, float]:
    """Log-odds that each feature adds; 0 where there is no evidence."""
    scaled = {
        name: (weight, np.clip((evidence[name] - mean) / spread, -CLIP, CLIP))
        for name, (mean, spread, weight) in weights.items()
    }
    return {name: float(np.nan_to_num(weight * x)) for name, (weight, x) in scaled.items()}


def one_class_probability(evidence: Mapping[str, float]) -> float:
    """Probability that at least 80% of a discovered class is one true class."""
    return float(expit(ONE_CLASS_BIAS + sum(contributions(evidence, ONE_CLASS).values())))


def log_odds_shifts(infos: Sequence[ClassInfo]) -> dict[int, float]:
    """{id: shift of the log-odds of its nodes} for each discovered class; see `calibrate`."""
    shifts = {}
    for info, evidence in zip(infos, class_evidence(infos), strict=True):
        if info.is_new:
            shifts[info.id] = NODES_BIAS + sum(contributions(evidence, NODES).values())
    return shifts


def calibrate_first(p: np.ndarray, shift: np.ndarray, num_classes: int) -> np.ndarray:
    """(N,) calibrated probabilities of the likeliest classes, which stay the likeliest."""
    sure = expit(shift + SLOPE * logit(np.clip(p.astype(np.float64), FLOOR, 1 - FLOOR)))
    return np.maximum(sure, (1 + 1e-6) / num_classes)


def calibrate(p: np.ndarray, shifts: Sequence[float | None]) -> np.ndarray:
    """(N, C) probabilities in which those of predicted discovered classes are calibrated.

    A node whose class has a shift gets sigmoid(shift + SLOPE logit p), but at least what keeps its
    class the likeliest; its other classes share the rest. Predictions, and the order of the nodes
    of a class, stay.

    Args:
        p: (N, C) probabilities of the model.
        shifts: Shift of each class, None for a class that is not calibrated.

    Examples:
        >>> calibrate(np.array([[0.05, 0.95], [0.8, 0.2]]), [None, -0.4]).round(2).tolist()
        [[0.27, 0.73], [0.8, 0.2]]
    """
    groups = p.argmax(axis=1)
    shift = np.array([np.nan if s is None else s for s in shifts])[groups]
    rows = np.flatnonzero(~np.isnan(shift))
    if not len(rows) or p.shape[1] < 2:
        return p
    result, at = p.astype(np.float64), (np.arange(len(rows)), groups[rows])
    some = result[rows]
    first = calibrate_first(some[at], shift[rows], p.shape[1])
    some[at] = 0
    total = some.sum(axis=1, keepdims=True)
    even = np.full_like(some, 1 / (p.shape[1] - 1))
    even[at] = 0
    some = np.where(total > 0, some / np.where(total > 0, total, 1), even)
    # No other class may be as likely as the first: the rest is shared more evenly where one would.
    rest, most = 1 - first, some.max(axis=1)
    mean = 1 / (p.shape[1] - 1)
    limit = first * (1 - 1e-6) / np.maximum(rest, 1e-12)
    mix = np.clip((most - limit) / np.maximum(most - mean, 1e-12), 0, 1) * (most > limit)
    some = ((1 - mix)[:, None] * some + mix[:, None] * even) * rest[:, None]
    some[at] = first
    result[rows] = some
    return result.astype(p.dtype)


def found_in(stages: Sequence[Stage]) -> dict[int, tuple[int, int]]:
    """(groupings of resampled nodes that have the class, all groupings), by the id of the class.

    A stage that found one class is left out: every grouping has it.
    """
    groupings: dict[int, tuple[int, int]] = {}
    for stage in stages:
        if len(stage.found_in) > 1:
            groupings |= {c: (k, of) for c, (k, of) in stage.found_in.items() if of}
    return groupings


def trust(
    info: ClassInfo,
    classes: Sequence[ClassInfo],
    groupings: tuple[int, int] | None = None,
    last_edit: Edit | None = None,
) -> Trust:
    """Judge a discovered class among all `classes`; `groupings` as in `found_in`.

    A class that a person decided on, as in `last_edits`, is not judged.

    Examples:
        >>> old = ClassInfo(0, "oak", "oak", "known", 0, size=200, held_out=90, held_out_right=88)
        >>> new = ClassInfo(1, "elm", "elm", "discovered", 1, size=600, share=0.7, confidence=0.8)
        >>> verdict = trust(new, [old, new], (11, 12))
        >>> verdict.word, verdict.reasons[1]
        ('Holds up', 'It is 3 times as large as your classes.')
    """
    if last_edit is not None:
        return Trust("yours", _facts(info, classes, last_edit))
    evidence = class_evidence(classes)[[c.id for c in classes].index(info.id)]
    probability = one_class_probability(evidence)
    level = "good" if probability >= MIN_GOOD else "look" if probability >= MIN_LOOK else "doubt"
    reasons = [f"{about(probability)} likely to be one class."]
    if (info.size or 0) < MIN_NODES or (info.share or 1.0) < MIN_SHARE:
        level = "doubt"
        reasons.append(f"Only {plural(info.size or 0, 'node')}: probably not a class.")
    against = _strongest_against(info, evidence)
    reasons += [text for text in (against, labels_against(info, classes)) if text]
    if groupings is not None:
        reasons.append(f"Found in {groupings[0]} of {groupings[1]} groupings.")
    return Trust(level, tuple(reasons))


def display_confidence(info: ClassInfo, verdict: Trust | None) -> str:
    """Mean probability of a class in words; in steps of 10% where a discovered class is uncertain.

    Examples:
        >>> elm = ClassInfo(1, "elm", "elm", "discovered", 1, confidence=0.574)
        >>> display_confidence(elm, Trust("good", ())), display_confidence(elm, Trust("look", ()))
        ('57%', 'about 60%')
    """
    if info.confidence is None or verdict is None or verdict.level not in ("look", "doubt"):
        return "" if info.confidence is None else percent(info.confidence)
    return about(info.confidence).lower()


def about(probability: float) -> str:
    """A probability in words, in steps of 10%.

    Examples:
        >>> about(0.58), about(0.97), about(0.02)
        ('About 60%', 'More than 90%', 'Less than 10%')
    """
    if not 0.1 <= probability <= 0.9:
        return "More than 90%" if probability > 0.5 else "Less than 10%"
    return f"About {percent(round(probability, 1))}"


def _strongest_against(info: ClassInfo, evidence: Mapping[str, float]) -> str:
    """The strongest evidence against a class, in words; "" if none does."""
    each = contributions(evidence, ONE_CLASS)
    times = float(np.exp(evidence["log_size"]))
    if times < LARGE:  # a small class is rarely less one class for that
        each.pop("log_size", None)
    name = min(each, key=lambda name: each[name])
    if each[name] > -MIN_AGAINST:
        return ""
    inside = plural(info.held_out or 0, "of your labels lands", "of your labels land")
    return {
        "confidence": f"The model is unsure of its nodes ({percent(evidence['confidence'])}).",
        "log_size": f"It is {times:.0f} times as large as your classes."
        if times >= 2
        else "It is larger than your classes.",
        "held_out_accuracy": "Your own labels are hard to predict "
        f"({percent(evidence['held_out_accuracy'])} correct).",
        "held_out_inside": f"{inside} in it when judged without themselves.",
        "halves_alike": "Its halves differ as two classes do.",
        "log_found": f"It is one of {np.exp(evidence['log_found']):.0f} discovered classes: the "
        "more there are, the more are mixtures.",
    }[name]


def _labels_inside(info: ClassInfo, classes: Sequence[ClassInfo]) -> str:
    """How many labelled nodes a class contains; "" if that is unknown or there are none at all."""
    if info.labelled is None or not any(c.labelled for c in classes):
        return ""
    inside = f"{info.labelled:,}" if info.labelled else "none"
    return f"Contains {inside} of your labelled nodes."


def _facts(info: ClassInfo, classes: Sequence[ClassInfo], last_edit: Edit) -> tuple[str, ...]:
    """What a person decided about a class, and how many labelled nodes it contains."""
    match last_edit:
        case Merge(class_ids=ids):
            what = f"You merged classes {' and '.join(map(str, ids))}."
        case Split(class_id=whole):
            what = f"You split it off class {whole}."
        case Create(size=int(size)):
            what = f"You made it of {plural(size, 'node')}."
        case _:
            what = "You named it."
    inside = _labels_inside(info, classes)
    return (what, inside) if inside else (what,)


def tally(verdicts: Sequence[Trust]) -> str:
    """Count the discovered classes by verdict, in one sentence; "" if there are none.

    Examples:
        >>> tally([Trust("good", ()), Trust("good", ()), Trust("doubt", ())])
        '2 of 3 discovered classes hold up; 1 is doubtful.'
        >>> tally([Trust("yours", ()), Trust("good", ()), Trust("doubt", ())])
        'You decided on 1 of 3 discovered classes; 1 holds up; 1 is doubtful.'
    """
    if not verdicts:
        return ""
    levels = [verdict.level for verdict in verdicts]
    good, look, bad, yours = (levels.count(level) for level in LEVELS)
    if yours == len(verdicts):
        many = "the discovered class" if yours == 1 else f"all {yours} discovered classes"
        return f"You decided on {many}."
    if good == len(verdicts) == 1:
        return "The discovered class holds up."
    if good == len(verdicts):
        return f"All {good} discovered classes hold up."
    whole = plural(len(verdicts), "discovered class", "discovered classes")
    if yours:
        text = f"You decided on {yours} of {whole}"
        text += f"; {plural(good, 'holds', 'hold')} up" if good else ""
    else:
        text = f"{good} of {whole} "
        text += "holds up" if good == 1 or len(verdicts) == 1 else "hold up"
    text += f"; {plural(look, 'needs', 'need')} a closer look" if look else ""
    text += f"; {plural(bad, 'is', 'are')} doubtful" if bad else ""
    return text + "."


def number_sentence(
    stages: Sequence[Stage], classes: Sequence[ClassInfo], advice: bool = False
) -> str:
    """How many new classes the last stage estimated, or which share the requested ones have.

    "" where all searched nodes were given as new, and the number as well: nothing is uncertain.
    """
    last = stages[-1]
    if last.count is not None:
        return last.count.sentence() if advice else last.count.finding
    if not last.mixed:
        return ""
    new = [c for c in classes if c.stage == len(stages) - 1]
    unlabelled, inside = (
        sum(c.predicted_size - (c.labelled or 0) for c in some) for some in (classes, new)
    )
    share = percent(inside / max(unlabelled, 1))
    return (
        f"You asked for {plural(len(new), 'new class', 'new classes')}; "
        f"{'it has' if len(new) == 1 else 'they have'} {share} of the "
        f"{plural(unlabelled, 'unlabelled node')}."
    )
