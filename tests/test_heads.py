from __future__ import annotations

import torch

from nodenova.heads import CosineHead, grow


def test_the_head_is_the_formula() -> None:
    head, z = CosineHead(4, 3, temperature=0.2), torch.randn(6, 4)
    for i in range(6):
        expected = (head.linear.weight @ (z[i] / z[i].norm()) + head.linear.bias) / 0.2
        assert torch.allclose(head(z)[i], expected, atol=1e-5)


def test_the_length_of_z_does_not_matter() -> None:
    head, z = CosineHead(4, 3), torch.randn(6, 4)
    assert torch.allclose(head(z), head(17 * z), atol=1e-4)


def test_a_zero_z_gets_the_biases() -> None:
    head = CosineHead(4, 3)
    assert torch.allclose(head(torch.zeros(1, 4))[0], head.linear.bias / 0.1)


def test_growing_keeps_the_old_logits_and_starts_new_biases_below_the_least_old_one() -> None:
    head, z = CosineHead(4, 3, temperature=0.3), torch.randn(6, 4)
    before = head(z)
    grown = grow(head, 2)
    assert grown.num_classes == 5
    assert grown.temperature == 0.3
    assert torch.equal(grown(z)[:, :3], before) or torch.allclose(grown(z)[:, :3], before, atol=1e-6)
    assert torch.allclose(grown.linear.bias[3:], head.linear.bias.min() - 1.0)
    assert grown.linear.weight[3:].abs().sum() > 0
    assert not torch.equal(grown.linear.weight[3], grown.linear.weight[4])


def test_growing_leaves_the_head_it_starts_from_alone_and_can_be_trained() -> None:
    head = CosineHead(4, 3)
    kept = head.linear.weight.detach().clone()
    grown = grow(head, 1)
    grown(torch.randn(5, 4)).sum().backward()
    assert grown.linear.weight.grad is not None
    with torch.no_grad():
        grown.linear.weight.zero_()
    assert torch.equal(head.linear.weight, kept)
    assert head.num_classes == 3
