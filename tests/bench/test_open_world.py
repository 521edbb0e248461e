"""Open-world benches: their runs, their rows and their tables."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.baselines import Counted, PrismCount
from nodenova.bench.page import write_outputs, write_page
from nodenova.bench.paper import OPEN_WORLD_FACTS, published_lines, published_source
from nodenova.bench.plan import RunSpec
from nodenova.bench.render import to_csv, to_markdown
from nodenova.bench.row import Row
from nodenova.bench.row_filters import in_setting
from nodenova.bench.run import run_one
from nodenova.bench.runs import ENTRANTS, OPEN_WORLD, open_world_runs
from nodenova.bench.standings import goal_text, standing, standings
from nodenova.bench.table import Cell
from nodenova.bench.tables import MEASURES, TABLES, kept_accuracy, session_score
from nodenova.data.protocols import PROTOCOLS, protocol_of
from nodenova.errors import SettingError, SplitError, StorageError
from nodenova.evaluation.graded import counts_of

Bench = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def graph() -> nova.LabelledGraph:
    """Seven planted classes and a published split, called like Cora: every protocol takes it."""
    planted = nova.synthetic(nodes=910, classes=7, homophily=0.9, topic_share=0.7, words=56)
    third = np.arange(910) % 3
    return replace(planted, name="cora", train=third == 0, val=third == 2, test=third == 1)


@pytest.fixture(scope="module")
def bench(graph: nova.LabelledGraph) -> Bench:
    """Rows of a bench on that graph, one seed; each is run once for all tests."""
    done: dict[str, Row] = {}

    def run(
        name: str, *entrants: str, keep: Callable[[RunSpec], bool] = lambda spec: True
    ) -> list[Row]:
        rows = []
        for spec in open_world_runs(name, [graph], entrants or OPEN_WORLD[name].entrants, [0]):
            if keep(spec):
                if spec.key not in done:
                    done[spec.key] = replace(run_one(graph, spec.plan, spec.seed).row, key=spec.key)
                rows.append(done[spec.key])
        return rows

    return run


# Which runs


def test_pown_is_every_fold_with_every_seed(graph: nova.LabelledGraph) -> None:
    specs = open_world_runs("pown", [graph], ["prism", "gcd"], [0, 4])
    assert len({spec.key for spec in specs}) == len(specs) == 3 * 2 * 2
    assert {(spec.plan.class_split, spec.seed) for spec in specs} == set(
        itertools.product(range(3), [0, 4])
    )
    first = next(spec.plan for spec in specs if spec.plan.class_split == 0)
    assert first.old == (0, 2)  # to be found: 5, 3; aside: 4, 1, 6
    assert first.num_new == 5


def test_runs_of_a_fold_and_seed_share_phase_1_and_no_others_do(graph: nova.LabelledGraph) -> None:
    specs = open_world_runs("pown", [graph], ["prism", "gcd", "all-new"], [0, 1])
    groups: dict[object, set[tuple[int | None, int]]] = {}
    for spec in specs:
        groups.setdefault(spec.phase_1, set()).add((spec.plan.class_split, spec.seed))
    assert len(groups) == 6
    assert all(len(each) == 1 for each in groups.values())


def test_mixed_and_count_have_a_run_for_each_share(graph: nova.LabelledGraph) -> None:
    mixed = open_world_runs("mixed", [graph], ["prism"], [0])
    assert [spec.plan.protocol for spec in mixed] == [
        "mixed-30",
        "mixed-50",
        "mixed-70",
        "mixed-95",
    ]
    assert {len(spec.plan.old) for spec in mixed} == {4}
    count = open_world_runs("count", [graph], ["count", "prism"], [0])
    given = [spec.plan.protocol for spec in count if spec.plan.method_name == "prism"]
    assert "count-100" not in given  # where nothing is new no number can be given
    assert [spec.plan.handed for spec in count if spec.plan.protocol == "count-0"] == [
        "all-new",
        "all-new",
    ]


def test_who_cannot_take_part_is_told_so(graph: nova.LabelledGraph) -> None:
    for bench_name, entrant, said in [
        ("pown", "nobody", "unknown entrant 'nobody' of pown; known: prism, told, "),
        ("pown", "silhouette", "silhouette counts classes, so it cannot take part in pown"),
        ("count", "gcd", "gcd does not count classes, so it cannot take part in count"),
        ("stages", "gcd", "gcd keeps labelled nodes in phase 2"),
        ("stages", "simgcd-labelled", "simgcd-labelled keeps labelled nodes in phase 2"),
    ]:
        with pytest.raises(SettingError, match=said):
            open_world_runs(bench_name, [graph], [entrant], [0])
    with pytest.raises(SettingError, match="POWN's graphs are"):
        open_world_runs("pown", [replace(graph, name="mine")], ["prism"], [0])


def test_an_unknown_protocol_and_too_few_classes_are_said() -> None:
    small = nova.synthetic(nodes=60, classes=2)
    with pytest.raises(SettingError, match="unknown protocol 'mixed-31'"):
        protocol_of("mixed-31").world(small, 0)
    with pytest.raises(SplitError, match="2 classes; counting needs at least 3"):
        protocol_of("count-50").world(small, 0)


def test_every_bench_has_entrants_tables_and_protocols() -> None:
    assert set(OPEN_WORLD) == {protocol.partition("-")[0] for protocol in PROTOCOLS}
    assert all(set(bench.entrants) <= set(ENTRANTS) for bench in OPEN_WORLD.values())
    assert set(OPEN_WORLD) <= set(TABLES)


# What a run leaves


def test_prism_finds_planted_classes_in_a_mixture(bench: Bench) -> None:
    entrants = ("prism", "told", "gcd", "all-new")
    half = bench("mixed", *entrants, keep=lambda spec: spec.plan.protocol == "mixed-50")
    prism, told, gcd, all_new = half
    assert (prism.method, prism.handed, told.handed, all_new.handed) == (
        "prism",
        "mixed",
        "told",
        "all-new",
    )
    assert gcd.method == "gcd"
    assert prism.score("all") > 90
    assert gcd.score("all") > 85
    assert all_new.sees == prism.sees
    assert all_new.confusion != prism.confusion
    assert "which_new" in told.sees
    assert "which_new" not in prism.sees
    assert {"old_nodes", "old_labels"} <= set(gcd.sees)
    assert prism.sizes == prism.predicted_sizes == (4, 3)


@pytest.mark.slow
def test_rivals_with_trained_encoders_say_what_they_were_given(bench: Bench) -> None:
    entrants = ("simgcd", "simgcd-labelled", "frost")
    rows = bench("mixed", *entrants, keep=lambda spec: spec.plan.protocol == "mixed-50")
    simgcd, labelled, frost = rows
    assert [(row.method, row.encoder, row.handed) for row in rows] == [
        ("simgcd", "gcn", "mixed"),
        ("simgcd_labelled", "gcn", "mixed"),
        ("frost", "gcn", "told"),
    ]
    assert simgcd.sees == ("graph", "new_ids")
    assert set(labelled.sees) == {"graph", "new_ids", "old_nodes", "old_labels"}
    assert "which_new" in frost.sees
    (table,) = TABLES["mixed"](rows)
    assert [(line.labels[0], line.given_labels) for line in table.lines] == [
        ("SimGCD, features drawn for labelled nodes", False),
        ("SimGCD with its labelled nodes", True),
        ("FRoST, given which nodes are new", True),
    ]
    assert min(row.score("all") or 0 for row in rows) > 50
    for row in rows:
        assert Row.from_json(json.loads(json.dumps(row.to_json()))) == row


def test_a_row_of_open_world_benches_survives_its_file(bench: Bench) -> None:
    for row in [*bench("pown", "gcd"), *bench("stages", "prism")]:
        document = json.loads(json.dumps(row.to_json()))
        assert Row.from_json(document) == row
        assert document["protocol"] == row.protocol
    with pytest.raises(StorageError, match="matrix of session 1 is not 3 × 3"):
        Row.from_json(document | {"sessions": [[[1]], *document["sessions"][1:]]})


def test_open_world_rows_are_in_no_table_of_the_paper(bench: Bench, tmp_path: Path) -> None:
    rows = bench("pown", "gcd")
    assert in_setting(rows) == []
    for name in set(TABLES) - set(OPEN_WORLD):
        assert not any(table.lines for table in TABLES[name](rows))


def test_a_row_without_protocol_says_nothing_of_open_world_benches(bench: Bench) -> None:
    row = replace(bench("pown", "gcd")[0], protocol="", handed="", key="k")
    assert not {"protocol", "handed", "sessions", "measured"} & set(row.to_json())


def test_the_same_run_gives_the_same_row(graph: nova.LabelledGraph, bench: Bench) -> None:
    spec = open_world_runs("mixed", [graph], ["gcd"], [0])[0]
    again = run_one(graph, spec.plan, spec.seed).row
    assert again.confusion == bench("mixed", "gcd")[0].confusion


def test_pown_asks_nothing_about_the_fold_aside(graph: nova.LabelledGraph, bench: Bench) -> None:
    row = bench("pown", "gcd")[0]
    assert row.sizes == (2, 2)  # known; to be found: 5, 3
    assert row.predicted_sizes == (2, 5)
    asked = graph.test & np.isin(graph.y, [0, 2, 5, 3])
    assert sum(map(sum, row.confusion)) == int(asked.sum()) == row.nodes.test


def test_counting_says_what_it_counted_and_what_is_true(bench: Bench) -> None:
    rows = {
        (row.method, row.protocol): row
        for row in bench(
            "count",
            "silhouette",
            "prism",
            keep=lambda spec: spec.plan.protocol in ("count-50", "count-100"),
        )
    }
    given = rows["prism", "count-50"]
    assert given.measured["counted"] == given.measured["true"] == given.num_new >= 1
    none = rows["silhouette", "count-100"]
    assert none.measured["true"] == none.num_new == 0
    assert none.predicted_sizes[1:] == (int(none.measured["counted"]),)
    assert 0 < rows["silhouette", "count-50"].measured["nmi_all"] <= 100
    _, worth, _ = TABLES["count"](list(rows.values()))
    half = [line.labels[0] for line in worth.lines if line.group.startswith("50%")]
    assert sorted(half) == ["number given", "silhouette"]


def test_prisms_count_names_likely_numbers_and_they_are_judged(bench: Bench) -> None:
    (row,) = bench("count", "count", keep=lambda spec: spec.plan.protocol == "count-50")
    assert row.measured["holds"] in (0.0, 100.0)
    assert row.measured["likely"] >= 1
    assert abs(row.measured["counted"] - row.measured["true"]) <= 2


def test_gnnsafe_measures_what_no_matrix_says(bench: Bench) -> None:
    after, before = bench("gnnsafe")
    assert (after.method, before.method) == ("prism", "phase_1")
    for row in (after, before):
        assert row.measured["auroc"] > 80
        assert set(row.measured) == {"auroc", "aupr", "fpr95", "brier", "ece"}
    assert after.score("old_n") > 90
    assert before.predicted_sizes[0] == 3
    assert np.array(before.confusion)[:, 3:].sum() == 0  # phase 1 alone knows no other class
    cells = [MEASURES["gnnsafe"]["accuracy"].read(row) for row in (after, before)]
    assert cells == [after.score("old_n"), before.score("old")]


def test_phase_1_alone_takes_part_where_nothing_needs_to_be_found(
    graph: nova.LabelledGraph, bench: Bench
) -> None:
    (row,) = bench("closed")
    assert row.sizes == (7, 0)
    assert row.score("old") > 85
    assert set(row.measured) == {"brier", "ece"}
    with pytest.raises(SettingError, match="it takes part in gnnsafe and closed alone"):
        open_world_runs("pown", [graph], ["phase-1"], [0])
    with pytest.raises(SettingError, match="closed has no new class"):
        open_world_runs("closed", [graph], ["prism"], [0])


def test_an_unknown_class_is_one_class_in_cfc_and_hope() -> None:
    row = Row(
        dataset="cora", method="prism", encoder="prism", seed=0, num_old=2, num_new=3,
        sizes=(2, 2), predicted_sizes=(2, 3), protocol="cfc",
        confusion=((8, 1, 0, 1, 0), (2, 6, 1, 0, 1), (1, 0, 4, 3, 2), (0, 2, 0, 1, 7)),
    )  # fmt: skip
    scores = {name: measure.read(row) for name, measure in MEASURES["cfc"].items()}
    assert scores["closed"] == pytest.approx(100 * 14 / 20)
    assert scores["open"] == pytest.approx(100 * 17 / 20)
    assert scores["overall"] == pytest.approx(100 * 31 / 40)
    assert MEASURES["hope"]["accuracy"].read(row) == scores["overall"]
    assert scores["brier"] is None  # not stored in this row


def test_every_run_of_prism_stores_its_calibration(bench: Bench) -> None:
    rows = [
        *bench("pown", "prism"),
        *bench("stages", "prism"),
        *bench("cfc"),
        *bench("hope"),
        *bench("clusters"),
    ]
    for row in rows:
        assert 0 <= row.measured["brier"] < 60
        assert 0 <= row.measured["ece"] < 30
        calibration = [MEASURES[row.protocol][name].read(row) for name in ("brier", "ece")]
        assert calibration == [row.measured["brier"], row.measured["ece"]]
    assert "brier" not in bench("pown", "gcd")[0].measured  # it gives classes alone


# Many stages


def test_every_session_is_graded_on_the_classes_met_so_far(bench: Bench) -> None:
    row = bench("stages", "prism")[0]
    assert [(len(c), len(c[0])) for c in row.sessions] == [(3, 3), (5, 5), (7, 7)]
    assert row.sessions[-1] == row.confusion
    counts = np.array(row.sessions[1])
    best = max(
        sum(counts[i, i] for i in range(3)) + counts[3, first] + counts[4, second]
        for first, second in itertools.permutations((3, 4))
    )
    assert session_score(1, "all")(row) == pytest.approx(100 * best / counts.sum())
    assert session_score(1, "old")(row) == pytest.approx(
        100 * np.trace(counts[:3, :3]) / counts[:3].sum()
    )
    assert session_score(3, "all")(row) is None


def test_what_is_kept_is_the_last_accuracy_on_labelled_classes_over_the_first(bench: Bench) -> None:
    row = bench("stages", "prism")[0]
    first, last = np.array(row.sessions[0]), np.array(row.sessions[-1])[:3]
    share = (np.trace(last[:, :3]) / last.sum()) / (np.trace(first) / first.sum())
    assert kept_accuracy(row) == pytest.approx(100 * share)
    everything = [session_score(session, "all")(row) for session in (1, 2)]
    assert MEASURES["stages"]["mean_all"].read(row) == pytest.approx(np.mean(everything))


# Grading by POWN's rules


def test_pown_is_graded_as_its_text_says() -> None:
    rng = np.random.default_rng(3)
    confusion = rng.integers(0, 9, size=(4, 5))  # two known, two unknown; five outputs
    row = Row(
        dataset="cora", method="prism", encoder="prism", seed=0, num_old=2, num_new=3,
        sizes=(2, 2), predicted_sizes=(2, 3), confusion=counts_of(confusion), protocol="pown",
    )  # fmt: skip
    nodes = [(t, o) for t in range(4) for o in range(5) for _ in range(confusion[t, o])]
    one_to_one = list(
        itertools.permutations(range(5), 4)
    )  # the output that stands for each true class
    everything = max(sum(said[t] == o for t, o in nodes) for said in one_to_one)
    unknown = [(t, o) for t, o in nodes if t >= 2]
    alone = max(sum(said[t] == o for t, o in unknown) for said in one_to_one)
    known = [t == o for t, o in nodes if t < 2]
    scores = {name: measure.read(row) for name, measure in MEASURES["pown"].items()}
    assert scores["all"] == pytest.approx(100 * everything / len(nodes))
    assert scores["known"] == pytest.approx(100 * np.mean(known))
    assert scores["unknown"] == pytest.approx(100 * alone / len(unknown))
    assert scores["h"] == pytest.approx(2 / (1 / scores["known"] + 1 / scores["unknown"]))


# Tables


def test_published_numbers_have_a_source_and_stand_under_their_own_block(bench: Bench) -> None:
    (table,) = TABLES["pown"](bench("pown", "gcd"))
    published = {line.labels[0]: line for line in table.lines if line.group == "published"}
    assert set(published) == {
        "POWN",
        "OpenWGL + clustering",
        "GCN",
    }  # one line has no number for this graph
    place = [(c.group, c.score) for c in table.columns].index(("cora", "unknown"))
    cell = published["POWN"].cells[place]
    assert cell.mean == OPEN_WORLD_FACTS["pown"]["lines"][0][3] == 63.29
    assert table.notes[cell.notes[0] - 1] == published_source("pown")


def test_a_line_is_the_mean_over_folds_and_seeds(bench: Bench) -> None:
    rows = bench("pown", "gcd")
    (table,) = TABLES["pown"](rows)
    line = next(line for line in table.lines if line.group == "measured here")
    means = [MEASURES["pown"]["all"].read(row) for row in rows]
    assert line.cells[0].n == 3
    assert line.cells[0].mean == pytest.approx(np.mean(means))
    assert line.cells[0].std == pytest.approx(np.std(means, ddof=1))
    assert line.given_labels


def test_rivals_are_tested_against_prism_on_the_same_runs(bench: Bench) -> None:
    rows = bench("pown", "gcd")
    wide = [
        replace(row, seed=seed, key=f"{row.class_split}/{seed}") for row in rows for seed in (0, 1)
    ]
    prism = [replace(row, method="prism", key=f"p{row.key}") for row in wide]
    worse = []
    for i, row in enumerate(wide):  # so many nodes of the first class less are right
        first, *others = row.confusion
        moved = (first[0] - 5 - i, first[1] + 5 + i, *first[2:])
        worse.append(replace(row, confusion=(moved, *others)))
    (table,) = TABLES["pown"]([*worse, *prism])
    gcd = next(line for line in table.lines if line.labels[0].startswith("GCD"))
    assert gcd.cells[0].tests is not None
    assert gcd.cells[0].tests.pairs == 6
    assert gcd.cells[0].tests.sign in ("▼", "▽")


def test_a_failed_run_is_in_no_mean_and_in_the_notes(bench: Bench) -> None:
    good, bad, _ = bench("pown", "gcd")
    bad = replace(bad, status="failed", error="RuntimeError: no luck today", confusion=())
    (table,) = TABLES["pown"]([good, bad])
    assert table.lines[0].cells[0].n == 1
    assert table.lines[0].cells[0].failed == 1
    assert any("no luck today" in note for note in table.notes)


def test_counts_are_judged_by_hand(bench: Bench) -> None:
    (row,) = bench("count", "silhouette", keep=lambda spec: spec.plan.protocol == "count-50")
    pairs = [(3, 3), (2, 3), (6, 3)]
    rows = [
        replace(
            row,
            seed=i,
            class_split=i,
            key=str(i),
            measured=row.measured | {"counted": float(c), "true": float(t)},
        )
        for i, (c, t) in enumerate(pairs)
    ]
    off, _, alarm = TABLES["count"](rows)
    cells = {
        column.score: cell.mean
        for column, cell in zip(off.columns, off.lines[0].cells, strict=True)
    }
    assert cells["exact"] == pytest.approx(100 / 3)
    assert cells["within"] == pytest.approx(200 / 3)
    assert cells["error"] == pytest.approx(4 / 3)
    assert cells["bias"] == pytest.approx(2 / 3)
    assert alarm.lines[0].cells[0].mean == 100


def test_calibration_where_no_new_class_is_counted(
    graph: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrismCount, "count_classes", lambda rule, model, task: Counted(0))
    (spec,) = open_world_runs("clusters", [graph], ["count"], [0])
    row = run_one(graph, spec.plan, spec.seed).row
    o = row.sizes[0]
    assert row.measured["counted"] == 0
    assert not np.array(row.confusion)[:, o:].any()
    new = 100 * np.array(row.confusion)[o:].sum() / np.array(row.confusion).sum()
    assert row.measured["brier"] > new  # a node without a column for its class counts 1 at least


def test_dgclusters_clusters_are_an_error_of_all_classes(bench: Bench) -> None:
    (worth,) = TABLES["clusters"](bench("clusters"))
    line = next(line for line in worth.lines if line.labels == ("DGCluster",))
    cells = {
        column.score: cell.mean for column, cell in zip(worth.columns, line.cells, strict=True)
    }
    assert (cells["nmi_all"], cells["error"]) == (62.1, pytest.approx(11.8))


def test_every_bench_is_written_and_in_the_page(bench: Bench, tmp_path: Path) -> None:
    rows = [
        *bench("pown", "gcd"),
        *bench("openima", "gcd"),
        *bench("gnnsafe"),
        *bench("cfc"),
        *bench("hope"),
        *bench("closed"),
        *bench("clusters"),
        *bench("stages", "prism"),
        *bench("mixed", "gcd"),
        *bench("count", "silhouette", keep=lambda spec: spec.plan.protocol == "count-50"),
    ]
    for name in OPEN_WORLD:
        paths = write_outputs(name, rows, tmp_path)
        assert [path.suffix for path in paths] == [".md", ".tex", ".csv"]
        assert len(to_csv(TABLES[name](rows)).splitlines()) > 1
        assert "No runs" not in paths[0].read_text()
    page = write_page(rows, tmp_path).read_text()
    for name in OPEN_WORLD:
        assert f'<section id="{name}">' in page
    for title in ("POWN&#39;s protocol", "Many stages: Cora", "How many new classes", "GNNSafe"):
        assert title in page


def test_standings_are_above_level_or_below_and_goals_are_reached_or_missed(bench: Bench) -> None:
    rows = [*bench("pown", "prism", "gcd"), *bench("gnnsafe")]
    made = standings(rows)
    assert [(line.labels[0], line.labels[3]) for line in made.lines] == [
        ("POWN's protocol", "all"),
        ("POWN's protocol", "H"),
        ("Old or new", "AUROC"),
        ("Old or new", "AUROC"),
    ]
    line = made.lines[0]  # GCD's line is not ours
    mean = np.mean([MEASURES["pown"]["all"].read(row) for row in bench("pown", "prism")])
    assert line.cells[0].mean == pytest.approx(mean)
    assert [cell.mean for cell in line.cells[1:]] == [64.10, 70.67, 73]
    assert line.labels[4:6] == ("above OpenWGL + clustering", "above")
    # No H is published: it is that of known and unknown, and that of their GCN is the best.
    assert made.lines[1].cells[1].mean == pytest.approx(2 * 95.19 * 62.16 / (95.19 + 62.16))
    assert "POWN's protocol, Prism, all: above the best published on 1 of 1" in to_markdown([made])
    assert standing(Cell(60.0, 3.0, 9), 61.9) == "level with"
    assert standing(Cell(60.0, 3.0, 9), 62.1) == "below"
    assert standing(Cell(60.0), 59.9) == "above"  # one run has no error
    assert goal_text(Cell(72.96), 73) == "reached"
    assert goal_text(Cell(71.0), 73) == "missed by 2.0"
    assert "Where we stand" in to_markdown([made])


def test_own_ids_count_where_one_matching_over_all_outputs_forgives_a_swap(bench: Bench) -> None:
    (row,) = bench("openima", "prism")
    n = sum(row.sizes)
    swapped = np.diag(np.full(n, 10))
    swapped[[0, n - 1]] = swapped[[n - 1, 0]]  # a known class found as a new one, and back
    exchanged = replace(row, confusion=counts_of(swapped))
    shown = {name: MEASURES["openima"][name].read(exchanged) for name in ("all", "own", "side")}
    kept = pytest.approx(100 * (n - 2) / n)
    assert shown == {"all": 100, "own": kept, "side": kept}


def test_markdown_of_a_protocol_has_a_table_for_each_graph(bench: Bench) -> None:
    rows = bench("pown", "prism")
    gcd = [replace(row, dataset="citeseer") for row in bench("pown", "gcd")]
    cora, citeseer = to_markdown(TABLES["pown"]([*rows, *gcd])).split("### ")[1:]
    assert cora.startswith("Cora\n\n**measured here**\n\n| Method | all | known |")
    assert citeseer.startswith("CiteSeer\n")
    assert "| Prism |" in cora
    assert "| Prism |" not in citeseer  # it has no run there
    assert "semi-supervised" not in cora
    assert "| POWN | 61.3¹ |" in cora
    assert "| POWN | 56.1¹ |" in citeseer


def test_published_facts_are_complete() -> None:
    for name, facts in OPEN_WORLD_FACTS.items():
        assert name in OPEN_WORLD
        assert len(facts["source"]) > 40
        for line in facts["lines"]:
            assert len(line) == 1 + len(facts["scores"]) * len(facts["datasets"])
    assert published_lines("mixed") == {}
    assert published_source("mixed") == ""


def test_inductive_runs_have_keys_rows_and_tables_of_their_own(graph: nova.LabelledGraph) -> None:
    rows, keys = [], []
    for setting in ("transductive", "inductive"):
        for bench, entrants in (("mixed", ["prism", "gcd"]), ("stages", ["prism"])):
            specs = open_world_runs(bench, [graph], entrants, [0], setting)[: len(entrants)]
            keys += [spec.key for spec in specs]
            rows += [
                replace(run_one(graph, spec.plan, spec.seed).row, key=spec.key) for spec in specs
            ]
    assert len(set(keys)) == len(keys) == 6
    assert [row.visibility for row in rows] == ["transductive"] * 3 + ["inductive"] * 3
    assert [row.measured.get("refreshes", 0) > 0 for row in rows] == [False] * 3 + [
        True,
        False,
        True,
    ]
    assert all((row.score("all") or 0) > 80 for row in rows)
    for bench in ("mixed", "stages"):
        plain, hidden = TABLES[bench](rows)
        assert "inductive" in hidden.title
        assert "inductive" not in plain.title
        assert any(sentence.startswith("Inductive: ") for sentence in hidden.caption)
        assert len(plain.lines) == len(hidden.lines)
    with pytest.raises(SettingError, match="openima shows every phase the whole graph"):
        open_world_runs("openima", [graph], ["prism"], [0], "inductive")


def test_rivals_know_labelled_nodes_by_their_numbers_in_the_grown_graph(
    graph: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spec,) = open_world_runs("mixed", [graph], ["gcd"], [0], "inductive")[:1]
    given = []
    assign = type(spec.plan.method).assign  # type: ignore[union-attr]

    def spy(self: object, model: nova.Model, old: nova.OldTask, task: nova.NewTask) -> np.ndarray:
        given.append((old, task))
        return assign(self, model, old, task)

    monkeypatch.setattr(type(spec.plan.method), "assign", spy)
    run_one(graph, spec.plan, spec.seed)
    ((old, task),) = given
    assert old.graph is task.graph
    world = spec.plan.world_protocol.world(graph, 0)
    names = world.old.graph.node_ids[world.old.train_ids]
    assert np.array_equal(task.graph.node_ids[old.train_ids], names)
