"""ER-GNN's three ways of choosing what to keep, on cases made by hand.

And influence against PyTorch's own Hessian.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from nodenova.data.splits import labelled_new_task
from nodenova.supervised.entrance import discover_supervised
from nodenova.supervised.er_gnn import (
    ERGNN,
    best_per_class,
    count_strangers,
    influence,
    nearness_to_mean,
)

# class 0 at x = 0, 1, 2, 6 (mean 2.25), class 1 at x = 5, 7, 9 (mean 7)
Z = torch.tensor([[0.0], [1.0], [2.0], [6.0], [5.0], [7.0], [9.0]])
Y = torch.tensor([0, 0, 0, 0, 1, 1, 1])


def test_mean_of_features_takes_those_nearest_to_the_mean_of_their_class() -> None:
    worth = nearness_to_mean(Z, Y)
    assert worth.tolist() == pytest.approx([-2.25, -1.25, -0.25, -3.75, -2.0, 0.0, -2.0])
    # Of 5 and 9 the earlier.
    assert best_per_class(worth.numpy(), Y.numpy(), 2).tolist() == [1, 2, 4, 5]


def test_coverage_takes_those_with_the_fewest_strangers_nearby() -> None:
    strangers = count_strangers(Z, Y, distance=3.5)
    assert strangers.tolist() == [0, 0, 1, 3, 2, 1, 1]
    assert best_per_class(-strangers.numpy(), Y.numpy(), 2).tolist() == [0, 1, 5, 6]


def test_influence_takes_those_that_would_move_the_classifier_most() -> None:
    generator = torch.Generator().manual_seed(0)
    u, y, damping = torch.randn(8, 3, generator=generator).double(), torch.arange(8) % 3, 0.01
    theta = torch.randn(3, 3, generator=generator).double()

    def loss(theta: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(u @ theta.t(), y) + 0.5 * damping * theta.square().sum()

    h = torch.autograd.functional.hessian(loss, theta).reshape(9, 9)
    found = influence(u, (u @ theta.t()).softmax(dim=1), y, damping)
    for i in range(8):
        alone = theta.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(
            F.cross_entropy(u[i : i + 1] @ alone.t(), y[i : i + 1]), alone
        )
        assert float(found[i]) == pytest.approx(
            float(torch.linalg.solve(h, slope.flatten()).norm()), rel=1e-6
        )


def test_a_node_on_the_wrong_side_has_the_most_influence() -> None:
    u = torch.tensor([[1.0, 1.0], [1.2, 1.0], [-1.0, 1.0], [-1.1, 1.0], [-0.9, 1.0]])
    y = torch.tensor([0, 0, 1, 1, 0])  # the last is labelled against its place
    p = (u @ torch.tensor([[2.0, 0.0], [-2.0, 0.0]]).t()).softmax(dim=1)
    assert int(influence(u, p, y, damping=0.01).argmax()) == 4


def test_fewer_nodes_than_asked_for_are_all_kept() -> None:
    assert best_per_class(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]), 5).tolist() == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize("choice", ["mf", "cm", "im"])
def test_the_weights_of_new_and_old_follow_the_size_of_the_memory(
    choice: str, fitted, labelled
) -> None:
    given = labelled_new_task(labelled, [0, 1])
    history = (
        discover_supervised(fitted, given, ERGNN(epochs=1, memory=5, choice=choice, lr=0.0))
        .stages[-1]
        .history
    )
    more = (
        discover_supervised(fitted, given, ERGNN(epochs=1, memory=10, choice=choice, lr=0.0))
        .stages[-1]
        .history
    )
    n = len(given.ids)
    # The first pass has the same new loss up to dropout on a slightly larger graph;
    # beta = |E| / (|V| + |E|) differs.
    assert more["new"][0] / history["new"][0] == pytest.approx(
        (20 / (n + 20)) / (10 / (n + 10)), rel=0.3
    )
