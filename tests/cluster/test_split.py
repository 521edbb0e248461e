"""Prism on a graph folder whose rows are on two machines, which may be lost in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.cluster.session import connect
from nodenova.cluster.split import ClusterError, RaySplit, split_graph
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.errors import GraphError, SettingError
from nodenova.graph import Graph
from nodenova.io.graph_folder.prepare import prepare_graph
from nodenova.io.load import load_graph
from nodenova.nn.distributed import GraphSplit, SplitColumns
from nodenova.nn.seeding import fixed_threads
from tests.cluster.here import HereSplit
from tests.cluster.machines import Machines, two_machines


@pytest.fixture(scope="module")
def machines(folder: Path) -> Iterator[Machines]:
    with two_machines() as machines, connect(machines.address, folder=folder):
        yield machines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs") / "graph"
    prepare_graph(folder, nova.synthetic(nodes=400, classes=4, words=200, seed=0))
    return folder


def die_once(mark: Path, graph: Graph, rows: Tensor) -> Tensor:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def die(graph: Graph) -> Tensor:
    if graph.node_ids[0] == 0:
        os._exit(1)
    return torch.zeros(1)


def discovered(folder: Path) -> tuple[np.ndarray, nova.Model]:
    labelled = load_graph(folder)
    old, new, _ = nova.split(labelled, [0, 1])
    model = nova.discover(nova.fit(old), new)
    return model.predict_proba(labelled.graph), model


@pytest.mark.slow
def test_predict_on_a_cluster_writes_what_it_writes_on_one_machine(
    machines: Machines, folder: Path, tmp_path: Path
) -> None:
    _, model = discovered(folder)
    model.save(tmp_path / "model")
    for name, ray in (("alone", []), ("ray", ["--ray", machines.address])):
        table = ["predict", str(tmp_path / "model"), "--graph", str(folder), "--quiet", *ray]
        made = CliRunner().invoke(app, [*table, "--out", str(tmp_path / f"{name}.csv")])
        assert made.exit_code == 0, made.output
    assert said(tmp_path / "ray.csv") == said(tmp_path / "alone.csv")
    assert len(said(tmp_path / "ray.csv")) == 401


def said(path: Path) -> list[list[str]]:
    """Node, class, name and kind, a row each."""
    return [row.split(",")[:4] for row in path.read_text().splitlines()]


@pytest.mark.slow
def test_what_goes_wrong_on_a_machine_is_said_here(
    machines: Machines, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = load_graph(folder).graph
    with pytest.raises(GraphError, match="no luck with some nodes"):
        RaySplit(folder, graph).total(fail)
    monkeypatch.setattr("nodenova.cluster.split.MAX_RETRIES", 0)
    with pytest.raises(ClusterError, match=r"the cluster failed although .*: The worker died"):
        RaySplit(folder, graph).total(die)


def fail(graph: Graph) -> Tensor:
    raise GraphError("no luck with some nodes")


@pytest.mark.slow
def test_rows_come_back_in_the_order_in_which_they_are_asked_for(
    machines: Machines, folder: Path
) -> None:
    graph = load_graph(folder).graph
    split = RaySplit(folder, graph)
    numbers = split.each(_degrees)
    ids = torch.tensor([399, 0, 200, 200, 7])
    expected = np.diff(graph.adjacency.indptr)[ids.numpy()]
    assert split.rows(numbers, ids).ravel().tolist() == expected.tolist()
    assert split.rows(numbers, ids[:0]).shape == (0, 1)


def _degrees(graph: Graph) -> Tensor:
    return torch.from_numpy(np.diff(graph.adjacency.indptr)[:, None].astype(np.float32))


@pytest.mark.slow
def test_views_do_not_depend_on_the_machines_or_on_how_many_columns_go_at_a_time(
    machines: Machines, folder: Path
) -> None:
    graph, ids, cpu = load_graph(folder).graph, torch.arange(0, 400, 7), torch.device("cpu")
    graph.cache[GraphSplit] = HereSplit(folder, graph, at_once=25)
    with fixed_threads(1):
        _, here = PrismEncoder.fit_rows(graph, ids, cpu)
    with split_graph(graph, folder), fixed_threads(1):
        _, there = PrismEncoder.fit_rows(graph, ids, cpu)
    assert torch.equal(here, there)


@pytest.mark.slow
def test_discover_on_a_cluster_finds_what_it_finds_on_one_machine(
    machines: Machines, folder: Path, tmp_path: Path
) -> None:
    labelled = load_graph(folder)
    new = tmp_path / "new.txt"
    new.write_text("\n".join(str(n) for n in labelled.graph.node_ids[labelled.y >= 2]))
    options = ["--graph", str(folder), "--quiet", "--new-nodes", str(new), "--no-keep-graph"]
    for name, ray in (("alone", []), ("ray", ["--ray", machines.address])):
        made = CliRunner().invoke(app, ["discover", *options, *ray, "--out", str(tmp_path / name)])
        assert made.exit_code == 0, made.output
    ours, theirs = (said(tmp_path / name / "predictions.csv") for name in ("ray", "alone"))
    assert ours == theirs


def test_only_a_graph_folder_is_split(folder: Path) -> None:
    graph = load_graph(folder).graph
    in_memory = nova.synthetic(nodes=60, classes=3).graph
    for other, why in (
        (in_memory, "needs a graph folder"),
        (graph.with_features(graph.x[:, :50], None), "other features than the model"),
    ):
        with pytest.raises(SettingError, match=why), split_graph(other, folder):
            pass


@pytest.mark.slow
def test_classes_are_those_of_one_machine_though_a_process_and_a_machine_are_lost(
    machines: Machines, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, _ = discovered(folder)
    smoothed, products = RaySplit.smooth, []

    def disturbed(self: RaySplit, columns: SplitColumns) -> SplitColumns:
        products.append(columns)
        if len(products) == 30:
            columns = self.each(partial(die_once, tmp_path / "mark"), columns)
        made = smoothed(self, columns)
        if len(products) == 60:  # half of what was just made is on the machine that goes
            machines.lose(machines.others[0])
        return made

    monkeypatch.setattr(RaySplit, "smooth", disturbed)
    labelled = load_graph(folder)
    old, new, _ = nova.split(labelled, [0, 1])
    try:
        with split_graph(labelled.graph, folder):
            model = nova.discover(nova.fit(old), new)
            p = model.predict_proba(labelled.graph)
    finally:
        machines.add()
    assert (tmp_path / "mark").exists()
    assert len(products) > 60
    np.testing.assert_array_equal(p.argmax(axis=1), alone.argmax(axis=1))
    np.testing.assert_allclose(p, alone, atol=0.01)
