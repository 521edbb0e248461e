"""Tables as lists of runs."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.bench import plan as plan_module
from nodenova.bench.plan import Plan, RunSpec, apply_schedule
from nodenova.bench.registry import ALL_METHODS, NCD, get_method, name_of
from nodenova.bench.runs import ABLATION, LAYERS, SENSITIVITY, TABLES, BenchConfig, runs_of
from nodenova.errors import SettingError
from nodenova.methods.registry import preferred_encoder


@pytest.fixture(scope="module")
def choice() -> BenchConfig:
    graph = replace(nova.synthetic(nodes=60, classes=5, words=40), name="tiny")
    return BenchConfig(
        [(graph, 3)], ["gcn", "gat", "sage"], [kind() for kind in ALL_METHODS.values()], [0, 1]
    )


def test_comparison_has_every_method_on_every_encoder_once_a_seed(choice: BenchConfig) -> None:
    cells = runs_of("comparison", choice)
    count = Counter(
        (cell.plan.method_name, cell.plan.encoder) for cell in cells if not cell.plan.changed
    )
    computed = {name for name, kind in ALL_METHODS.items() if preferred_encoder(kind) == "prism"}
    trained = {
        (name, encoder)
        for name in set(ALL_METHODS) - computed - set(NCD)
        for encoder in choice.encoders
    }
    assert computed >= {"prism", "distilled_gnn"}
    assert count == dict.fromkeys(trained | {(name, "prism") for name in computed}, 2)
    others = {
        (cell.plan.method_name, cell.plan.changed["new_rows"])
        for cell in cells
        if cell.plan.changed
    }
    other = {"concatenated": "untrained", "untrained": "concatenated"}
    two_heads = [m for m in choice.methods if hasattr(m, "new_rows") and name_of(m) not in NCD]
    assert others == {(name_of(m), other[m.new_rows]) for m in two_heads}
    assert others >= {("restune", "concatenated"), ("autonovel", "untrained")}


def test_only_the_table_that_shows_methods_of_ncd_runs_them(choice: BenchConfig) -> None:
    for table in TABLES:
        run = {cell.plan.method_name for cell in runs_of(table, replace(choice, seeds=[0]))}
        assert run & set(NCD) == (set(NCD) if table == "settings" else set()), table


def test_a_method_that_a_table_does_not_show_is_refused_there(choice: BenchConfig) -> None:
    alone = replace(choice, methods=[ALL_METHODS["dtc_ncd"]()], seeds=[0])
    refused = "the table comparison does not show dtc_ncd; the table settings does"
    with pytest.raises(SettingError, match=refused):
        runs_of("comparison", alone)
    assert {cell.plan.method_name for cell in runs_of("settings", alone)} == {"dtc_ncd"}


def test_the_ablation_is_the_papers_eight_rows_by_zero_weights(choice: BenchConfig) -> None:
    cells = runs_of("ablation", replace(choice, encoders=["gcn"], seeds=[0]))
    assert len(cells) == len(ABLATION) == 8
    assert {tuple(sorted(cell.plan.changed)) for cell in cells} == {
        tuple(sorted(zero)) for zero in ABLATION
    }
    assert all(value == 0.0 for cell in cells for value in cell.plan.changed.values())


def test_sensitivity_moves_one_setting_at_a_time_and_shares_the_default(
    choice: BenchConfig,
) -> None:
    cells = runs_of("sensitivity", replace(choice, encoders=["gcn"], seeds=[0]))
    values = sum(len(values) for values in SENSITIVITY.values())
    assert (
        len(cells) == values - len(SENSITIVITY) + 1
    )  # the default is on each curve and is run once
    default = runs_of("ablation", replace(choice, encoders=["gcn"], seeds=[0]))[0]
    assert default.key in {cell.key for cell in cells}


def test_every_curve_of_the_sensitivity_passes_through_the_default() -> None:
    assert all(getattr(nova.Sword(), name) in values for name, values in SENSITIVITY.items())


def test_layers_goes_to_64_and_shares_two_layers_with_the_comparison(choice: BenchConfig) -> None:
    cells = runs_of("layers", replace(choice, seeds=[0]))
    assert len(cells) == len(LAYERS) * 3
    assert {dict(cell.plan.fit_settings).get("layers", 2) for cell in cells} == set(LAYERS)
    shared = {cell.key for cell in cells} & {cell.key for cell in runs_of("comparison", choice)}
    assert len(shared) == 3


def test_class_splits_draw_the_old_classes_and_say_which(choice: BenchConfig) -> None:
    cells = runs_of("class-splits", replace(choice, methods=[nova.Prism()], seeds=list(range(6))))
    assert len({cell.plan.old for cell in cells}) > 1
    assert all(len(cell.plan.old) == 3 and cell.plan.class_split == cell.seed for cell in cells)
    assert Counter(cell.plan.draw for cell in cells) == {"balanced": 6, "as-it-comes": 6}


def test_all_is_every_table_with_no_run_twice(choice: BenchConfig) -> None:
    small = replace(choice, methods=[nova.Sword(), nova.Prism()], seeds=[0])
    keys = [cell.key for cell in runs_of("all", small)]
    assert len(keys) == len(set(keys))
    assert set(keys) == {cell.key for name in TABLES for cell in runs_of(name, small)}


def test_cells_of_one_seed_stand_together_so_that_phase_1_is_shared(choice: BenchConfig) -> None:
    groups = [cell.phase_1 for cell in runs_of("heads", choice)]
    changes = sum(a != b for a, b in itertools.pairwise(groups))
    assert changes == len(set(groups)) - 1


def test_a_key_is_about_resolved_settings_and_data(choice: BenchConfig, tmp_path: Path) -> None:
    plan = Plan("tiny", nova.Sword(), "gcn", (0, 1, 2), 2)
    same = RunSpec(replace(plan, method=get_method("sword", {"eta": "0.20"})), 0, "x")
    assert same.key == RunSpec(plan, 0, "x").key
    others = [
        RunSpec(plan, 1, "x"),
        RunSpec(plan, 0, "y"),
        RunSpec(plan, 0, "x", keep_map=True),
        RunSpec(replace(plan, method=nova.Sword(eta=0.3)), 0, "x"),
        RunSpec(replace(plan, fit_settings=(("layers", 4),)), 0, "x"),
        RunSpec(replace(plan, old=(0, 1, 3)), 0, "x"),
    ]
    assert len({cell.key for cell in [same, *others]}) == 7


def test_a_key_knows_phase_1_as_it_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan("tiny", nova.DTC(), "gcn", (0, 1, 2), 2)
    plain = RunSpec(plan, 0, "x").key
    assert (
        RunSpec(replace(plan, fit_settings=(("head", "linear"), ("epochs", 200))), 0, "x").key
        == plain
    )
    assert RunSpec(replace(plan, fit_settings=(("head", "cosine"),)), 0, "x").key != plain
    computed = RunSpec(replace(plan, method=nova.Prism(), encoder="prism"), 0, "x").key
    monkeypatch.setitem(plan_module.TRAINING, "head", "cosine")  # a later default
    assert RunSpec(plan, 0, "x").key != plain
    assert (
        RunSpec(replace(plan, method=nova.Prism(), encoder="prism"), 0, "x").key == computed
    )  # nothing is trained


def test_a_method_of_ones_own_that_was_changed_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    code = MINE
    file.write_text(code)

    def key() -> str:
        plan = Plan("tiny", get_method(f"{file}:Mine", {}), "gcn", (0, 1, 2), 2)
        return RunSpec(plan, 0, "x").key

    before = key()
    assert before == key()
    file.write_text(code + "# better\n")
    assert before != key()


MINE = """from dataclasses import dataclass


@dataclass(frozen=True)
class Mine:
    starts: int = 3

    def discover(self, model, task): ...
"""


def test_keys_are_those_of_rows_that_were_written_before(tmp_path: Path) -> None:
    """Pinned: computed when plans held settings as text.

    A row file goes on only where its keys are found again.
    """
    (tmp_path / "mine.py").write_text(MINE)
    mine = get_method(f"{tmp_path / 'mine.py'}:Mine", {"starts": "7"})
    released = apply_schedule(ALL_METHODS["sword_as_released"](), "cora", "gat", "released")
    plans = {
        "28a1c3280ee16fae": RunSpec(
            Plan(
                "tiny", get_method("sword", {"eta": "0.5"}), "gcn", (0, 1, 2), 2, (("layers", 4),)
            ),
            0,
            "x",
        ),
        "cf992c128c33ba80": RunSpec(
            Plan(
                "cora",
                released,
                "gat",
                (0, 1, 2, 3),
                3,
                (("schedule", "released"),),
                visibility="inductive",
            ),
            7,
            "d4e5",
            True,
        ),
        "116a3fcd42277cf4": RunSpec(
            Plan("wordnet", nova.Prism(), "prism", (0, 2, 5), 4, class_split=3, draw="balanced"),
            3,
            "abc",
        ),
        "05dc09cff377d230": RunSpec(Plan("tiny", mine, "gcn", (0, 1, 2), 2), 0, "x"),
    }
    assert {key: cell.key for key, cell in plans.items()} == {key: key for key in plans}


def test_a_setting_that_is_younger_than_rows_counts_where_it_is_changed() -> None:
    def key(prism: nova.Prism) -> str:
        return RunSpec(Plan("wordnet", prism, "prism", (0, 2, 5), 4), 3, "abc").key

    assert key(nova.Prism(weigh=False)) != key(nova.Prism(weigh=True)) == key(nova.Prism())


def test_a_key_knows_the_protocol_and_how_nodes_are_handed_over() -> None:
    plan = Plan("cora", nova.Prism(), "prism", (0, 1), 2)
    played = replace(plan, protocol="pown", handed="mixed")
    others = [replace(played, protocol="openima"), replace(played, handed="told")]
    assert len({RunSpec(each, 0, "x").key for each in (plan, played, *others)}) == 4
    assert RunSpec(played, 0, "x").phase_1 == RunSpec(others[1], 0, "x").phase_1
    assert RunSpec(played, 0, "x").phase_1 != RunSpec(others[0], 0, "x").phase_1


def test_a_plan_holds_a_method_and_not_its_name() -> None:
    with pytest.raises(SettingError, match="the method of a plan is a value, not a name: 'sword'"):
        Plan("tiny", "sword", "gcn", (0, 1, 2), 2)  # type: ignore[arg-type]
    with pytest.raises(
        SettingError, match="unknown draw 'even'; known: as-it-comes, balanced, published"
    ):
        Plan("tiny", nova.Sword(), "gcn", (0, 1, 2), 2, draw="even")
