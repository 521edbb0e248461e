"""GEM's quadratic programme and what is made of its solution."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from nodenova.data.splits import labelled_new_task
from nodenova.supervised.entrance import discover_supervised
from nodenova.supervised.gem import GEM, dual_solution, project, sample_each_class, with_gradient


def objective(v: np.ndarray, g: np.ndarray, memories: np.ndarray) -> np.ndarray:
    """1/2 v'GG'v + g'G'v for each row of v (n, tasks)."""
    return 0.5 * ((v @ memories) ** 2).sum(axis=1) + v @ (memories @ g)


@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize(
    ("tasks", "seed"), [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]
)
def test_the_dual_against_a_grid_and_its_conditions(tasks: int, seed: int, margin: float) -> None:
    rng = np.random.default_rng(seed)
    g, memories = rng.normal(size=20), rng.normal(size=(tasks, 20))
    v = dual_solution(g, memories, margin)
    slope = memories @ (memories.T @ v + g)
    assert (v >= margin).all()  # feasible
    assert (slope >= -1e-9).all()  # no way down into the feasible set ...
    assert np.abs(slope * (v - margin)).max() < 1e-9  # ... nor along it
    grid = np.array(list(product(np.linspace(margin, margin + 2, 41), repeat=tasks)))
    assert objective(v[None], g, memories)[0] <= objective(grid, g, memories).min() + 1e-12
    assert np.linalg.norm(grid[objective(grid, g, memories).argmin()] - v) < 0.15 * tasks


def test_with_one_task_the_dual_is_the_well_known_projection() -> None:
    g, g_k = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.5, 1.0, 0.0])
    by_hand = g - (g @ g_k) / (g_k @ g_k) * g_k
    assert torch.allclose(project(g, g_k[None], margin=0.0), by_hand)


def test_a_gradient_that_hurts_nobody_stays_and_others_end_up_hurting_nobody() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        g, memories = torch.randn(9, generator=generator), torch.randn(3, 9, generator=generator)
        g_tilde = project(g, memories, margin=0.1)
        if (memories @ g >= 0).all():
            assert torch.equal(g_tilde, g)
        assert (memories @ g_tilde >= -1e-5).all()


def test_linearly_dependent_memories_and_one_without_a_gradient() -> None:
    g, g_k = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.0, 0.0])
    v = dual_solution(g, np.stack([g_k, 2 * g_k, 0 * g_k]), 0.0)
    assert np.isfinite(v).all()
    assert g_k @ (g + v[0] * g_k + 2 * v[1] * g_k) == pytest.approx(0.0, abs=1e-9)


def test_value_of_one_gradient_of_another() -> None:
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(4, requires_grad=True)
    wanted = torch.arange(10.0)
    made = with_gradient((a.sum() * b.sum()) ** 2, [a, b], wanted)
    assert torch.allclose(made, (a.sum() * b.sum()) ** 2)
    made.backward()
    assert torch.equal(torch.cat([a.grad.flatten(), b.grad]), wanted)


def test_the_memory_has_so_many_of_each_class() -> None:
    y = np.array([0, 2, 0, 0, 2, 0, 1])
    kept = sample_each_class(y, 2)
    assert (np.diff(kept) > 0).all()
    assert np.bincount(y[kept]).tolist() == [2, 1, 2]


def test_the_memory_holds_the_old_loss_down_and_own_logits_leave_new_rows_unheard(
    fitted, labelled
) -> None:
    given = labelled_new_task(labelled, [0, 1])
    held = discover_supervised(fitted, given, GEM(epochs=40)).stages[-1].history["memory"]
    assert held[-1] < 1.0
    own = discover_supervised(fitted, given, GEM(epochs=40, logits="own"))
    # Told that it is new, it knows which.
    assert (own.predict_new(given.graph)[given.ids] == 2 + given.y).mean() > 0.8
