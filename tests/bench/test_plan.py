"""How long and how large: the paper's text, and the released files by dataset and encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import nodenova as nova
from nodenova.bench import plan as plan_module
from nodenova.bench.plan import (
    RELEASED_EPOCHS,
    RELEASED_FIT,
    Plan,
    RunSpec,
    apply_schedule,
    hidden_size,
    schedule_for,
)
from nodenova.bench.registry import ALL_METHODS
from nodenova.bench.run import run_one
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.errors import SettingError
from nodenova.fitting import check_fit_settings

# (hidden, epochs of phase 1, epochs of phase 2) of the released configuration files;
# GraphSAGE goes by GCN's.
RELEASED = {
    ("cora", "gcn"): (16, 200, 530),
    ("cora", "gat"): (16, 200, 90),
    ("cora", "sage"): (16, 200, 530),
    ("citeseer", "gcn"): (32, 480, 600),
    ("citeseer", "gat"): (32, 30, 210),
    ("citeseer", "sage"): (32, 480, 600),
    ("pubmed", "gcn"): (32, 90, 200),
    ("pubmed", "gat"): (32, 90, 200),
    ("pubmed", "sage"): (32, 90, 200),
}


def plan(method: str = "sword", dataset: str = "cora", encoder: str = "gcn", **more: Any) -> Plan:
    return Plan(dataset, ALL_METHODS[method](), encoder, (0, 1), 2, **more)


def on_schedule(*more: tuple[str, Any]) -> tuple[tuple[str, Any], ...]:
    return (*more, ("schedule", "released"))


@pytest.mark.parametrize(
    ("place", "numbers"), RELEASED.items(), ids=lambda value: "-".join(map(str, value))
)
def test_the_released_schedule_by_dataset_and_encoder(
    place: tuple[str, str], numbers: tuple[int, int, int]
) -> None:
    dataset, encoder = place
    asked = plan("sword_as_released", dataset, encoder, fit_settings=on_schedule())
    hidden, first, second = numbers
    attention = (
        {"attention": "v2", "dropout": 0.6, "input_dropout": 0.6} if encoder == "gat" else {}
    )
    assert (
        asked.phase1_settings
        == {"hidden": hidden, "epochs": first, "early_stopping": False} | attention
    )
    assert apply_schedule(asked.method, dataset, encoder, "released") == ALL_METHODS[
        "sword_as_released"
    ](epochs=second)
    check_fit_settings(encoder, asked.phase1_settings)  # and `fit` takes them


def test_there_is_a_released_schedule_for_these_and_no_others() -> None:
    assert set(RELEASED_FIT) == set(RELEASED_EPOCHS) == set(RELEASED)


def test_what_a_plan_names_itself_stands_over_its_schedule() -> None:
    asked = plan(fit_settings=on_schedule(("hidden", 64), ("epochs", 3)))
    assert asked.phase1_settings == {"hidden": 64, "epochs": 3, "early_stopping": False}
    own = nova.Sword(epochs=600, eta=1.0)
    assert apply_schedule(own, "cora", "gcn", "released", fixed=("epochs", "eta")) == own
    assert apply_schedule(own, "cora", "gcn", "released", fixed=("eta",)) == nova.Sword(
        epochs=530, eta=1.0
    )
    assert replace(asked, method=own).changed == {"epochs": 600, "eta": 1.0}
    assert replace(asked, method=nova.Sword(epochs=530)).changed == {}


def test_without_a_schedule_a_plan_is_what_it_says() -> None:
    asked = replace(plan(fit_settings=(("layers", 4),)), method=nova.Sword(eta=1.0))
    assert asked.phase1_settings == {"layers": 4}
    assert apply_schedule(asked.method, "cora", "gcn", "paper") == asked.method
    assert asked.changed == {"eta": 1.0}


def test_the_second_phase_of_other_methods_has_epochs_of_its_own() -> None:
    for method in ("dtc", "gem", "oracle"):
        assert (
            apply_schedule(ALL_METHODS[method](), "cora", "gcn", "released")
            == ALL_METHODS[method]()
        )
    for method in ("sword", "sword_as_released"):
        assert apply_schedule(ALL_METHODS[method](), "cora", "gcn", "released") == ALL_METHODS[
            method
        ](epochs=530)


def test_who_is_on_which_schedule() -> None:
    assert schedule_for("sword", "cora", "gcn") == "paper"
    assert schedule_for("sword", "cora", "gcn", "released") == "released"
    assert schedule_for("dtc", "pubmed", "gat", "released") == "released"
    assert (
        schedule_for("sword_as_released", "citeseer", "gat") == "released"
    )  # wherever there is one
    assert schedule_for("sword_as_released", "wikics", "gcn") == "paper"
    assert (
        schedule_for("prism", "cora", "prism", "released") == "paper"
    )  # it is computed: nothing takes epochs
    with pytest.raises(SettingError, match="unknown schedule 'mine'; known: paper, released"):
        schedule_for("sword", "cora", "gcn", "mine")
    sentence = (
        "there is no released schedule for wikics with gcn; there is one for cora, citeseer, pubmed"
    )
    with pytest.raises(SettingError, match=sentence):
        schedule_for("sword", "wikics", "gcn", "released")


def test_hidden_sizes_are_the_papers() -> None:
    assert [hidden_size(name) for name in ("cora", "citeseer", "pubmed", "wikics")] == [
        16,
        32,
        32,
        128,
    ]
    assert hidden_size("mine.npz") == hidden_size("synthetic:nodes=80") == 16


def choice(name: str, methods: list[str], **more: Any) -> BenchConfig:
    graph = replace(nova.synthetic(nodes=60, classes=5, words=40), name=name)
    return BenchConfig(
        [(graph, 3)], ["gcn"], [ALL_METHODS[method]() for method in methods], [0], **more
    )


def settings_of(cells: list[RunSpec]) -> dict[str, dict[str, Any]]:
    return {cell.plan.method_name: dict(cell.plan.fit_settings) for cell in cells}


@pytest.mark.parametrize(
    ("dataset", "named"),
    [
        ("cora", {}),
        ("citeseer", {"hidden": 32}),
        ("pubmed", {"hidden": 32}),
        ("wikics", {"hidden": 128}),
    ],
)
def test_a_bench_is_of_the_papers_hidden_size(dataset: str, named: dict[str, int]) -> None:
    """What `fit` has by default is not named: the same run has the same key whoever asks."""
    cells = runs_of("heads", choice(dataset, ["sword", "prism"]))
    assert settings_of(cells) == {"sword": named, "prism": {}}
    other = runs_of("heads", choice(dataset, ["sword", "prism"], hidden=64))
    assert settings_of(other) == {"sword": {"hidden": 64}, "prism": {}}
    assert {cell.key for cell in cells} & {cell.key for cell in other} == {
        cell.key for cell in cells if cell.plan.method_name == "prism"
    }
    assert settings_of(runs_of("heads", choice(dataset, ["sword"], hidden=16))) == {"sword": {}}


@pytest.mark.parametrize(("dataset", "usual"), [("cora", 16), ("citeseer", 32), ("pubmed", 32)])
@pytest.mark.parametrize("hidden", [None, 16, 32, 64])
def test_a_hidden_size_that_was_asked_for_stands_over_the_schedules(
    dataset: str, usual: int, hidden: int | None
) -> None:
    for method in ("sword", "sword_as_released"):
        [cell] = runs_of("heads", choice(dataset, [method], hidden=hidden, schedule="released"))
        assert cell.plan.phase1_settings["hidden"] == (hidden or usual)
        assert cell.plan.phase1_settings["early_stopping"] is False


def test_a_bench_on_the_released_schedule_is_of_other_runs() -> None:
    methods = ["sword", "dtc", "sword_as_released", "prism"]
    paper, released = (
        {
            cell.plan.method_name: cell
            for cell in runs_of("heads", choice("cora", methods, schedule=name))
        }
        for name in ("paper", "released")
    )
    on_it = {name: dict(cell.plan.fit_settings).get("schedule") for name, cell in paper.items()}
    assert on_it == {"sword": None, "dtc": None, "sword_as_released": "released", "prism": None}
    for name in ("sword", "dtc"):
        assert dict(released[name].plan.fit_settings)["schedule"] == "released"
        assert released[name].key != paper[name].key
        assert released[name].phase_1 != paper[name].phase_1
    for name in ("sword_as_released", "prism"):
        assert released[name].key == paper[name].key
    assert (
        released["sword"].phase_1 == released["dtc"].phase_1 == paper["sword_as_released"].phase_1
    )
    with pytest.raises(SettingError, match="no released schedule for wikics with gcn"):
        runs_of("heads", choice("wikics", ["sword"], schedule="released"))


def test_a_run_follows_its_schedule_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        plan_module.RELEASED_FIT,
        ("cora", "gcn"),
        {"hidden": 16, "epochs": 3, "early_stopping": False},
    )
    monkeypatch.setitem(plan_module.RELEASED_EPOCHS, ("cora", "gcn"), 2)
    graph = replace(nova.synthetic(nodes=60, classes=4, words=40), name="cora")
    [cell] = runs_of("heads", choice("cora", ["sword_as_released"]))
    outcome = run_one(graph, replace(cell.plan, old=(0, 1), num_new=2), 0)
    first, second = outcome.model.stages
    assert (len(first.history["ce"]), len(second.history["ce"])) == (3, 2)
    assert first.settings["early_stopping"] is False
    row = outcome.row
    assert row.fit_changed == {"schedule": "released"}
    assert (row.fit_settings["hidden"], row.settings["epochs"]) == (16, 2)
    assert row.changed == {}  # as its schedule has it
    other = replace(plan("sword", fit_settings=on_schedule()), method=nova.Sword(epochs=4))
    assert run_one(graph, other, 0).row.changed == {"epochs": 4}
