"""Rows of one method as one JSON document, with the verdict of check-method, and its reader."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodenova.bench import grader
from nodenova.bench.plan import key_of_row
from nodenova.bench.registry import encoder_for, is_given_labels, name_of
from nodenova.bench.row import Row
from nodenova.bench.table import UNCHECKED
from nodenova.data.protocols import PROTOCOLS
from nodenova.data.splits import SETTINGS
from nodenova.display import plural
from nodenova.encoders.registry import ENCODERS
from nodenova.errors import SettingError, StorageError
from nodenova.evaluation.graded import SCHEMA, commit, versions
from nodenova.files.documents import (
    Schema,
    check,
    check_header,
    list_of,
    map_of,
    nullable,
    number,
    one_of,
    plain,
    read_json,
    record,
    text,
    whole,
)
from nodenova.methods._plugin import origin_of
from nodenova.testing import CHECKS, problem

FORMAT, VERSION = "nodenova method rows", 1
PASSES, FAILS, GIVEN_LABELS = "passes", "fails", "given labels"
NOT_CHECKED = "not checked"  # it does not run in nodenova
OWN_ENCODER = "own"  # encoder of such a method
MARK = "‡"  # of a line with rows of others
# A name that needs no escape anywhere.
_NAME = Schema(
    "a name of letters, digits, _, - and .",
    "names of letters, digits, _, - and .",
    frozenset({str}),
    lambda value: re.fullmatch(r"[\w.-]{1,60}", value) is not None,
)
FORM = record(
    {
        "method": record({"name": _NAME, "source": nullable(text)}, exact=True),
        "verdict": one_of(PASSES, FAILS, GIVEN_LABELS, NOT_CHECKED),
        "checks": list_of(
            record({"encoder": text, "check": text, "problem": nullable(text)}, exact=True)
        ),
        "rows": list_of(map_of(plain), 1),
        "versions": map_of(text),
        "commit": nullable(text),
    }
)


_SESSION = record(
    {
        "confusion": list_of(list_of(whole(0))),
        "sizes": list_of(whole(0, 1_000_000), 2),
        "predicted_sizes": list_of(whole(0, 1_000_000), 2),
        "scores": record({"other": map_of(nullable(number()))}),
    }
)
GRADED = record(
    {
        "dataset": text,
        "data": text,
        "versions": map_of(text),
        "protocol": text,
        "number": nullable(whole()),
        "seed": whole(0),
        "setting": one_of(*SETTINGS),
        "class_names": list_of(text),
        "sessions": list_of(_SESSION, 1),
    }
)
MEASURED = ("auroc", "aupr", "fpr95")  # in `measured` of a row


@dataclass(frozen=True)
class Check:
    """Result of one check of a method's rules: `problem` is None if it passed."""

    encoder: str
    check: str
    problem: str | None


def check_rules(method: Any, name: str, encoders: Sequence[str]) -> list[Check]:
    """Run every check of `nodenova check-method` on each encoder.

    Examples:
        >>> from nodenova.methods.never_new import NeverNew
        >>> [each.problem for each in check_rules(NeverNew(), "never_new", ["gcn"])]
        [None, None, None, None, None, None]
    """
    return [
        Check(encoder, each, problem(method, each, encoder_for(name, encoder)))
        for encoder in encoders
        for each in CHECKS
    ]


def rows_of_method(method: Any, rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Return the rows of a method, and how many are of another version of its file.

    Of a method in a user's file, a finished row counts if its key follows from the file as it is.
    """
    mine = [row for row in rows if row.method == name_of(method)]
    if origin_of(method) is None:
        return mine, 0
    same = [row for row in mine if not row.is_done or key_of_row(row, type(method)) == row.key]
    return same, len(mine) - len(same)


def method_document(method: Any, rows: Sequence[Row], name: str) -> dict[str, Any]:
    """Return the document of a method: its rows, and the verdict of its rules.

    Args:
        method: Method with its settings; the rules are checked with these.
        rows: Its rows, from `rows_of_method`.
        name: Name of the method on the command line.

    Returns:
        A document for JSON. A method that is given labels in phase 2 is not checked.

    Raises:
        SettingError: If there is no row.
    """
    if not rows:
        raise SettingError(f"there is no row of {name}: run it first, by nodenova bench")
    encoders = [each for each in ENCODERS if each in {row.encoder for row in rows}]
    checks = [] if is_given_labels(method) else check_rules(method, name, encoders)
    fails = any(each.problem is not None for each in checks)
    verdict = GIVEN_LABELS if is_given_labels(method) else FAILS if fails else PASSES
    origin = origin_of(method)
    source = None if origin is None else origin.digest
    return _document(name_of(method), source, verdict, checks, rows)


def graded_document(name: str, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the document of a method that does not run in nodenova, from what grade.py wrote.

    Args:
        name: Name of the method, of letters, digits, _, - and .
        paths: Files that `grade.py --json` wrote, one per run.

    Returns:
        A document for JSON, whose verdict is "not checked".

    Raises:
        SettingError: If the name cannot be one.
        StorageError: If a file is not one of grade.py, cannot be a row, or is there twice.
    """
    check(name, _NAME, "METHOD", SettingError, verdict="")
    rows: dict[str, Row] = {}
    for path in paths:
        row = row_of_grade(path, name)
        if row.key in rows:
            raise StorageError(f"{path}: this run is there twice; grade.py --seed states its seed")
        rows[row.key] = row
    return _document(name, None, NOT_CHECKED, [], list(rows.values()))


def row_of_grade(path: Path, name: str) -> Row:
    """Return what `grade.py --json` wrote as a row of a method."""
    document = read_json(path)
    check_header(document, str(path), grader.GRADED, [grader.VERSION])
    check(document, GRADED, str(path))
    protocol, sessions = document["protocol"], document["sessions"]
    if len(sessions) > 1:
        raise StorageError(f"{path}: a run of several sessions is no row, phase 1 is not graded")
    (graded,) = sessions
    is_open = protocol in PROTOCOLS
    drawn = protocol.startswith("class-splits-")
    other = graded["scores"]["other"]
    measured = {each: other[each] for each in MEASURED if other.get(each) is not None}
    sizes, found = graded["sizes"], graded["predicted_sizes"]
    if protocol.startswith("count"):
        measured |= {"true": float(sizes[-1]), "counted": float(found[-1])}
    about = ("dataset", "data", "protocol", "number", "seed", "setting")
    run = [name, *(document[each] for each in about)]
    fields = {
        "key": hashlib.sha256(json.dumps(run).encode()).hexdigest()[:16],
        "status": "done",
        "dataset": document["dataset"],
        "method": name,
        "encoder": OWN_ENCODER,
        "seed": document["seed"],
        "num_old": sizes[0],
        "num_new": found[-1],
        "class_split": document["seed"] if drawn else document["number"],
        "draw": "protocol" if is_open else protocol.removeprefix("class-splits-"),
        "visibility": document["setting"],
        "protocol": protocol if is_open else "",
        "handed": ("all-new" if protocol == "count-0" else "mixed") if is_open else "",
        "split": protocol,
        "class_names": document["class_names"],
        "confusion": graded["confusion"],
        "sizes": sizes,
        "predicted_sizes": found,
        "nodes": {"test": sum(map(sum, graded["confusion"]))},
        "measured": measured,
        "versions": document["versions"],
        "data": document["data"],
    }
    fields["draw"] = "published" if protocol == "paper" else fields["draw"]
    try:
        return Row.from_json({"schema": SCHEMA, **fields})
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


def _document(
    name: str, source: str | None, verdict: str, checks: Sequence[Check], rows: Sequence[Row]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "method": {"name": name, "source": source},
        "verdict": verdict,
        "checks": [vars(each) for each in checks],
        "rows": [row.to_json() for row in rows],
        "versions": dict(versions()),
        "commit": commit(),
    }


def read_method_rows(path: Path) -> list[Row]:
    """Read the rows of others: the method's name ends with ‡ and the name of the file.

    Args:
        path: File that `nodenova export-rows` wrote.

    Returns:
        Rows whose `source` states where they are from and the verdict of the rules.

    Raises:
        StorageError: If the file is no such document, or a row is damaged or there twice.
    """
    document = read_json(path)
    check_header(document, str(path), FORMAT, [VERSION])
    document = read_json(path, FORM)
    name = document["method"]["name"]
    label = re.sub(r"[^\w.-]+", "-", path.stem)[:40]
    rows: dict[str, Row] = {}
    for place, each in enumerate(document["rows"]):
        where = f"{path}: damaged, rows[{place}]"
        try:
            row = Row.from_json(each)
        except StorageError as error:
            raise StorageError(f"{where}: {error}") from error
        if row.method != name or not row.key:
            raise StorageError(f"{where} is not a row of {name} with a key")
        key = f"{label}:{row.key}"
        if key in rows and rows[key].is_done:
            raise StorageError(f"{where} repeats the finished run {row.key}")
        method = f"{name} {MARK} {label}"
        unchecked = (UNCHECKED,) if document["verdict"] in (FAILS, NOT_CHECKED) else ()
        sees = (*row.sees, *unchecked)
        source = _source(path, document)
        rows[key] = replace(row, key=key, method=method, source=source, sees=sees)
    return list(rows.values())


def _source(path: Path, document: Mapping[str, Any]) -> str:
    """Return where rows are from, and whether the method keeps the rules, as a sentence."""
    checks, verdict = document["checks"], document["verdict"]
    wrong = sum(each["problem"] is not None for each in checks)
    found = {
        PASSES: f"check-method passes ({plural(len(checks), 'check')})",
        FAILS: f"check-method fails ({wrong} of {plural(len(checks), 'check')})",
        GIVEN_LABELS: "given labels in phase 2",
        NOT_CHECKED: "graded by grade.py, the method's rules are not checked",
    }
    version = document["versions"].get("nodenova", "unknown")
    commit_of = document["commit"] or "unknown"
    made = f"nodenova {version}, commit {commit_of}"
    return f"Rows of others, {path.name}: {found[verdict]}; {made}"


def with_others(rows: Sequence[Row], others: Sequence[Path]) -> list[Row]:
    """Return rows and those of others; a source states where its data differ from ours.

    Raises:
        SettingError: If two files have one name.
        StorageError: If a file is not one of rows of others.
    """
    found, data = list(rows), dict[str, set[str]]()
    for row in rows:
        data.setdefault(row.dataset, set()).add(row.data)
    names = [path.stem for path in others]
    for path in others:
        if names.count(path.stem) > 1:
            raise SettingError(f"--others: two files are called {path.stem}; rename one of them")
        for row in read_method_rows(path):
            ours = data.get(row.dataset)
            differs = row.data and ours and row.data not in ours
            more = f"; on other data than ours ({row.data})" if differs else ""
            found.append(replace(row, source=row.source + more))
    return found
