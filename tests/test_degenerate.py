"""Degenerate graphs: every method on every encoder gives a finite result or one sentence."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.errors import GraphError, NumericsError, SettingError
from nodenova.model.saving import write_model
from tests.degenerate import CASES, LARGE, NO_EDGES, Case, made, ordinary

FEW = {"epochs": 3, "warmup": 1, "update": 2, "restarts": 2}  # enough for every branch
TRAINED = ("gcn", "gat", "sage")
ENCODERS = ("prism", *TRAINED)
ON_PRISM = ("prism", "distilled_gnn")
ALL = (*nova.METHODS, *nova.LABELLED)
# What these cases end in; every other case has a result.
SENTENCES = {
    "more classes than nodes": "3 new classes need at least 3 unlabelled nodes, there are 2",
    "NaN": "x has 96 entries that are not finite numbers, first: node 0, feature 0 is nan",
    "infinite": "x has 96 entries that are not finite numbers, first: node 0, feature 0 is inf",
    "largest features": "x has 43 entries that are not finite numbers, first: node 0",
    "huge features": "entries beyond 1e+15, first: node 0, feature 0 is 1.6",
    "tiny features": "all entries of x are below 1e-15, the largest is 1.9",
    "denormal features": "all entries of x are below 1e-15, the largest is 1.9",
}
RESULTS = [name for name in CASES if name not in SENTENCES]


def quick(kind: Any) -> Any:
    known = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in FEW.items() if key in known})


@cache
def fitted(name: str, encoder: str) -> nova.Model:
    settings = {} if encoder == "prism" else {"hidden": 8, "heads": 2, "epochs": 3}
    return nova.fit(made(name).tasks()[0], encoder, **settings)


def check_outputs(model: nova.Model, graph: nova.Graph, loads: bool = True) -> None:
    """Every output is finite, every node has a class, and so it is after saving and loading."""
    z, p = model.embed_and_predict(graph)
    assert np.isfinite(z).all()
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert np.isin(model.predict(graph), [c.id for c in model.classes]).all()
    history = [value for values in model.stages[-1].history.values() for value in values]
    assert np.isfinite(history).all()
    model.check_numbers()
    if not loads:
        return
    with TemporaryDirectory() as folder:
        write_model(model, Path(folder))
        assert np.array_equal(nova.load_model(folder).predict_proba(graph), p)


def run_method(name: str, encoder: str, method: str) -> nova.Model:
    model, case = fitted(name, encoder), made(name)
    if method in nova.METHODS:
        return nova.discover(model, case.tasks()[1], quick(nova.METHODS[method]))
    task, labelled = case.labelled_task(), quick(nova.LABELLED[method])
    return nova.discover_supervised(model, task, labelled)


def methods_on(encoder: str) -> tuple[str, ...]:
    return ON_PRISM if encoder == "prism" else ALL


# Every case on every encoder, and every method on every encoder.
COVER = {
    (name, encoder, methods_on(encoder)[(i + j) % len(methods_on(encoder))])
    for i, name in enumerate(RESULTS)
    for j, encoder in enumerate(ENCODERS)
}
GRID = {(n, e, m) for n, e in product(RESULTS, ENCODERS) for m in methods_on(e)}


@pytest.mark.parametrize(("name", "encoder", "method"), sorted(COVER))
def test_a_degenerate_graph_has_a_finite_result(name: str, encoder: str, method: str) -> None:
    check_outputs(fitted(name, encoder), made(name).graph())
    check_outputs(run_method(name, encoder, method), made(name).graph())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "encoder", "method"), sorted(GRID - COVER))
def test_every_other_combination_has_a_finite_result(name: str, encoder: str, method: str) -> None:
    check_outputs(run_method(name, encoder, method), made(name).graph())


def test_the_cover_has_every_case_and_every_method_on_every_encoder() -> None:
    assert {(n, e) for n, e, _ in COVER} == set(product(RESULTS, ENCODERS))
    assert {(e, m) for _, e, m in COVER} == {(e, m) for e in ENCODERS for m in methods_on(e)}


@pytest.mark.parametrize("name", list(SENTENCES))
def test_what_has_no_result_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(GraphError) as caught:
        made(name).tasks()
    assert SENTENCES[name] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LARGE))
@pytest.mark.parametrize(
    ("encoder", "method"), [("prism", "prism"), *((e, "dtc") for e in TRAINED)]
)
def test_large_degenerate_graphs(name: str, encoder: str, method: str) -> None:
    check_outputs(run_method(name, encoder, method), made(name).graph())


# Prism: mixed tasks, counting, and the whole way of a user.


@pytest.mark.parametrize("name", RESULTS)
def test_mixed_nodes_of_a_degenerate_graph(name: str) -> None:
    task = made(name).tasks(mixed=True)[1]
    check_outputs(nova.discover(fitted(name, "prism"), task, nova.Prism(n_resamples=2)), task.graph)


NOTHING_DIFFERS = [
    "identical features, no edges",
    "identical features, complete",
    "zero features, no edges",
]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("name", [*NOTHING_DIFFERS, "star", "one feature", "one label per class"])
def test_counting_on_a_degenerate_graph(name: str, mixed: bool) -> None:
    task = replace(made(name).tasks(mixed)[1], num_new=None)
    count = nova.count_new(fitted(name, "prism"), task)
    assert np.isfinite(count.probabilities).all()
    assert sum(count.probabilities) == pytest.approx(1)
    assert (0 if mixed else 1) <= count.number <= 5
    assert count.sentence().count("\n") == 0
    if name in NOTHING_DIFFERS:
        assert count.number == (0 if mixed else 1)


@pytest.mark.parametrize("name", NOTHING_DIFFERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_nodes_that_do_not_differ_get_one_class(name: str, encoder: str) -> None:
    method = "prism" if encoder == "prism" else "frozen_kmeans"
    model = run_method(name, encoder, method)
    assert len(np.unique(model.predict(made(name).graph()))) == 1


def test_frozen_kmeans_where_no_class_mean_differs() -> None:
    """What gave NaN: the old head is read as a nearest-mean classifier of equal means."""
    x, labels = np.ones((120, 5), "f4"), [i % 4 if i % 4 < 2 else None for i in range(120)]
    settings = {"method": "frozen_kmeans", "encoder": "gat", "mixed": False}
    found = nova.NodeDiscoverer(2, **settings, fit_settings={"epochs": 3}).fit(
        (x, NO_EDGES), labels
    )
    assert np.isfinite(found.predict_proba()).all()
    assert np.allclose(found.predict_proba().sum(axis=1), 1, atol=1e-5)


def whole_way(name: str, folder: Path, **settings: Any) -> None:
    """Discover, describe, suggest, write the report, open it, continue with it."""
    case = made(name)
    graph = case.graph()
    found = nova.NodeDiscoverer(random_state=0, **settings).fit(graph, case.given())
    assert np.isfinite(found.predict_proba()).all()
    assert len(found.labels_) == graph.num_nodes
    assert sum(info.size for info in found.class_info()) == graph.num_nodes
    assert found.suggestions() is not None
    found.report(folder)
    run = nova.open_run(folder)
    assert np.array_equal(run.model.predict(graph), found.model_.predict(graph))
    for refresh in (False, True):
        with suppress(SettingError):  # the model may be sure of no node
            after = run.continue_with(nova.load_graph(graph), refresh=refresh).run
            assert np.isfinite(after.probabilities).all()
            assert np.isfinite(after.embeddings).all()


WAYS = [name for name in RESULTS if "one known class" not in name and name != "two nodes"]
SOME_WAYS = {"identical features, no edges", "zero features", "four nodes", "huge weights"}


@pytest.mark.parametrize("name", sorted(SOME_WAYS))
def test_the_whole_way_on_a_degenerate_graph(name: str, tmp_path: Path) -> None:
    whole_way(name, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("settings", [{}, {"num_new": 2}, {"num_new": 2, "mixed": False}])
def test_every_other_whole_way(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    whole_way(name, tmp_path / "run", **settings)


def test_a_class_without_nodes_does_not_spoil_cross_validation() -> None:
    case = made("identical features, no edges")
    found = nova.NodeDiscoverer(2, mixed=False, none_share=0.1).fit(case.graph(), case.given())
    assert 0 in [info.size for info in found.class_info()]
    assert found.run_.held_out is not None
    assert np.isfinite(found.run_.held_out.p).all()


@pytest.mark.parametrize("name", ["one known class", "two nodes"])
def test_one_known_class_is_refused_in_one_sentence(name: str) -> None:
    case = made(name)
    with pytest.raises(nova.NodenovaError, match="at least two classes need labelled nodes"):
        nova.NodeDiscoverer().fit(case.graph(), case.given())


# Relations that must hold on degenerate graphs too.


def prism_of(case: Case, **options: Any) -> bytes:
    old, new, _ = case.tasks()
    model = nova.discover(nova.fit(old, **options), new, nova.Prism(n_resamples=2), **options)
    return model.predict_proba(new.graph).tobytes()


@pytest.mark.parametrize("name", ["star", "identical features", "mixed scales"])
def test_how_a_graph_is_written_changes_nothing(name: str) -> None:
    case = made(name)
    expected = prism_of(case)
    x = np.asarray(case.x, dtype=np.float32)
    assert prism_of(replace(case, x=x)) == expected
    assert prism_of(replace(case, x=x.astype(np.float64))) == expected
    assert prism_of(replace(case, x=sp.csr_array(x))) == expected
    assert prism_of(replace(case, edges=np.tile(case.edges[::-1], 2))) == expected
    assert prism_of(case, threads=2) == expected


@dataclass(frozen=True)
class Spoiling:
    """A method of a user that returns NaN."""

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        after = nova.FrozenKMeans(restarts=1).discover(model, task)
        head = after.head()
        head.linear.bias.data[:] = np.nan
        return replace(after, _head=head)


# Numbers that are not finite do not leave a public function.

DIVERGING = [name for name in ALL if name not in ("prism", "frozen_kmeans", "never_new", "oracle")]


@pytest.mark.parametrize("method", DIVERGING)
def test_training_that_diverges_names_phase_term_and_epoch(method: str) -> None:
    model, case = fitted("ordinary", "gcn"), made("ordinary")
    kind = (dict(nova.METHODS) | dict(nova.LABELLED))[method]
    diverging = replace(quick(kind), lr=1e30)
    sentence = (
        r"^phase 2: (the term [a-z_, ]+|a weight) became NaN or infinite in epoch [1-3] of 3 with "
        r"lr=1e\+30; divide features by their largest value, or use a smaller lr$"
    )
    unlabelled = method in nova.METHODS
    start = nova.discover if unlabelled else nova.discover_supervised
    task = case.tasks()[1] if unlabelled else case.labelled_task()
    with pytest.raises(NumericsError, match=sentence):
        start(model, task, diverging)


@pytest.mark.parametrize("encoder", TRAINED)
def test_phase_1_that_diverges_names_it_too(encoder: str) -> None:
    old = ordinary().tasks()[0]
    with pytest.raises(
        NumericsError, match=r"^phase 1: .* became NaN or infinite in epoch [12] of 3"
    ):
        nova.fit(old, encoder, epochs=3, lr=1e30)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_head_that_is_not_finite_is_never_read(value: float) -> None:
    for encoder in ("prism", "gcn"):
        model = fitted("ordinary", encoder)
        head = model.head()
        head.linear.weight.data[0, 0] = value
        spoilt, graph = replace(model, _head=head), made("ordinary").graph()
        for read in (spoilt.predict, spoilt.predict_proba):
            with pytest.raises(
                NumericsError, match="of 48 nodes have NaN or infinity in the logits"
            ):
                read(graph)
            with pytest.raises(NumericsError, match="1 of 1 nodes have NaN"):
                read(graph, only=[3])
        with pytest.raises(NumericsError, match="numbers of the head are not finite"):
            spoilt.check_numbers()
        with pytest.raises(NumericsError):
            nova.grade(spoilt, made("ordinary").tasks()[2])


def spoil_statistics(model: nova.Model, **tensors: float) -> nova.Model:
    """The model with other numbers in its class statistics, as a file could hold."""
    memory = model.memory
    classes = replace(
        memory.classes,
        **{name: getattr(memory.classes, name) * 0 + value for name, value in tensors.items()},
    )
    return replace(model, _memory=replace(memory, classes=classes))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("numbers", [{"diag": np.nan}, {"center": np.inf}, {"factor": -np.inf}])
def test_a_model_with_odd_numbers_ends_in_a_sentence(
    numbers: dict[str, float], mixed: bool
) -> None:
    """What was a LinAlgError of Cholesky: a covariance that is none."""
    model = spoil_statistics(fitted("ordinary", "prism"), **numbers)
    task = made("ordinary").tasks(mixed)[1]
    for use in (nova.discover, nova.count_new):
        with pytest.raises(NumericsError, match="not finite; ") as caught:
            use(model, task)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("numbers", [{"diag": -1e6}, {"factor": 1e38}, {"dof": 0.0}])
def test_a_model_with_finite_odd_numbers_has_a_finite_result_or_a_sentence(
    numbers: dict[str, float],
) -> None:
    model = spoil_statistics(fitted("ordinary", "prism"), **numbers)
    for mixed in (False, True):
        task = made("ordinary").tasks(mixed)[1]
        with suppress(NumericsError):
            check_outputs(nova.discover(model, task), task.graph, loads=False)
        with suppress(NumericsError):
            assert np.isfinite(nova.count_new(model, task).probabilities).all()


def test_a_method_that_returns_nan_is_refused() -> None:
    model, task = fitted("ordinary", "gcn"), made("ordinary").tasks()[1]
    with pytest.raises(NumericsError, match=r"phase 2: .* numbers of the head are not finite"):
        nova.discover(model, task, Spoiling())


def test_phase_1_without_lapack_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch's eigh does not converge, the fallback gives the same classes."""
    case = made("ordinary")
    old, new, _ = case.tasks()
    expected = nova.discover(nova.fit(old), new).predict(old.graph)

    def give_up(*args: object) -> None:
        raise torch.linalg.LinAlgError("eigh: the algorithm failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", give_up)
    model = nova.discover(nova.fit(old), new)
    check_outputs(model, old.graph)
    assert (model.predict(old.graph) == expected).mean() > 0.9
