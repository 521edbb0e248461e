"""The small, deterministic part of the attack, and the attack itself: what is planted is found."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.attack import fuzz, long_run, metamorphic, mutate, report, run
from tools.attack.corpus import Corpus
from tools.attack.formats import FILE_FORMATS
from tools.attack.judge import (
    Action,
    Outcome,
    RefusalError,
    WrongTypeError,
    judge,
    judge_all,
)

PER_FORMAT = 17


@pytest.fixture(scope="module")
def arena() -> Iterator[tuple[Corpus, Path]]:
    with fuzz.arena() as made:
        yield made


def test_mutated_inputs_are_accepted_or_refused_by_a_sentence(arena: tuple[Corpus, Path]) -> None:
    tally = fuzz.judge_formats(*arena, seed=0, counts=dict.fromkeys(fuzz.FORMATS, PER_FORMAT))
    assert list(tally.failures.values()) == []
    assert tally.result()["cases"] == PER_FORMAT * len(fuzz.FORMATS)


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("form", FILE_FORMATS)
def test_a_case_is_made_again_from_its_number(form: str, arena: tuple[Corpus, Path]) -> None:
    corpus, scratch = arena
    made = []
    for number in (3, 4, 3):
        fuzz.make_case(corpus, scratch, 0, form, number)
        made.append(contents(scratch / "c"))
    assert made[0] == made[2]
    if form != "recipe":  # which is a value, not a file
        assert made[0] != made[1]


def test_every_format_has_inputs_that_are_fine(arena: tuple[Corpus, Path]) -> None:
    """A format whose every mutant is refused would test the first check only."""
    corpus, scratch = arena
    for form in ("npz", "model", "suggestions", "table", "rows", "recipe"):
        tally = fuzz.judge_formats(corpus, scratch, 1, {form: 25})
        assert {"accepted", "refused"} <= set(tally.verdicts[form]), form


# What is planted is found


def refuse(text: str) -> None:
    raise RefusalError(text)  # a NodenovaError is one short line whatever it is given


def warn() -> None:
    warnings.warn("look out", UserWarning, stacklevel=1)


def divide() -> float:
    return 1 / 0


def wrong_type() -> None:
    raise WrongTypeError("no number")


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        (lambda: None, "accepted"),
        (lambda: refuse("nodes.csv: no rows"), "refused"),
        (lambda: refuse("nodes.csv: no rows\nand no columns"), "wordy"),
        (lambda: refuse("x" * 401), "wordy"),
        (lambda: refuse(""), "wordy"),
        (wrong_type, "type error"),
        (warn, "warning"),
        (divide, "traceback"),
        (lambda: os._exit, "accepted"),
    ],
)
def test_an_outcome_has_its_verdict(action: Action, verdict: str) -> None:
    assert judge(action).verdict == verdict


def plant(number: int) -> Action:
    def take_memory() -> None:
        np.ones(2**31)

    def hang() -> None:
        time.sleep(60)

    def crash() -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    return {1: crash, 3: hang, 5: divide, 6: take_memory}.get(number, lambda: None)


def test_a_crash_or_a_hang_costs_one_case(tmp_path: Path) -> None:
    judged = judge_all(plant, range(8), tmp_path, hang=0.5)
    found = {one.number: one.outcome for one in judged}
    verdicts = ["accepted", "crash", "accepted", "hang", "accepted", "traceback", "memory"]
    assert [found[n].verdict for n in range(8)] == [*verdicts, "accepted"]
    assert found[1].error == "SIGSEGV"
    assert found[5] == Outcome("traceback", "ZeroDivisionError", "", "division by zero")


def test_a_case_that_cannot_be_made_stops_the_attack(tmp_path: Path) -> None:
    def make(number: int) -> Action:
        raise KeyError("seed file")

    with pytest.raises(RuntimeError, match="the harness itself failed in case 0"):
        judge_all(make, [0], tmp_path)


def test_the_place_of_an_error_is_the_deepest_frame_in_the_package() -> None:
    from nodenova.display import percent

    outcome = judge(lambda: percent("a"))  # type: ignore[arg-type]
    assert outcome.verdict == "traceback"
    assert outcome.place.startswith("display.py:percent:")


def test_failures_at_one_place_are_listed_once() -> None:
    tally = fuzz.Tally(seed=4)
    for number, line in enumerate((10, 11, 10)):
        outcome = Outcome("traceback", "KeyError", f"io/npz.py:load:{line}", "'x'")
        tally.add("npz", fuzz.Judged(number, outcome, 0.1))
    tally.add("npz", fuzz.Judged(3, Outcome("refused"), 0.1))
    (failure,) = tally.result()["failures"]
    assert failure["cases"] == 3
    assert failure["reproduce"].endswith("--seed 4 --case npz:0")
    assert tally.result()["totals"]["traceback"] == 3


def test_mutators_change_what_they_are_given() -> None:
    document = {"format": "a", "rows": [{"x": 1, "y": [0.5, "b"]}], "n": 3}
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    records = [{"id": f"n{i}", "year": i} for i in range(5)]
    changed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        content = mutate.json_bytes(document)
        changed += mutate.change_json_file(content, rng) != content
        changed += mutate.change_npz({"x": array}, rng) != mutate.npz_bytes({"x": array})
        changed += mutate.change_table(records, "csv", rng)[0] != mutate.write_table(records, "csv")
    assert changed > 100
    assert document["n"] == 3
    assert array.tolist() == np.arange(12).reshape(3, 4).tolist()
    assert records[4] == {"id": "n4", "year": 4}


# Relations


@pytest.fixture(scope="module")
def world() -> metamorphic.World:
    labelled = metamorphic.uneven(120, 4)
    return replace(metamorphic.World.of(labelled, 2, mixed=False, name="tiny"), quick=True)


def shares(world: metamorphic.World, of_table: bool) -> dict[str, float]:
    base = world.fit_frames() if of_table else world.fit_arrays()
    return {
        name: metamorphic.changed(base, one.relate(world, np.random.default_rng(0)), world.known)
        for name, one in metamorphic.RELATIONS.items()
        if one.exact and one.of_table == of_table
    }


def test_the_same_arrays_give_the_same_classes(world: metamorphic.World) -> None:
    assert set(shares(world, of_table=False).values()) == {0.0}


def test_the_same_table_gives_the_same_classes(world: metamorphic.World) -> None:
    found = shares(world, of_table=True)
    assert found == dict.fromkeys(found, 0.0)


def test_another_input_changes_classes_on_the_tiny_graph(world: metamorphic.World) -> None:
    """On an easy graph the relations above could not fail."""
    later = replace(world, seed=1).fit_frames()
    assert metamorphic.changed(world.fit_frames(), later, world.known) > 0


def test_changed_nodes_are_counted_after_the_best_matching() -> None:
    before = {"a": "oak", "b": "new 1", "c": "new 1", "d": "new 2"}
    renamed = {"a": "oak", "b": "x", "c": "x", "d": "y"}
    assert metamorphic.changed(before, renamed, {"oak"}) == 0.0
    assert metamorphic.changed(before, renamed | {"c": "y"}, {"oak"}) == 0.25
    assert metamorphic.changed(before, renamed | {"a": "x"}, {"oak"}) == 0.25


# The long run and the report


def test_an_open_handle_and_a_thread_are_measured(tmp_path: Path) -> None:
    before = long_run.measure()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    with (tmp_path / "open").open("w"):
        after = long_run.measure()
    stop.set()
    thread.join()
    assert after["handles"] == before["handles"] + 1
    assert after["threads"] == before["threads"] + 1


def test_a_round_of_the_long_run_ends_well(tmp_path: Path) -> None:
    long_run.one_round(0, tmp_path / "run")
    assert (tmp_path / "model" / "model.json").is_file()


def write_results(folder: Path, **parts: dict[str, Any]) -> None:
    for name, result in parts.items():
        header = {"part": name, "seed": 3, "commit": "0123456789", "failures": []}
        (folder / f"{name}.json").write_text(json.dumps(header | result))


def test_the_page_has_the_figures_of_the_results(tmp_path: Path) -> None:
    tally = fuzz.Tally(seed=3)
    for number in range(1234):
        tally.add("npz", fuzz.Judged(number, Outcome("refused"), 0.0))
    outcome = Outcome("traceback", "KeyError", "io/npz.py:load:9", "'x'")
    tally.add("npz", fuzz.Judged(9999, outcome, 0.0))
    figures = {"kills": 41, "at commit points": 21, "broken": 0, "found": {"old": 41}}
    kept = {"megabytes": 500.5, "handles": 6, "threads": 2}
    write_results(
        tmp_path,
        fuzz=tally.result(),
        killer={"commands": {"undo": figures}},
        races={"races": {"two reviews": {"tried": 7, "refused": 7, "wrong": 0}}},
        metamorphic={"graphs": {"g": {"a": 0.0, "b": 0.125}}, "exact": ["a"]},
        long_run={"rounds": 200, "measured": {"start": kept, "end": kept}},
        mutants={"all": {"mutants": 300}, "groups": {"nn": {"mutants": 300}}, "survivors": []},
        measured={"tables": [{"title": "Cost", "text": "Time.", "header": ["a"], "rows": [[1]]}]},
    )
    page = report.make_page(tmp_path, [{"number": 1, "title": "gone", "tests": []}])
    for part in (
        "| npz | 1,235 | 0 | 1,234 |",
        "| npz: traceback | KeyError | io/npz.py:load:9 | 1 |",
        "| undo | 41 | 21 |",
        "| two reviews | 7 | 7 refused | 0 |",
        "| b | 12.5 |",
        "| start | 500.5 | 6 | 2 |",
        "| **all** | 300 |",
        "## Cost",
        "| 1 | gone | open |",
    ):
        assert part in page, page
    assert report.MISSING not in page


def test_a_part_that_was_not_run_is_named(tmp_path: Path) -> None:
    assert report.make_page(tmp_path, []).count(report.MISSING) == 6


def test_an_item_names_a_test_that_exists() -> None:
    here = "test_attack.py::test_an_item_names_a_test_that_exists"
    report.check_tests([{"number": 1, "tests": [here]}])
    for wrong in ("test_attack.py::test_nothing", "test_nowhere.py::test_nothing"):
        with pytest.raises(SystemExit, match="item 7: there is no test"):
            report.check_tests([{"number": 7, "tests": [wrong]}])


def test_the_page_is_what_the_results_give() -> None:
    items = report.load_items()
    assert [item["number"] for item in items] == list(range(1, 27))
    assert report.PAGE.read_text(encoding="utf-8") == report.make_page(run.RESULTS, items)


def test_a_part_writes_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "run", lambda seed, scale, out: {"failures": [{"what": "grows"}]})
    assert run.main(["long_run", "--seed", "5", "--out", str(tmp_path)]) == 1
    result = json.loads((tmp_path / "long_run.json").read_text())
    assert (result["part"], result["seed"], result["scale"]) == ("long_run", 5, 1.0)
    with pytest.raises(SystemExit, match="there is no part 'nothing'"):
        run.main(["nothing"])
