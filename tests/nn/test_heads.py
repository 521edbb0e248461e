from __future__ import annotations

import pytest
import torch

from nodenova.nn.heads import (
    Head,
    LinearHead,
    UnitLinearHead,
    as_nearest_mean,
    build_head,
    grow,
)
from nodenova.nn.multirank import MultiRank


def test_the_plain_head_is_the_formula() -> None:
    head, z = LinearHead(4, 3), torch.randn(6, 4)
    assert head.num_classes == 3
    for i in range(6):
        assert torch.allclose(head(z)[i], head.linear.weight @ z[i] + head.linear.bias, atol=1e-6)
    assert not torch.allclose(head(z), head(17 * z), atol=1e-2)  # how long z is means something
    assert head.temperature == 1.0


def test_on_the_sphere_the_same_rows_are_read_on_unit_length() -> None:
    head, z = LinearHead(4, 3), torch.randn(6, 4)
    kept = {name: value.clone() for name, value in head.state_dict().items()}
    read = head.on_sphere()
    assert isinstance(read, UnitLinearHead)
    assert read.temperature == 0.1
    unit = z / z.norm(dim=1, keepdim=True)
    assert torch.allclose(read(z), head(unit) / 0.1, atol=1e-5)
    assert torch.allclose(head.on_sphere(temperature=0.5)(z), head(unit) / 0.5, atol=1e-5)
    with torch.no_grad():
        read.linear.weight.zero_()
    assert all(torch.equal(head.state_dict()[name], value) for name, value in kept.items())
    read(z).sum().backward()
    assert read.linear.weight.grad is not None  # it can be trained further
    assert head.linear.weight.grad is None


def test_the_head_is_the_formula() -> None:
    head, z = UnitLinearHead.on_sphere(4, 3, temperature=0.2), torch.randn(6, 4)
    for i in range(6):
        expected = (head.linear.weight @ (z[i] / z[i].norm()) + head.linear.bias) / 0.2
        assert torch.allclose(head(z)[i], expected, atol=1e-5)


def test_the_length_of_z_does_not_matter() -> None:
    head, z = UnitLinearHead.on_sphere(4, 3), torch.randn(6, 4)
    assert torch.allclose(head(z), head(17 * z), atol=1e-4)


def test_a_zero_z_gets_the_biases() -> None:
    head = UnitLinearHead.on_sphere(4, 3)
    assert torch.allclose(head(torch.zeros(1, 4))[0], head.linear.bias / 0.1)


def test_growing_keeps_the_old_logits_and_starts_new_biases_below_the_least_old_one() -> None:
    head, z = UnitLinearHead.on_sphere(4, 3, temperature=0.3), torch.randn(6, 4)
    before = head(z)
    grown = grow(head, 2)
    assert grown.num_classes == 5
    assert grown.temperature == 0.3
    assert torch.equal(grown(z)[:, :3], before) or torch.allclose(
        grown(z)[:, :3], before, atol=1e-6
    )
    assert torch.allclose(grown.linear.bias[3:], head.linear.bias.min() - 1.0)
    assert grown.linear.weight[3:].abs().sum() > 0
    assert not torch.equal(grown.linear.weight[3], grown.linear.weight[4])


def test_a_plain_head_grows_into_a_plain_head() -> None:
    head, z = LinearHead(4, 3), torch.randn(6, 4)
    grown = grow(head, 2)
    assert type(grown) is LinearHead
    assert grown.num_classes == 5
    assert torch.allclose(grown(z)[:, :3], head(z), atol=1e-6)
    assert torch.allclose(grown.linear.bias[3:], head.linear.bias.min() - 1.0)
    assert not torch.equal(grown.linear.weight[3], grown.linear.weight[4])


def test_reading_on_the_sphere_and_growing_may_come_in_either_order() -> None:
    head, z = LinearHead(4, 3), torch.randn(6, 4)
    one, other = grow(head, 2).on_sphere(), grow(head.on_sphere(), 2)
    assert torch.allclose(one(z)[:, :3], other(z)[:, :3], atol=1e-5)
    assert torch.equal(one.linear.bias, other.linear.bias)


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("linear", LinearHead(4, 3)),
        ("cosine", UnitLinearHead.on_sphere(4, 3, temperature=0.3)),
        ("ladder", UnitLinearHead(MultiRank(2, 2, (1, 2)), 3, temperature=5.0)),
    ],
)
def test_a_described_head_is_built_again(kind: str, head: Head) -> None:
    """The words are those of models that were saved from the beginning."""
    assert head.description()["kind"] == kind
    empty = build_head(head.description())
    assert type(empty) is type(head)
    empty.load_state_dict(head.state_dict())
    z = torch.randn(6, 4)
    assert torch.equal(empty(z), head(z))
    assert head.with_num_classes(7).num_classes == 7
    assert head.with_num_classes(7).description() == head.description() | {"classes": 7}


@pytest.mark.parametrize("kind", [LinearHead, UnitLinearHead.on_sphere])
def test_growing_leaves_the_head_it_starts_from_alone_and_can_be_trained(kind) -> None:
    head = kind(4, 3)
    kept = head.linear.weight.detach().clone()
    grown = grow(head, 1)
    grown(torch.randn(5, 4)).sum().backward()
    assert grown.linear.weight.grad is not None
    with torch.no_grad():
        grown.linear.weight.zero_()
    assert torch.equal(head.linear.weight, kept)
    assert head.num_classes == 3


def test_a_head_says_the_same_of_views_that_come_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    multirank = MultiRank(3, 8, (2, 5))
    head, z = UnitLinearHead(multirank, 4, temperature=0.5), torch.randn(50, 24)
    monkeypatch.setattr("nodenova.nn.heads.NODES_AT_ONCE", 16)
    cut = [view[:, :5] for view in z.split(8, dim=1)]
    with torch.no_grad():
        assert torch.allclose(head.from_views(cut), head(z), atol=1e-5)
        assert torch.equal(head.from_views(cut), head.from_views(z.split(8, dim=1)))


def test_a_head_over_means_that_do_not_differ_is_read_by_the_length_of_its_rows() -> None:
    w, b = torch.tensor([[3.0, 4.0], [0.0, 1.0]]), torch.tensor([0.5, 0.0])
    for m in (torch.ones(2, 2), torch.zeros(2, 2), torch.ones(2, 2) + 1e-9):
        kappa, v, beta = as_nearest_mean(w, b, m)
        assert float(kappa) == 3.0  # the mean of 5 and 1
        assert torch.isfinite(torch.stack([*v, beta])).all()
    far = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    kappa = as_nearest_mean(2 * far + 1, b, far)[0]
    assert float(kappa) == pytest.approx(2.0)
