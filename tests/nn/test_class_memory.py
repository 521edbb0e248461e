"""What is remembered of classes, against plain loops."""

from __future__ import annotations

import pytest
import torch

from nodenova.nn.class_memory import Memory, ReplayStatistics
from nodenova.nn.multirank import MultiRank


def of(z: torch.Tensor, y: torch.Tensor, classes: int) -> Memory:
    return Memory.of(z, y, classes, MultiRank.whole(z.shape[1]))


def test_eq_9_mean_and_variance_are_the_loops() -> None:
    z, y = torch.randn(12, 3), torch.arange(12) % 4
    replay = ReplayStatistics.estimate(z, y, 4)
    for c in range(4):
        members = [z[i] for i in range(12) if y[i] == c]
        mean = sum(members) / len(members)
        var = sum((m - mean) ** 2 for m in members) / len(members)
        assert torch.allclose(replay.mean[c], mean, atol=1e-6)
        assert torch.allclose(replay.var[c], var, atol=1e-6)


def test_a_class_of_one_node_has_no_variance_and_a_class_of_none_gets_the_overall_mean() -> None:
    z = torch.tensor([[0.0, 2.0], [4.0, 6.0]])
    assert ReplayStatistics.estimate(z, torch.tensor([0, 0]), 2).mean[1].tolist() == [2.0, 4.0]
    one = ReplayStatistics.estimate(z, torch.tensor([0, 1]), 2)
    assert one.mean.tolist() == z.tolist()
    assert not one.var.any()
    assert torch.isfinite(one.draw(torch.randn(5, 2, 2))[0]).all()


def test_memory_holds_no_gradient() -> None:
    z = torch.randn(6, 2, requires_grad=True)
    assert not any(
        tensor.requires_grad for tensor in of(z, torch.arange(6) % 2, 2).tensors().values()
    )


def test_eq_10_draws_are_mean_plus_deviation_times_noise() -> None:
    replay = ReplayStatistics(torch.randn(3, 2), torch.rand(3, 2))
    noise = torch.randn(4, 3, 2)
    z, y = replay.draw(noise)
    assert z.shape == (12, 2)
    assert y.tolist() == [0, 1, 2] * 4
    for i in range(12):
        draw, c = divmod(i, 3)
        assert torch.allclose(z[i], replay.mean[c] + replay.var[c].sqrt() * noise[draw, c])


def test_draws_with_a_shared_sigma_have_the_mean_of_the_deviations() -> None:
    replay = ReplayStatistics(torch.randn(3, 2), torch.rand(3, 2))
    noise = torch.randn(4, 3, 2)
    z, y = replay.draw(noise, "shared")
    assert torch.equal(y, replay.draw(noise)[1])
    for i in range(12):
        draw, c = divmod(i, 3)
        for d in range(2):
            sigma = sum(float(replay.var[k, d]) ** 0.5 for k in range(3)) / 3
            expected = float(replay.mean[c, d] + sigma * noise[draw, c, d])
            assert float(z[i, d]) == pytest.approx(expected, abs=1e-6)


def test_draws_have_the_moments_they_are_asked_for() -> None:
    replay = ReplayStatistics(torch.tensor([[1.0, -2.0]]), torch.tensor([[4.0, 0.25]]))
    z, _ = replay.draw(torch.randn(20000, 1, 2, generator=torch.Generator().manual_seed(0)))
    assert torch.allclose(z.mean(0), replay.mean[0], atol=0.06)
    assert torch.allclose(z.var(0), replay.var[0], rtol=0.05)


def test_classes_are_appended_in_the_order_of_the_stages_and_selected_again() -> None:
    first, second = (
        of(torch.zeros(4, 3), torch.arange(4) % 2, 2),
        of(torch.ones(2, 3), torch.zeros(2).long(), 1),
    )
    both = first.append(second)
    assert both.replay.mean[:, 0].tolist() == [0, 0, 1]
    assert len(both) == len(both.classes.center) == 3
    assert len(first) == 2
    some = both.select([0, 2])
    assert some.replay.mean[:, 0].tolist() == [0, 1]
    assert torch.equal(some.classes.center, both.classes.center[[0, 2]])


def test_parts_of_a_class_bring_their_means_and_leave_the_scatter() -> None:
    known, parts = (
        of(torch.randn(8, 3), torch.arange(8) % 2, 2),
        of(torch.randn(6, 3), torch.arange(6) % 2, 2),
    )
    both = known.with_parts(parts)
    assert torch.equal(both.replay.mean[2:], parts.replay.mean)
    assert torch.equal(both.classes.center[2:], parts.classes.center)
    assert torch.equal(both.classes.factor, known.classes.factor)


def test_taken_apart_and_put_together_it_is_the_same_by_the_names_of_saved_models() -> None:
    memory = of(torch.randn(9, 3), torch.arange(9) % 3, 3)
    tensors = memory.tensors()
    names = ["mean", "var", "centre", "factor", "rest", "dof", "temperature", "view_scale", "count"]
    assert sorted(tensors) == sorted(names)
    again = Memory.from_tensors(tensors).tensors()
    assert all(torch.equal(tensors[name], again[name]) for name in names)
    copy = memory.copy()
    copy.replay.mean.zero_()
    assert memory.replay.mean.any()
