"""Verdicts on the paper's claims follow from paired tests, tables over seeds from rows."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.figures import confusion_figures
from nodenova.bench.row import Row
from nodenova.bench.row_filters import once
from nodenova.bench.rowfile import RowFile, as_line
from nodenova.bench.tune import candidates_of, known_part, tune
from nodenova.evaluation.scores import Spread
from nodenova.evaluation.significance import bootstrap_interval
from tests.bench.rows import row
from tools import choice_tables, choose, claims, seed_tables


def runs(method: str, new: Sequence[float], old: float = 60.0, **more: object) -> list[Row]:
    """One row for each seed, New as given."""
    return [
        row(method, seed, old=old, new=value, **more)  # type: ignore[arg-type]
        for seed, value in enumerate(new)
    ]


def test_a_claim_needs_significant_differences() -> None:
    base = [30.0, 31.0, 29.0, 30.5, 29.5]
    for shift, verdict in ((5.0, "holds"), (-5.0, "does not hold")):
        moved = [value + shift + 0.1 * seed for seed, value in enumerate(base)]
        found = claims.compare([("Cora", runs("sword", moved), runs("dtc", base))], "new")
        assert claims.judge([d.sign for d in found]) == verdict
    noisy = [36.0, 25.0, 34.0, 26.0, 31.0]
    (found_noise,) = claims.compare([("Cora", runs("sword", noisy), runs("dtc", base))], "new")
    assert found_noise.first > found_noise.second
    assert found_noise.sign == 0
    assert claims.judge([found_noise.sign]) == "not shown"


def test_tests_are_paired_on_common_seeds_and_corrected() -> None:
    a, b = runs("sword", [40.0, 42.0, 41.0, 99.0]), runs("dtc", [35.0, 37.0, 36.0])
    few = runs("dtc", [35.0, 36.0])
    one = claims.compare([("one", a, b), ("too few seeds", a, few)], "new")
    assert [d.place for d in one] == ["one"]
    assert one[0].first == pytest.approx(41.0)  # without the seed that the other lacks
    noisy = ("noisy", runs("sword", [40.0, 30.0, 36.0]), runs("dtc", [30.0, 29.0, 31.0]))
    alone, among = claims.compare([noisy], "new"), claims.compare([noisy, noisy], "new")
    assert among[0].p == pytest.approx(2 * alone[0].p)


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([], "not measured"), ([1, 1], "holds"), ([1, 0], "holds in part"),
        ([1, -1], "holds in part"), ([0, -1], "does not hold"), ([0, 0], "not shown"),
    ],
)  # fmt: skip
def test_verdicts(votes: list[int], verdict: str) -> None:
    assert claims.judge(votes) == verdict


def test_nothing_can_be_more_forgotten_than_all() -> None:
    """Old is 0 without replay already, so that "without both even more so" is not shown."""
    less = {"changed": {"replay": 0.0}}
    both = {"changed": {"replay": 0.0, "omega": 0.0}}
    rows = [row(seed=seed, old=70.0 + seed, new=30.0) for seed in range(5)]
    rows += runs("sword", [40.0 + s for s in range(5)], old=0.0, **less)
    rows += runs("sword", [41.0 + s for s in range(5)], old=0.0, **both)
    verdict, numbers = claims.without("replay+omega", "old", over="replay")(rows)
    assert verdict == "not shown"
    assert "0.0 → 0.0" in numbers
    assert claims.without("replay", "old", lambda less, _: less < 10)(rows)[0] == "holds"
    # Lower by far, but above the bound that the claim states.
    kept = [row(seed=s, old=40.0 + s, new=30.0, **less) for s in range(5)]
    verdict, _ = claims.without("replay", "old", lambda less, _: less < 10)(rows[:5] + kept)
    assert verdict == "holds in part"


def test_h_of_means_and_its_deviation_agree_with_single_runs() -> None:
    rng = np.random.default_rng(0)
    old, new, share = rng.normal(60, 2, 4000), rng.normal(40, 3, 4000), 0.6
    everything = share * old + (1 - share) * new
    spreads = [
        Spread(float(x.mean()), float(x.std(ddof=1)), len(x)) for x in (old, new, everything)
    ]
    found = seed_tables.h_of_means(*spreads, share=share)
    single = 2 * old * new / (old + new)
    assert found.mean == pytest.approx(48.0, abs=0.2)
    assert found.std == pytest.approx(single.std(ddof=1), rel=0.03)


def test_three_words_by_the_standard_error_of_the_difference() -> None:
    theirs = Spread(50.0, 3.0, 9)  # standard error 1
    for mean, expected in ((51.3, "level"), (51.5, "above"), (48.5, "below")):
        ours = Spread(mean, 3.0, 9)
        assert seed_tables.standard_error(ours, theirs) == pytest.approx(sqrt(2))
        assert seed_tables.word(ours, theirs) == expected
    # A large spread of ours does not reach what a small one misses.
    assert seed_tables.word(Spread(48.0, 9.0, 9), theirs) == "level"
    assert seed_tables.word(Spread(46.0, 9.0, 9), theirs) == "below"


def test_an_interval_is_that_of_the_mean_and_repeats() -> None:
    values = [[float(x)] for x in np.random.default_rng(1).normal(10, 2, 40)]
    low, high = bootstrap_interval(values, lambda means: means[:, 0])
    middle, error = float(np.mean(values)), float(np.std(values) / sqrt(40))
    assert low == pytest.approx(middle - 1.96 * error, abs=0.15)
    assert high == pytest.approx(middle + 1.96 * error, abs=0.15)
    assert bootstrap_interval(values, lambda means: means[:, 0]) == (low, high)
    with pytest.raises(ValueError, match="at least two runs"):
        bootstrap_interval([[1.0]], lambda means: means[:, 0])


def test_a_run_for_a_map_is_not_counted_twice_in_a_panel() -> None:
    rows = [row(seed=seed) for seed in range(3)]
    mapped = replace(row(seed=0), key="with map", map="maps/0.npz")
    assert once([*rows, mapped]) == rows
    assert once([mapped]) == [mapped]  # a map alone is shown
    (figure,) = confusion_figures([*rows, mapped], Path())
    assert figure.title.endswith("; 3 runs")


def test_fresh_seeds_have_lines_of_their_own() -> None:
    rows = [row(m, seed=s, level=50 + s) for m in ("sword", "never_new") for s in range(3)]
    fresh = [row(m, seed=s, level=50) for m in ("sword", "never_new") for s in (100, 101)]
    lines = seed_tables.by_seeds(rows, fresh).splitlines()[2:]
    assert [line.split(" | ")[3] for line in lines] == ["0–2", "100–101"] * 2
    text = seed_tables.over_never_new(rows, fresh)
    assert "3 of 3" not in text  # equal levels: no seed has more
    assert text.count("| fresh |") == 1


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """tools/reproduce.py, which writes into a folder of its own."""
    monkeypatch.syspath_prepend(str(Path(seed_tables.__file__).parent))
    module = importlib.import_module("reproduce")
    monkeypatch.setattr(module, "ROWS", tmp_path / "bench.jsonl.gz")
    monkeypatch.setattr(module, "REPEATS", tmp_path / "repeats.jsonl")
    return module


def in_folder(folder: Path, rows: Sequence[Row]) -> Path:
    folder.mkdir()
    (folder / "rows.jsonl").write_bytes(b"".join(map(as_line, rows)))
    return folder


def test_a_run_that_is_made_again_is_compared_and_counted_once(
    reproduce: ModuleType, tmp_path: Path
) -> None:
    first = [replace(row(seed=s), commit="a" * 40, key=f"old {s}") for s in range(3)]
    again = [replace(r, commit="b" * 40, key=f"new {r.seed}") for r in first[:2]]
    again[1] = replace(again[1], confusion=row(seed=1, level=70).confusion)
    tuned = replace(first[2], commit="b" * 40, key="tuned", settings={"k": 9})
    first[2] = replace(first[2], settings={"k": 3})
    reproduce.ROWS.write_bytes(gzip.compress(b"".join(map(as_line, first))))
    for name in ("one", "two"):
        reproduce.add([in_folder(tmp_path / name, [*again, tuned])])
        packed = RowFile(reproduce.ROWS).read()
        assert sorted(r.key for r in packed) == ["new 0", "new 1", "tuned"]
        # Of the run with another setting no equal result is expected.
        assert sorted(reproduce.read_repeats().values()) == [(False, False), (True, False)]
    sentence = reproduce.repeats_sentence([*again, row(dataset="citeseer")])
    assert "1 of 2 runs made again at `bbbbbbbbbb` (0 have the same key)" in sentence
    assert "have been replaced: SWORD on Cora." in sentence
    assert sentence.endswith("of the earlier code: SWORD on CiteSeer.")


def test_a_failed_run_gives_way(reproduce: ModuleType) -> None:
    fine = row()
    failed = replace(fine, key="later", status="failed")
    assert reproduce.once_per_run([fine, failed]) == [fine]
    assert reproduce.once_per_run([failed, fine]) == [fine]


def search(gains: Sequence[float], gains_all: Sequence[float]) -> dict[str, object]:
    base = [40.0 + i for i in range(len(gains))]

    def line(settings: str, h: Sequence[float], over_all: Sequence[float]) -> dict[str, object]:
        moved = {"h": h, "all": over_all}
        values = {name: [b + m for b, m in zip(base, each, strict=True)]
                  for name, each in moved.items()}  # fmt: skip
        return {"settings": settings, "values": values}

    none = [0.0] * len(gains)
    lines = [line("defaults", none, none), line("k=2", gains, gains_all)]
    hidden = [["a"]] * len(gains)
    return {"method": "sword", "encoder": "gcn", "dataset": "cora", "hidden": hidden,
            "seeds": [0], "lines": lines}  # fmt: skip


@pytest.mark.parametrize(
    ("h", "over_all", "text"),
    [
        ([5.0, 4.0, 6.0, 5.5], [0.1, 0.0, 0.2, -0.1], "SWORD: `k=2` is chosen"),
        ([9.0, -8.0, 7.0, -6.0], [0.0, 0.0, 0.0, 0.0], "which is within the noise"),
        ([5.0, 4.0, 6.0, 5.5], [-5.0, -4.0, -6.0, -5.5], "which costs All"),
        ([-5.0, -4.0, -6.0, -5.5], [0.0, 0.0, 0.0, 0.0], "the default is chosen"),
    ],
)
def test_a_setting_replaces_the_default_by_the_rule_alone(
    h: Sequence[float], over_all: Sequence[float], text: str
) -> None:
    assert text in choice_tables.verdict([search(h, over_all)])
    table = choice_tables.study_table([search(h, over_all)])
    assert table.splitlines()[3].endswith("| yes |") == ("is chosen" in text and "`" in text)


def test_a_kept_search_replaces_an_earlier_one_of_the_same_graph(tmp_path: Path) -> None:
    known = known_part(nova.synthetic(nodes=300, classes=6), num_old=4)
    tried = candidates_of("prism", "prism", [{"n_resamples": "0"}])
    sized = choose.of_size(tried, 32)
    assert [dict(each.fit_settings) for each in sized] == [{"hidden": 32}] * 2
    assert choose.of_size(tried, 16) == tried
    found = tune(known, tried, "prism", draws=2, seeds=[0])
    for name in ("one", "two", "one"):
        choose.keep(tmp_path / "choices.jsonl", name, found)
    documents = choice_tables.read_choices(tmp_path / "choices.jsonl")
    assert [each["dataset"] for each in documents] == ["one", "two"]
    assert documents[0]["defaults"].keys() == {"n_resamples"}
