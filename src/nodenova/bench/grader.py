"""Grade predictions on an exported split, with Python and NumPy alone.

    python grade.py SPLIT predictions.csv [--answers DIR] [--found 2,3] [--seed N] [--json FILE]

`nodenova protocols export` copies this file to grade.py; it imports nothing of nodenova.
predictions.csv has the columns node and class, with a line for every test node; other nodes are
ignored. Labelled classes have the numbers of train.csv, discovered ones follow, session by
session. A split of several sessions needs a column session (1, 2, ...). A column p_new, the
probability of being of no labelled class, adds AUROC, AUPR and FPR95. --found names the number of
classes that were discovered in each session, where it is not the number that the split gives.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

FORMAT, VERSION = "nodenova protocol", 1
GRADED = "nodenova grade"  # of the document that --json writes
MATCHINGS = ("block", "identity", "global")
TITLES = {
    "all": "All", "old": "Old", "new": "New", "h": "H", "old_new_accuracy": "Old-new accuracy",
    "nmi": "NMI", "ari": "ARI", "unknown": "New alone", "mean_all": "mean All", "aa": "AA",
    "auroc": "AUROC", "aupr": "AUPR", "fpr95": "FPR95",
}  # fmt: skip
RECALL = 0.95
COMMIT = ".commit.nodenova"  # folder of files that are being put in their places
MAX_CLASSES = 10_000  # true or predicted ones: a confusion matrix has a row or a column for each
MAX_MESSAGE = 300  # characters of an error about JSON or a number
# Forms of the documents of an export: a type, [form of each], {"*": form of each}, {key: form},
# or a tuple of several forms of which one is enough; int stands for 0, 1, ...
INDEX: Any = {
    "format": str, "version": int, "dataset": str, "data": (str, None), "versions": {"*": str},
    "splits": [{"name": str, "answers": {"*": str}}],
}  # fmt: skip
SPLIT: Any = {
    "protocol": str, "number": (int, None), "seed": int, "setting": str,
    "sessions": [{"num_new": (int, None)}],
}  # fmt: skip
CLASSES: Any = {"sizes": [int], "class_names": [str]}


class WrongFileError(Exception):
    """A file that cannot be graded; the message names it."""


# Matching


def assign(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of a one-to-one assignment with the largest sum.

    Shortest augmenting paths (Crouse 2016), in the order in which SciPy's `linear_sum_assignment`
    takes them, so that ties are broken alike.
    """
    is_tall = counts.shape[0] > counts.shape[1]
    cost = -np.asarray(counts.T if is_tall else counts, dtype=float)
    rows, columns = cost.shape
    u, v = np.zeros(rows), np.zeros(columns)
    of_row, of_column = np.full(rows, -1), np.full(columns, -1)
    for row in range(rows):
        shortest, path, seen_rows, seen, sink, lowest = _path(cost, u, v, of_column, row)
        for i in seen_rows:
            u[i] += lowest if i == row else lowest - shortest[of_row[i]]
        v[seen] -= lowest - shortest[seen]
        column = sink
        while True:
            i = path[column]
            of_column[column] = i
            of_row[i], column = column, of_row[i]
            if i == row:
                break
    if is_tall:
        order = np.argsort(of_row)
        return of_row[order], order
    return np.arange(rows), of_row


def _path(
    cost: np.ndarray, u: np.ndarray, v: np.ndarray, of_column: np.ndarray, row: int
) -> tuple[np.ndarray, np.ndarray, list[int], list[int], int, float]:
    """Find the shortest augmenting path from a row to a free column."""
    columns = cost.shape[1]
    remaining = list(range(columns - 1, -1, -1))
    shortest, path = np.full(columns, np.inf), np.full(columns, -1)
    seen_rows, seen, lowest, i = list[int](), list[int](), 0.0, row
    while True:
        seen_rows.append(i)
        least, index = math.inf, -1
        for place, j in enumerate(remaining):
            reduced = lowest + cost[i, j] - u[i] - v[j]
            if reduced < shortest[j]:
                path[j], shortest[j] = i, reduced
            if shortest[j] < least or (shortest[j] == least and of_column[j] == -1):
                least, index = shortest[j], place
        lowest, j = least, remaining[index]
        seen.append(j)
        last = remaining.pop()
        if index < len(remaining):
            remaining[index] = last
        if of_column[j] == -1:
            return shortest, path, seen_rows, seen, j, lowest
        i = of_column[j]


def match(
    confusion: np.ndarray, sizes: Sequence[int], found: Sequence[int], matching: str
) -> np.ndarray:
    """Return the true class of each predicted class, -1 for none."""
    matches = np.full(confusion.shape[1], -1)
    if matching == "global":
        true, predicted = assign(confusion)
        matches[predicted] = true
        return matches
    blocks = list(zip(_blocks(sizes), _blocks(found), strict=True))
    for session, (true, predicted) in enumerate(blocks):
        if matching == "identity" or session == 0:
            n = min(len(true), len(predicted))
            matches[predicted[:n]] = true[:n]
        else:
            rows, columns = assign(confusion[np.ix_(true, predicted)])
            matches[predicted[columns]] = true[rows]
    return matches


def _blocks(sizes: Sequence[int]) -> list[np.ndarray]:
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]


# Scores of a confusion matrix, in percent; nan where there is nothing to measure


def percentage(part: float, whole: float) -> float:
    """Return 100 part / whole, nan if whole is 0."""
    return 100.0 * float(part) / float(whole) if whole else float("nan")


def accuracies(
    confusion: np.ndarray, sizes: Sequence[int], found: Sequence[int], matching: str
) -> dict[str, float]:
    """Return Old, New, All and H, the harmonic mean of Old and New."""
    matches = match(confusion, sizes, found, matching)
    n_old = sum(sizes[:-1])
    pairs = np.flatnonzero(matches >= 0)
    right = np.zeros(len(confusion))
    right[matches[pairs]] = confusion[matches[pairs], pairs]
    count = confusion.sum(axis=1)
    old = percentage(right[:n_old].sum(), count[:n_old].sum())
    new = percentage(right[n_old:].sum(), count[n_old:].sum())
    if math.isnan(old) or math.isnan(new):
        h = float("nan")
    else:
        h = 2 * old * new / (old + new) if old + new > 0 else 0.0
    return {"old": old, "new": new, "all": percentage(right.sum(), count.sum()), "h": h}


def phase_row(confusion: np.ndarray, sizes: Sequence[int], found: Sequence[int]) -> list[float]:
    """Return the accuracy on the test nodes of each session's classes, matched by block."""
    matches = match(confusion, sizes, found, "block")
    pairs = np.flatnonzero(matches >= 0)
    right = np.zeros(len(confusion))
    right[matches[pairs]] = confusion[matches[pairs], pairs]
    return [percentage(right[b].sum(), confusion[b].sum()) for b in _blocks(sizes)]


def unmatched_scores(
    confusion: np.ndarray, sizes: Sequence[int], found: Sequence[int]
) -> dict[str, float]:
    """Return scores that need no matching of old classes."""
    n_old, n_found = sum(sizes[:-1]), sum(found[:-1])
    sides = confusion[:n_old, :n_found].sum() + confusion[n_old:, n_found:].sum()
    rows, columns = assign(confusion[n_old:])
    alone = confusion[n_old:][rows, columns].sum()
    return {
        "old_new_accuracy": percentage(sides, confusion.sum()),
        "nmi": nmi(confusion),
        "ari": ari(confusion),
        "unknown": percentage(alone, confusion[n_old:].sum()),
    }


def nmi(confusion: np.ndarray) -> float:
    """Return the mutual information of true and predicted classes over their mean entropy."""
    if not confusion.sum():
        return float("nan")
    p = confusion / confusion.sum()
    p_true, p_predicted = p.sum(axis=1), p.sum(axis=0)
    seen = p > 0
    mutual = (p[seen] * np.log(p[seen] / np.outer(p_true, p_predicted)[seen])).sum()
    entropies = [float(-(q[q > 0] * np.log(q[q > 0])).sum()) for q in (p_true, p_predicted)]
    mean_entropy = sum(entropies) / 2
    return 100.0 * float(mutual / mean_entropy) if mean_entropy > 0 else 100.0


def ari(confusion: np.ndarray) -> float:
    """Return the adjusted Rand index of true and predicted classes."""
    if not confusion.sum():
        return float("nan")

    def pairs(counts: np.ndarray) -> float:
        counts = counts.astype(float)
        return float((counts * (counts - 1) / 2).sum())

    both, everything = pairs(confusion), pairs(confusion.sum())
    true, predicted = pairs(confusion.sum(axis=1)), pairs(confusion.sum(axis=0))
    expected = true * predicted / everything if everything else 0.0
    highest = (true + predicted) / 2
    return 100.0 * (both - expected) / (highest - expected) if highest != expected else 100.0


def detection_scores(p_new: np.ndarray, is_new: np.ndarray) -> dict[str, float]:
    """Return AUROC, AUPR and FPR95 of finding nodes of old classes; {} without both kinds."""
    if is_new.all() or not is_new.any():
        return {}
    order = np.argsort(p_new, kind="stable")
    last = np.append(np.flatnonzero(np.diff(p_new[order])), len(order) - 1)  # of nodes that tie
    old = np.cumsum(~is_new[order])[last]
    new = last + 1 - old
    n_old, n_new = int((~is_new).sum()), int(is_new.sum())
    gain_old, gain_new = np.diff(old, prepend=0), np.diff(new, prepend=0)
    # An old node before a new one counts 1, beside it 1/2.
    area = (gain_new * (old - gain_old / 2)).sum() / (n_old * n_new)
    precision = (gain_old / n_old * (old / (old + new))).sum()
    distance = np.abs(old / n_old - RECALL)[::-1]
    first_full = len(old) - 1 - int(np.searchsorted(old, old[-1]))
    place = first_full + int(np.argmin(distance[first_full:]))
    shares = {"auroc": area, "aupr": precision, "fpr95": new[::-1][place] / n_new}
    return {name: 100.0 * float(share) for name, share in shares.items()}


# Files


def read_document(path: Path, form: Any) -> Any:
    """Return the content of a JSON file of a form."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(document, ensure_ascii=False).encode()  # half a character names no file
    except (OSError, ValueError, RecursionError) as error:
        raise WrongFileError(f"{path}: cannot be read ({brief(error)})") from None
    if not has_form(document, form):
        raise WrongFileError(f"{path}: not a {path.name} of an exported protocol")
    return document


def read_index(home: Path) -> Any:
    """Return protocol.json of an export."""
    path = home / "protocol.json"
    if not path.is_file() and (home / COMMIT).is_dir():
        raise WrongFileError(
            f"{home}: its export was stopped halfway; give nodenova protocols export again"
        )
    index = read_document(path, INDEX)
    if index["format"] != FORMAT or index["version"] != VERSION:
        raise WrongFileError(f"{path}: not version {VERSION} of a {FORMAT}")
    return index


def has_form(value: Any, form: Any) -> bool:
    """Whether a document has a form."""
    if isinstance(form, tuple):
        return any(has_form(value, each) for each in form)
    if isinstance(form, list):
        return isinstance(value, list) and all(has_form(each, form[0]) for each in value)
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return False
        if "*" in form:
            return all(has_form(each, form["*"]) for each in value.values())
        return all(key in value and has_form(value[key], each) for key, each in form.items())
    if form is int:
        return type(value) is int and 0 <= value < 2**63
    return value is None if form is None else isinstance(value, form)


def brief(message: Exception | str) -> str:
    """Return a message as one short line."""
    return " ".join(str(message).split())[:MAX_MESSAGE]


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the lines of a CSV file that has these columns."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise WrongFileError(f"{path}: cannot be read ({brief(error)})") from None
    for name in columns:
        if not lines or lines[0].get(name) is None:
            raise WrongFileError(f"{path}: has no column {name!r}, or no line")
    return lines


def read_predictions(path: Path, sessions: int) -> list[dict[str, tuple[int, float | None]]]:
    """Return {node: (class, p_new)} of each session."""
    several = sessions > 1
    found: list[dict[str, tuple[int, float | None]]] = [{} for _ in range(sessions)]
    lines = read_table(path, ("node", "class", *(["session"] if several else [])))
    for number, line in enumerate(lines, start=2):
        where = f"{path}: line {number}"
        try:
            session = int(line["session"]) if several else 1
            label = int(line["class"])
            p_new = float(line["p_new"]) if line.get("p_new") else None
        except (TypeError, ValueError):
            raise WrongFileError(f"{where}: class and session must be whole numbers") from None
        if p_new is not None and not math.isfinite(p_new):
            raise WrongFileError(f"{where}: p_new must be a number, not {p_new}")
        if not 1 <= session <= sessions:
            raise WrongFileError(f"{where}: there are sessions 1 to {sessions} alone")
        if label < 0:
            raise WrongFileError(f"{where}: classes are numbered from 0, this one is {label}")
        if label >= MAX_CLASSES:
            raise WrongFileError(f"{where}: a class is a number below {MAX_CLASSES}")
        if line["node"] in found[session - 1]:
            raise WrongFileError(f"{where}: node {line['node'][:100]!r} is there twice")
        found[session - 1][line["node"]] = (label, p_new)
    return found


def answers_of(folder: Path, split: str, index: dict[str, Any]) -> Path:
    """Return the folder of a split's answers, compared with the hashes of protocol.json."""
    files = next((each["answers"] for each in index["splits"] if each["name"] == split), None)
    if files is None:
        known = brief(", ".join(each["name"] for each in index["splits"]))
        raise WrongFileError(f"there is no split {split!r}; there are {known}")
    for name, digest in files.items():
        path = folder / split / name
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # no file can have such a name
            raise WrongFileError(f"{path}: cannot be read ({brief(error)})") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise WrongFileError(f"{path}: not the answers of protocol.json, its sha256 differs")
    return folder / split


def grade_session(
    answers: Sequence[dict[str, str]],
    predictions: dict[str, tuple[int, float | None]],
    sizes: Sequence[int],
    found: Sequence[int],
    source: str,
) -> dict[str, Any]:
    """Return the confusion matrix of a session's test nodes, and its scores."""
    missing = [line["node"] for line in answers if line["node"] not in predictions]
    if missing:
        raise WrongFileError(
            f"{source}: {len(missing)} of {len(answers)} test nodes have no line, "
            f"such as {missing[0][:100]!r}"
        )
    y = true_classes(answers, sum(sizes))
    mine = [predictions[line["node"]] for line in answers]
    predicted = np.array([label for label, _ in mine], dtype=np.int64)
    columns = sum(found)
    if predicted.max(initial=-1) >= columns:
        raise WrongFileError(
            f"{source}: class {predicted.max()} is predicted, but there are {columns} classes, "
            "numbered from 0; --found states how many were discovered"
        )
    flat = np.bincount(y * columns + predicted, minlength=sum(sizes) * columns)
    confusion = flat.reshape(sum(sizes), columns)
    scores: dict[str, Any] = {
        matching: accuracies(confusion, sizes, found, matching) for matching in MATCHINGS
    }
    scores["other"] = unmatched_scores(confusion, sizes, found)
    p_new = [p for _, p in mine if p is not None]
    if p_new and len(p_new) == len(mine):
        scores["other"] |= detection_scores(np.array(p_new), y >= sum(sizes[:-1]))
    return {
        "confusion": confusion.tolist(),
        "sizes": list(sizes),
        "predicted_sizes": list(found),
        "scores": scores,
    }


def true_classes(answers: Sequence[dict[str, str]], classes: int) -> np.ndarray:
    """Return the class of each test node."""
    try:
        y = [int(line["class"]) for line in answers]
    except (TypeError, ValueError):
        y = [-1]
    if not all(0 <= label < classes for label in y):
        raise WrongFileError(f"the answers hold a class that is none of 0 to {classes - 1}")
    return np.array(y, dtype=np.int64)


def grade(
    home: Path,
    split: str,
    predictions: Path,
    answers: Path | None = None,
    found: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the graded sessions of a split, and what identifies it.

    Args:
        home: Folder that `nodenova protocols export` wrote.
        split: Name of a split.
        predictions: CSV file with columns node and class.
        answers: Folder of the answers (default: answers in `home`).
        found: Number of classes discovered in each session (default: the number given).

    Returns:
        A document: protocol, dataset, split, and for each session its confusion and scores.

    Raises:
        WrongFileError: If a file cannot be read or does not fit the split.
    """
    index = read_index(home)
    key = answers_of(home / "answers" if answers is None else answers, split, index)
    classes = read_document(key / "classes.json", CLASSES)
    stated = read_document(home / "splits" / split / "split.json", SPLIT)
    sizes, names, sessions = classes["sizes"], classes["class_names"], stated["sessions"]
    if len(sizes) != len(sessions) + 1 or not sum(sizes) == len(names) <= MAX_CLASSES:
        raise WrongFileError(f"{key / 'classes.json'}: does not fit the sessions of split.json")
    lines = read_predictions(predictions, len(sessions))
    given = [session["num_new"] for session in sessions] if found is None else list(found)
    if len(given) != len(sessions):
        raise WrongFileError(f"--found needs {len(sessions)} numbers, one per session")
    if not all(0 <= number <= MAX_CLASSES for number in given if number is not None):
        raise WrongFileError(f"a session has 0 to {MAX_CLASSES} new classes")
    graded, counts = [], [sizes[0]]
    for session, number in enumerate(given):
        highest = max((label for label, _ in lines[session].values()), default=-1)
        counts.append(max(highest + 1 - sum(counts), 0) if number is None else number)
        table = read_table(key / f"session-{session + 1}.csv", ("node", "class"))
        so_far = sizes[: session + 2]
        graded.append(grade_session(table, lines[session], so_far, counts, str(predictions)))
    document = {name: index[name] for name in ("version", "dataset", "data", "versions")}
    document["format"] = GRADED
    document |= {name: stated[name] for name in ("protocol", "number", "seed", "setting")}
    document |= {"split": split, "class_names": names, "sessions": graded}
    if len(graded) > 1:
        last = graded[-1]
        row = phase_row(np.array(last["confusion"]), last["sizes"], last["predicted_sizes"])
        means = [session["scores"]["block"]["all"] for session in graded]
        document |= {"mean_all": float(np.mean(means)), "aa": float(np.mean(row))}
    return document


# Output


def as_text(document: dict[str, Any]) -> str:
    """Return the scores as a table: one line per score, one column per matching."""

    def number(value: float) -> str:
        return "-" if math.isnan(value) else f"{value:.1f}"

    lines = [f"{document['dataset']}, {document['split']}, percent"]
    for place, session in enumerate(document["sessions"], start=1):
        scores = session["scores"]
        if len(document["sessions"]) > 1:
            lines.append(f"session {place}")
        lines.append(f"{'matched by':18}" + "".join(f"{name:>10}" for name in MATCHINGS))
        for name in ("all", "old", "new", "h"):
            cells = "".join(f"{number(scores[matching][name]):>10}" for matching in MATCHINGS)
            lines.append(f"{TITLES[name]:18}{cells}")
        for name, value in scores["other"].items():
            lines.append(f"{TITLES[name]:18}{number(value):>10}")
    for name in ("mean_all", "aa"):
        if name in document:
            lines.append(f"{TITLES[name]:18}{number(document[name]):>10}")
    return "\n".join(lines) + "\n"


def strict(value: Any) -> Any:
    """Return a value with null for nan."""
    if isinstance(value, dict):
        return {key: strict(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [strict(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade as the command line asks for; return 2 for wrong files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("split", help="name of a folder in splits/")
    parser.add_argument("predictions", type=Path, help="CSV file with columns node and class")
    parser.add_argument("--answers", type=Path, help="folder of the answers (default: answers/)")
    parser.add_argument("--found", help="number of classes discovered in each session: 2,3")
    parser.add_argument("--seed", type=int, help="seed of the method (default: of the split)")
    parser.add_argument("--json", type=Path, help="write confusion matrices and scores to a file")
    given = parser.parse_args(arguments)
    home = Path(__file__).resolve().parent
    try:
        found = None if given.found is None else [int(part) for part in given.found.split(",")]
    except ValueError:
        parser.error(f"--found takes whole numbers like 2 or 2,3, not {given.found!r}")
    try:
        document = grade(home, given.split, given.predictions, given.answers, found)
    except WrongFileError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if given.seed is not None:
        document["seed"] = given.seed
    sys.stdout.write(as_text(document))
    if given.json is not None:
        given.json.write_text(json.dumps(strict(document), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
