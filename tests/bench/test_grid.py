"""Tables as lists of runs."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.bench import grid
from nodenova.bench.contenders import CONTENDERS, contender
from nodenova.bench.grid import ABLATION, LAYERS, SENSITIVITY, TABLES, Cell, Choice, cells_of
from nodenova.bench.plan import Plan
from nodenova.bench.schedules import changed, scheduled
from nodenova.errors import SettingError


@pytest.fixture(scope="module")
def choice() -> Choice:
    graph = replace(nova.synthetic(nodes=60, classes=5, words=40), name="tiny")
    return Choice([(graph, 3)], ["gcn", "gat", "sage"], [kind() for kind in CONTENDERS.values()], [0, 1])


def test_comparison_has_every_method_on_every_encoder_once_a_seed(choice: Choice) -> None:
    cells = cells_of("comparison", choice)
    count = Counter((cell.plan.method_name, cell.plan.encoder) for cell in cells if not changed(cell.plan))
    trained = [name for name in CONTENDERS if name not in ("prism", "taught")]
    expected = {(method, encoder) for method in trained for encoder in choice.encoders}
    assert count == dict.fromkeys(expected | {("prism", "prism"), ("taught", "prism")}, 2)
    others = {(cell.plan.method_name, changed(cell.plan)["joint"]) for cell in cells if changed(cell.plan)}
    with_two_heads = ("autonovel", "ncl", "dtc", "frozen_kmeans", "ncl_ncd", "dtc_ncd")
    assert others == {("restune", "concatenated")} | {(name, "strict") for name in with_two_heads}


def test_the_ablation_is_the_papers_eight_rows_by_zero_weights(choice: Choice) -> None:
    cells = cells_of("ablation", replace(choice, encoders=["gcn"], seeds=[0]))
    assert len(cells) == len(ABLATION) == 8
    assert {tuple(sorted(changed(cell.plan))) for cell in cells} == {tuple(sorted(zero)) for zero in ABLATION}
    assert all(value == 0.0 for cell in cells for value in changed(cell.plan).values())


def test_sensitivity_moves_one_setting_at_a_time_and_shares_the_default(choice: Choice) -> None:
    cells = cells_of("sensitivity", replace(choice, encoders=["gcn"], seeds=[0]))
    values = sum(len(values) for values in SENSITIVITY.values())
    assert len(cells) == values - len(SENSITIVITY) + 1  # the default is on each curve and is run once
    default = cells_of("ablation", replace(choice, encoders=["gcn"], seeds=[0]))[0]
    assert default.key in {cell.key for cell in cells}


def test_every_curve_of_the_sensitivity_passes_through_the_default() -> None:
    assert all(getattr(nova.Sword(), name) in values for name, values in SENSITIVITY.items())


def test_layers_goes_to_64_and_shares_two_layers_with_the_comparison(choice: Choice) -> None:
    cells = cells_of("layers", replace(choice, seeds=[0]))
    assert len(cells) == len(LAYERS) * 3
    assert {dict(cell.plan.fit_settings).get("layers", 2) for cell in cells} == set(LAYERS)
    shared = {cell.key for cell in cells} & {cell.key for cell in cells_of("comparison", choice)}
    assert len(shared) == 3


def test_class_splits_draw_the_old_classes_and_say_which(choice: Choice) -> None:
    cells = cells_of("class-splits", replace(choice, methods=[nova.Prism()], seeds=list(range(6))))
    assert len({cell.plan.old for cell in cells}) > 1
    assert all(len(cell.plan.old) == 3 and cell.plan.class_split == cell.seed for cell in cells)
    assert Counter(cell.plan.draw for cell in cells) == {"balanced": 6, "as-it-comes": 6}


def test_all_is_every_table_with_no_run_twice(choice: Choice) -> None:
    small = replace(choice, methods=[nova.Sword(), nova.Prism()], seeds=[0])
    keys = [cell.key for cell in cells_of("all", small)]
    assert len(keys) == len(set(keys))
    assert set(keys) == {cell.key for name in TABLES for cell in cells_of(name, small)}


def test_cells_of_one_seed_stand_together_so_that_phase_1_is_shared(choice: Choice) -> None:
    groups = [cell.phase_1 for cell in cells_of("heads", choice)]
    changes = sum(a != b for a, b in itertools.pairwise(groups))
    assert changes == len(set(groups)) - 1


def test_a_key_is_about_resolved_settings_and_data(choice: Choice, tmp_path: Path) -> None:
    plan = Plan("tiny", nova.Sword(), "gcn", (0, 1, 2), 2)
    same = Cell(replace(plan, method=contender("sword", {"eta": "0.20"})), 0, "x")
    assert same.key == Cell(plan, 0, "x").key
    others = [
        Cell(plan, 1, "x"),
        Cell(plan, 0, "y"),
        Cell(plan, 0, "x", keep_map=True),
        Cell(replace(plan, method=nova.Sword(eta=0.3)), 0, "x"),
        Cell(replace(plan, fit_settings=(("layers", 4),)), 0, "x"),
        Cell(replace(plan, old=(0, 1, 3)), 0, "x"),
    ]
    assert len({cell.key for cell in [same, *others]}) == 7


def test_a_key_knows_phase_1_as_it_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan("tiny", nova.Dtc(), "gcn", (0, 1, 2), 2)
    plain = Cell(plan, 0, "x").key
    assert Cell(replace(plan, fit_settings=(("head", "linear"), ("epochs", 200))), 0, "x").key == plain
    assert Cell(replace(plan, fit_settings=(("head", "cosine"),)), 0, "x").key != plain
    computed = Cell(replace(plan, method=nova.Prism(), encoder="prism"), 0, "x").key
    monkeypatch.setitem(grid.TRAINING, "head", "cosine")  # a later version may begin otherwise
    assert Cell(plan, 0, "x").key != plain
    assert Cell(replace(plan, method=nova.Prism(), encoder="prism"), 0, "x").key == computed  # nothing is trained


def test_a_method_of_ones_own_that_was_changed_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    code = "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    def discover(self, model, task): ...\n"
    file.write_text(code)

    def key() -> str:
        return Cell(Plan("tiny", contender(f"{file}:Mine", {}), "gcn", (0, 1, 2), 2), 0, "x").key

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
    """Pinned: computed when plans held settings as text. A row file goes on only where its keys are found again."""
    (tmp_path / "mine.py").write_text(MINE)
    mine = contender(f"{tmp_path / 'mine.py'}:Mine", {"starts": "7"})
    released = scheduled(CONTENDERS["sword_as_released"](), "cora", "gat", "released")
    plans = {
        "28a1c3280ee16fae": Cell(
            Plan("tiny", contender("sword", {"eta": "0.5"}), "gcn", (0, 1, 2), 2, (("layers", 4),)), 0, "x"
        ),
        "cf992c128c33ba80": Cell(
            Plan("cora", released, "gat", (0, 1, 2, 3), 3, (("schedule", "released"),), visibility="induced"),
            7,
            "d4e5",
            True,
        ),
        "116a3fcd42277cf4": Cell(
            Plan("wordnet", nova.Prism(), "prism", (0, 2, 5), 4, class_split=3, draw="balanced"), 3, "abc"
        ),
        "05dc09cff377d230": Cell(Plan("tiny", mine, "gcn", (0, 1, 2), 2), 0, "x"),
    }
    assert {key: cell.key for key, cell in plans.items()} == {key: key for key in plans}


def test_a_plan_holds_a_method_and_not_its_name() -> None:
    with pytest.raises(SettingError, match="the method of a plan is a value, not a name: 'sword'"):
        Plan("tiny", "sword", "gcn", (0, 1, 2), 2)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="unknown draw 'even'; known: as-it-comes, balanced, published"):
        Plan("tiny", nova.Sword(), "gcn", (0, 1, 2), 2, draw="even")
