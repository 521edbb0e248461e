"""A lesson has less of the graph, and the same z."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.labels import GivenTask
from nodenova.supervised._training_subgraph import lesson_of


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_z_of_labelled_nodes_is_that_of_the_whole_graph(encoder: str) -> None:
    data = nova.synthetic(nodes=600, classes=4, words=40, degree=2.0)
    model = nova.fit(nova.split(data, [0, 1])[0], encoder, hidden=4, epochs=2)
    new, old = np.flatnonzero(data.y >= 2)[:4], np.flatnonzero(data.y < 2)[:5]
    given = GivenTask(data.graph, new, 2, data.y[new] - 2, old, data.y[old])
    lesson = lesson_of(model, given, keep=np.array([0, 3]))
    assert lesson.graph.num_nodes < 300
    g = model.frozen_encoder()
    whole, part = g(data.graph), g(lesson.graph)
    assert torch.allclose(part[lesson.new], whole[torch.from_numpy(new)], atol=1e-6)
    assert torch.allclose(part[lesson.old], whole[torch.from_numpy(old[[0, 3]])], atol=1e-6)
    assert np.array_equal(lesson.y.numpy(), data.y[new])
    assert np.array_equal(lesson.y_old.numpy(), data.y[old[[0, 3]]])
    assert len(lesson_of(model, given).old) == 0
