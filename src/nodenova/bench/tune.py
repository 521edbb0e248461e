"""Choose settings without a label of a new class: hide known classes, discover them, grade.

Half of the known classes are hidden, in several draws. A setting is graded on validation nodes of
known classes; labels of new classes and of test nodes are removed first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from math import comb, isfinite, sqrt
from typing import Any

import numpy as np

from nodenova.bench.registry import ALL_METHODS, is_given_labels, name_of
from nodenova.data.labels import UNKNOWN, Exam, LabelledGraph, OldTask, UserGraph
from nodenova.data.mixed_splits import split_mixed
from nodenova.data.splits import labelled_new_task, split, with_split
from nodenova.data.tasks import drop_empty_classes
from nodenova.discovery import discover
from nodenova.errors import SettingError, SplitError, one_of
from nodenova.evaluation.grade import grade
from nodenova.evaluation.graded import versions
from nodenova.evaluation.scores import Spread, mean_std
from nodenova.fitting import check_fit_settings, fit, settings_from_text
from nodenova.graph import NewTask
from nodenova.methods.registry import get_method
from nodenova.nn.encode_cache import shared_passes
from nodenova.progress import Progress, no_progress
from nodenova.settings import check_arguments
from nodenova.supervised.entrance import discover_supervised

DEFAULTS = "defaults"
FOR_FIT = "fit."  # settings of phase 1 begin with this
SCORES = ("h", "all", "old", "new")
MAX_CANDIDATES = 1000
MAX_WAYS = 5000  # of hiding half of the classes, up to which all are listed
MIN_KNOWN = 2  # classes: one stays, one is hidden


@dataclass(frozen=True)
class Candidate:
    """Settings to try.

    Attributes:
        text: Settings as text, name=value,…; "defaults" for none.
        method: Method with its settings.
        fit_settings: Settings of phase 1.
    """

    text: str
    method: Any
    fit_settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class TunedLine:
    """Scores of a candidate: for each score one value per draw, the mean over its seeds."""

    candidate: Candidate
    values: Mapping[str, tuple[float, ...]]

    def spread(self, score: str) -> Spread:
        """Return mean and standard error of a score over the draws."""
        return with_standard_error(self.values[score])


@dataclass(frozen=True)
class Tuning:
    """Result of a search.

    Attributes:
        method: Name of the method.
        encoder: Name of the encoder.
        data: Fingerprint of the graph with the labels that were used.
        hidden: Classes that each draw hides, by name.
        seeds: Seeds of each draw.
        score: Score that decides.
        lines: Scores of the candidates; the first one has the defaults.
    """

    method: str
    encoder: str
    data: str
    hidden: tuple[tuple[str, ...], ...]
    seeds: tuple[int, ...]
    score: str
    lines: tuple[TunedLine, ...]

    @property
    def chosen(self) -> TunedLine:
        """Candidate with the highest mean; of equal ones the first."""
        means = [line.spread(self.score).mean for line in self.lines]
        known = [-np.inf if mean is None else mean for mean in means]
        return self.lines[int(np.argmax(known))]

    def gain(self, line: TunedLine) -> Spread:
        """Return mean and standard error of the paired difference to the defaults."""
        own, base = line.values[self.score], self.lines[0].values[self.score]
        return with_standard_error([a - b for a, b in zip(own, base, strict=True)])

    @property
    def sentence(self) -> str:
        """How sure the choice is."""
        gain = self.gain(self.chosen)
        if self.chosen is self.lines[0]:
            return "No setting is better than the defaults."
        if gain.std is None or gain.mean is None:
            return "There is one draw alone, so that nothing is known about the spread."
        if gain.mean <= 2 * gain.std:
            return "The gain is within two standard errors: the defaults may be as good."
        return "The gain over the defaults is more than two standard errors."

    def to_json(self) -> dict[str, Any]:
        """Return the search as a document."""
        return {
            "format": "nodenova tuning",
            "version": 1,
            "method": self.method,
            "encoder": self.encoder,
            "data": self.data,
            "hidden": [list(names) for names in self.hidden],
            "seeds": list(self.seeds),
            "score": self.score,
            "chosen": self.chosen.candidate.text,
            "lines": [
                {
                    "settings": line.candidate.text,
                    "values": {name: list(each) for name, each in line.values.items()},
                }
                for line in self.lines
            ],
            "versions": dict(versions()),
        }


def with_standard_error(values: Sequence[float]) -> Spread:
    """Return the mean, and as `std` its standard error.

    Examples:
        >>> with_standard_error([1.0, 3.0])
        Spread(mean=2.0, std=1.0, n=2)
    """
    spread = mean_std(values)
    return replace(spread, std=None if spread.std is None else spread.std / sqrt(spread.n))


def grid_of(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Return all combinations of name=a,b,c pairs, as settings by name.

    Examples:
        >>> grid_of([("k", "1,2"), ("fit.hidden", "16")])
        [{'k': '1', 'fit.hidden': '16'}, {'k': '2', 'fit.hidden': '16'}]
    """
    names = [name for name, _ in pairs]
    values = [[part.strip() for part in text.split(",") if part.strip()] for _, text in pairs]
    for name, each in zip(names, values, strict=True):
        if not each or names.count(name) > 1:
            what = "is there twice" if each else "has no value"
            raise SettingError(f"--grid {name} {what}: it takes name=a,b,c once for each setting")
    count = int(np.prod([len(each) for each in values], dtype=float))
    if count > MAX_CANDIDATES:
        raise SettingError(f"--grid has {count:,} combinations, and at most {MAX_CANDIDATES:,} fit")
    return [dict(zip(names, combination, strict=True)) for combination in product(*values)]


def candidates_of(
    method: str, encoder: str, settings: Sequence[Mapping[str, str]]
) -> list[Candidate]:
    """Return candidates with settings as text, each once, the defaults first.

    Args:
        method: Name of a method, or path/to/mine.py:Mine.
        encoder: Name of the encoder.
        settings: Settings by name; those of phase 1 begin with "fit.".

    Raises:
        SettingError: If a name or a value is wrong.

    Examples:
        >>> [each.text for each in candidates_of("sword", "gcn", [{"k": "3"}, {"k": "5"}])]
        ['defaults', 'k=5']
    """
    found = [Candidate(DEFAULTS, get_method(method, {}, ALL_METHODS))]
    for each in settings:
        own = {name: text for name, text in each.items() if not name.startswith(FOR_FIT)}
        texts = {n.removeprefix(FOR_FIT): t for n, t in each.items() if n.startswith(FOR_FIT)}
        for_fit = settings_from_text(texts)
        check_fit_settings(encoder, for_fit)
        text = ",".join(f"{name}={value}" for name, value in each.items()) or DEFAULTS
        chosen = Candidate(text, get_method(method, own, ALL_METHODS), tuple(for_fit.items()))
        if all((c.method, c.fit_settings) != (chosen.method, chosen.fit_settings) for c in found):
            found.append(chosen)
    return found


def known_part(labelled: LabelledGraph, num_old: int | None = None) -> LabelledGraph:
    """Return the graph with labels that a choice of settings may use, and a split of them.

    Of a graph with a published split these are the training and validation nodes of the first
    `num_old` classes; half of the validation nodes are the exam, the others stop phase 1. A graph
    without a split gets a seeded one of the old classes alone. Of a user's graph all labels of
    nodes that are not new are used.

    Args:
        labelled: Graph with all its labels.
        num_old: Number of known classes, the first ones; those of a user's graph follow from it.

    Raises:
        SplitError: If fewer than two classes are known.

    Examples:
        >>> import nodenova as nova
        >>> part = known_part(nova.load_dataset("citeseer"), num_old=4)
        >>> int((part.y >= 0).sum()), part.class_names
        (417, ('0', '1', '2', '3'))
    """
    if isinstance(labelled, UserGraph) and num_old is None:
        loaded = labelled.canonical()
        new_ids = np.flatnonzero(loaded.is_new | (loaded.y == UNKNOWN))
        y = np.where(loaded.is_new, UNKNOWN, loaded.y)
        own = drop_empty_classes(replace(loaded, y=y, new_ids=new_ids))
        known = LabelledGraph(own.graph, own.y, own.class_names, name=own.name)
        every_label = True
    else:
        count = labelled.num_classes if num_old is None else num_old
        # Before a split is drawn: the draw must not depend on a label of another class.
        y = np.where(labelled.y < count, labelled.y, UNKNOWN)
        known = replace(_plain(labelled), y=y, class_names=labelled.class_names[:count])
        every_label = False
    if known.num_classes < MIN_KNOWN:
        what = f"{known.num_classes} known class" + "es" * (known.num_classes != 1)
        raise SplitError(f"{known.name}: {what}; to hide one, at least {MIN_KNOWN} are needed")
    return _with_exam(with_split(known), every_label)


def _plain(labelled: LabelledGraph) -> LabelledGraph:
    masks = {name: getattr(labelled, name) for name in ("train", "val", "test")}
    return LabelledGraph(
        labelled.graph, labelled.y, labelled.class_names, **masks, name=labelled.name
    )


def _with_exam(known: LabelledGraph, every_label: bool) -> LabelledGraph:
    """Use half of the validation nodes as the exam; the labels of the others that test go."""
    assert known.train is not None
    assert known.test is not None
    labelled = known.y != UNKNOWN
    val = np.zeros_like(known.train) if known.val is None else known.val
    held = labelled & ((~known.train) if every_label else val)
    used = labelled & (known.train | held)
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(held))
    val, test = np.zeros_like(held), np.zeros_like(held)
    val[shuffled[::2]], test[shuffled[1::2]] = True, True
    y = np.where(used, known.y, UNKNOWN)
    return replace(known, y=y, train=known.train & labelled, val=val, test=test)


def hidden_halves(num_classes: int, draws: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Return sets of classes that stay known, half of them, rounded down; the others are hidden.

    Where there are few ways, they are evenly spaced in the list of all ways; else drawn.

    Examples:
        >>> hidden_halves(4, draws=3)
        [(0, 1), (0, 3), (1, 3)]
        >>> len(set(hidden_halves(40, draws=5)))
        5
    """
    half = num_classes // 2
    count = comb(num_classes, half)
    if count <= MAX_WAYS:
        ways = list(combinations(range(num_classes), half))
        step = -(-count // draws)
        return ways[seed % step :: step][:draws]
    rng = np.random.default_rng([seed, 14142])
    drawn = (tuple(sorted(rng.permutation(num_classes)[:half].tolist())) for _ in range(99 * draws))
    return list(islice(dict.fromkeys(drawn), draws))


def tune(
    known: LabelledGraph,
    candidates: Sequence[Candidate],
    encoder: str,
    *,
    draws: int = 6,
    seeds: Sequence[int] = (0, 1),
    mixed: bool = False,
    score: str = "h",
    progress: Progress = no_progress,
) -> Tuning:
    """Try settings on known classes that are hidden, and choose.

    Args:
        known: Graph with the labels that may be used, from `known_part`.
        candidates: Settings to try, from `candidates_of`.
        encoder: Name of the encoder.
        draws: Number of ways of hiding half of the classes.
        seeds: Seeds of both phases, for each draw.
        mixed: Whether the nodes to discover in are a mixture of known and hidden classes.
        score: Score that decides: "h", "all", "old" or "new", matched by block.
        progress: Called with the number of discoveries done.

    Returns:
        Scores of every candidate.

    Raises:
        SettingError: If there is no such score, `draws` or `seeds` is empty, or a method that is
            given labels would get mixed nodes.
        SplitError: If a class has too few labels to be hidden.

    Examples:
        >>> import nodenova as nova
        >>> known = known_part(nova.synthetic(nodes=300, classes=6), num_old=4)
        >>> candidates = candidates_of("prism", "prism", [{"n_resamples": "0"}])
        >>> found = tune(known, candidates, "prism", draws=2, seeds=[0])
        >>> [line.candidate.text for line in found.lines], len(found.lines[0].values["h"])
        (['defaults', 'n_resamples=0'], 2)
    """
    check_arguments(tune, locals())
    if mixed and any(is_given_labels(candidate.method) for candidate in candidates):
        raise SettingError(
            "a method that is given labels does not take mixed nodes; give --all-new"
        )
    if score not in SCORES:
        raise one_of("score", score, SCORES)
    if draws < 1 or not seeds:
        raise SettingError("tuning needs at least one draw and one seed")
    ways = hidden_halves(known.num_classes, draws, min(seeds))
    values: list[dict[str, list[float]]] = [{name: [] for name in SCORES} for _ in candidates]
    total = len(ways) * len(seeds) * len(candidates)
    done = 0
    progress("trying settings", 0, total)
    for old in ways:
        of_draw: list[dict[str, list[float]]] = [{n: [] for n in SCORES} for _ in candidates]
        for seed in seeds:
            for place, scores in _scores(known, candidates, encoder, old, seed, mixed):
                for name in SCORES:
                    of_draw[place][name].append(scores[name])
                done += 1
                progress("trying settings", done, total)
        for mine, drawn in zip(values, of_draw, strict=True):
            for name in SCORES:
                finite = [value for value in drawn[name] if isfinite(value)]
                mine[name].append(float(np.mean(finite)) if finite else float("nan"))
    lines = (
        TunedLine(each, {name: tuple(mine[name]) for name in SCORES})
        for each, mine in zip(candidates, values, strict=True)
    )
    hidden = (tuple(n for c, n in enumerate(known.class_names) if c not in old) for old in ways)
    return Tuning(
        name_of(candidates[0].method), encoder, known.fingerprint(), tuple(hidden), tuple(seeds),
        score, tuple(lines),
    )  # fmt: skip


def _scores(
    known: LabelledGraph,
    candidates: Sequence[Candidate],
    encoder: str,
    old: Sequence[int],
    seed: int,
    mixed: bool,
) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Yield the scores of each candidate; those with equal phase 1 share it."""
    first, task, exam = _tasks(known, old, seed, mixed)
    by_fit: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for place, candidate in enumerate(candidates):
        by_fit.setdefault(candidate.fit_settings, []).append(place)
    for fit_settings, places in by_fit.items():
        with shared_passes():
            model = fit(first, encoder, seed=seed, **dict(fit_settings))
            for place in places:
                method = candidates[place].method
                if is_given_labels(method):  # those of hidden classes, which are known
                    given = labelled_new_task(known, old)
                    found = discover_supervised(model, given, method, seed=seed)
                else:
                    found = discover(model, task, method, seed=seed)
                yield place, grade(found, exam).scores("block")


def _tasks(
    known: LabelledGraph, old: Sequence[int], seed: int, mixed: bool
) -> tuple[OldTask, NewTask, Exam]:
    if not mixed:
        return split(known, old)
    world = split_mixed(known, old, seed=seed)
    return world.old, world.tasks[0], world.exams[0]
