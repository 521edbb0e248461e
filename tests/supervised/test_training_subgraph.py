"""A training subgraph has less of the graph, and the same z."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.labels import LabelledNewTask
from nodenova.supervised._shared import training_subgraph


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_z_of_labelled_nodes_is_that_of_the_whole_graph(encoder: str) -> None:
    data = nova.synthetic(nodes=600, classes=4, words=40, degree=2.0)
    model = nova.fit(nova.split(data, [0, 1])[0], encoder, hidden=4, epochs=2)
    new, old = np.flatnonzero(data.y >= 2)[:4], np.flatnonzero(data.y < 2)[:5]
    given = LabelledNewTask(data.graph, new, 2, data.y[new] - 2, old, data.y[old])
    subgraph = training_subgraph(model, given, keep=np.array([0, 3]))
    assert subgraph.graph.num_nodes < 300
    g = model.frozen_encoder()
    whole, part = g(data.graph), g(subgraph.graph)
    assert torch.allclose(part[subgraph.new], whole[torch.from_numpy(new)], atol=1e-6)
    assert torch.allclose(part[subgraph.old], whole[torch.from_numpy(old[[0, 3]])], atol=1e-6)
    assert np.array_equal(subgraph.y.numpy(), data.y[new])
    assert np.array_equal(subgraph.y_old.numpy(), data.y[old[[0, 3]]])
    assert len(training_subgraph(model, given).old) == 0
