"""TWP's importances against differences, its penalty against a naive one, and what each holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import nodenova as nova
from nodenova.data.splits import labelled_new_task
from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.nn.heads import UnitLinearHead
from nodenova.supervised.entrance import discover_supervised
from nodenova.supervised.twp import TWP, attention_size, importances, l_preserve, total_slope

every_encoder = pytest.mark.parametrize("encoder", ["gcn", "gat", "gatv2", "sage"])


def made(encoder: str, graph: nova.Graph) -> tuple[GNN, UnitLinearHead]:
    torch.manual_seed(0)
    name, attention = ("gat", "v2") if encoder == "gatv2" else (encoder, "v1")
    g = GNN(
        GNNSpec(name, graph.num_features, hidden=4, heads=2, dropout=0.5, attention=attention)
    ).eval()
    with torch.no_grad():
        for p in g.parameters():
            # Zero biases would put nodes without features on the kink of the activation.
            p += 0.1 * torch.randn(p.shape)
    return g, UnitLinearHead.on_sphere(4, 2)


@every_encoder
def test_importances_against_differences(encoder: str, make_graph) -> None:
    graph, ids, y = make_graph(), torch.tensor([0, 3, 7, 29]), torch.tensor([0, 1, 1, 0])
    g, head = made(encoder, graph)
    i_loss, i_topo = importances(g, head, graph, ids, y)
    parameters = [*g.parameters(), *head.parameters()]
    assert [a.shape for a in i_loss] == [p.shape for p in parameters]
    assert max(float(a.max()) for a in i_topo) > 0
    values = {
        "loss": (i_loss, lambda: F.cross_entropy(head(g(graph)[ids]), y)),
        "topo": (i_topo, lambda: attention_size(g, graph, ids)),
    }
    for importance, value in values.values():
        for a, p in zip(importance, parameters, strict=True):
            place = int(a.flatten().argmax())
            was = float(p.detach().flatten()[place])
            with torch.no_grad():
                p.flatten()[place] = was + 2e-3
                up = float(value())
                p.flatten()[place] = was - 2e-3
                down = float(value())
                p.flatten()[place] = was
            assert float(a.flatten()[place]) == pytest.approx(
                abs(up - down) / 4e-3, rel=0.05, abs=2e-4
            )


@every_encoder
def test_attention_size_edge_by_edge(encoder: str, make_graph) -> None:
    graph, nodes = make_graph(), [2, 5, 29]  # 29 is isolated
    g, _ = made(encoder, graph)
    neighbors = {
        i: {i} | set(graph.edge_index[0, graph.edge_index[1] == i].tolist()) for i in nodes
    }
    x = graph.x.toarray()
    h = torch.from_numpy(x / np.maximum(x.sum(axis=1, keepdims=True), 1e-9)).float()
    total, activation = 0.0, F.elu if "gat" in encoder else F.relu
    edges = torch.from_numpy(graph.edge_index)
    with torch.no_grad():
        for depth, conv in enumerate(g.convs):
            h = activation(h) if depth else h
            for i in nodes:
                for j in neighbors[i]:
                    if encoder == "gat":
                        w_i, w_j = (conv.lin(h[k]).view(conv.heads, -1) for k in (i, j))
                        e = F.leaky_relu(
                            (w_i * conv.att_dst[0]).sum(-1) + (w_j * conv.att_src[0]).sum(-1), 0.2
                        )
                    elif encoder == "gatv2":
                        both = (conv.lin_r(h[i]) + conv.lin_l(h[j])).view(conv.heads, -1)
                        e = (F.leaky_relu(both, 0.2) * conv.att[0]).sum(-1)
                    elif encoder == "sage":
                        e = (h[i] @ conv.lin_r.weight.t()) @ torch.tanh(
                            h[j] @ conv.lin_l.weight.t()
                        )
                    else:
                        e = conv.lin(h[i]) @ torch.tanh(conv.lin(h[j]))
                    total += float(e.square().sum())
            h = conv(h, edges)
        assert float(attention_size(g, graph, torch.tensor(nodes))) == pytest.approx(
            total / len(nodes), rel=1e-4
        )


def test_the_penalty_parameter_by_parameter() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b, w = (
        [torch.rand(shape, generator=generator) for shape in ((2, 3), (4,))] for _ in range(3)
    )
    naive = sum(
        float(w[k].flatten()[i] * (a[k].flatten()[i] - b[k].flatten()[i]) ** 2)
        for k in (0, 1)
        for i in range(len(a[k].flatten()))
    )
    assert float(l_preserve(a, b, w)) == pytest.approx(naive, rel=1e-5)


def test_the_total_slope_has_the_value_and_the_gradient_of_a_sum_of_sizes() -> None:
    theta = {
        "a": torch.tensor([0.7, -0.4], requires_grad=True),
        "b": torch.tensor([[1.5]], requires_grad=True),
    }

    def loss(t) -> torch.Tensor:
        return (t["a"] ** 3).sum() * t["b"].sin().sum()

    slopes = torch.autograd.grad(loss(theta), list(theta.values()), create_graph=True)
    exact = sum(slope.abs().sum() for slope in slopes)
    found = total_slope(loss, theta)
    assert found.item() == pytest.approx(exact.item(), rel=1e-3)
    wanted = torch.autograd.grad(exact, list(theta.values()))
    for ours, theirs in zip(torch.autograd.grad(found, list(theta.values())), wanted, strict=True):
        assert torch.allclose(ours, theirs, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("weight", ["lambda_l", "lambda_t"])
def test_each_importance_holds_what_is_important(weight: str, fitted, labelled) -> None:
    given = labelled_new_task(labelled, [0, 1])
    old, y_old = torch.from_numpy(given.old_ids), torch.from_numpy(given.old_y)
    both = importances(fitted.encoder().eval(), fitted.head(), given.graph, old, y_old)
    importance = both[weight == "lambda_t"]

    def moved(size: float) -> float:
        settings = {"lambda_l": 0.0, "lambda_t": 0.0, "beta": 0.0, weight: size}
        model = discover_supervised(fitted, given, TWP(epochs=30, **settings))
        pairs = zip(
            importance,
            model.frozen_encoder().parameters(),
            fitted.frozen_encoder().parameters(),
            strict=False,
        )
        return sum(float((w * (a - b).square()).sum()) for w, a, b in pairs)

    assert moved(1e4) < 0.5 * moved(0.0)


def test_as_it_is_it_tells_new_from_old_and_holds_old_classes_apart() -> None:
    """On planted classes.

    Which new class is which is left to the rows of the head, and may be learned or not.
    """
    easy = nova.synthetic(
        nodes=300, classes=4, words=80, degree=10, homophily=0.95, topic_share=0.9
    )
    old, _, exam = nova.split(easy, [0, 1])
    fitted, given = nova.fit(old, "gcn", hidden=16, epochs=50), labelled_new_task(easy, [0, 1])
    model = discover_supervised(fitted, given, TWP(epochs=100))
    scores = nova.grade(model, exam).scores()
    always_new = 100.0 * float((exam.y >= 2).mean())
    assert scores["old_new_accuracy"] > always_new + 10
    assert scores["old_n"] > 95


def test_a_longer_z_is_held_harder(fitted, labelled) -> None:
    """I^topo is the slope of a square of attention.

    On an encoder twice as large it is much more than twice as steep.
    """
    given = labelled_new_task(labelled, [0, 1])
    old, y_old = torch.from_numpy(given.old_ids), torch.from_numpy(given.old_y)

    def size(factor: float) -> float:
        g = fitted.encoder().eval()
        with torch.no_grad():
            g.convs[-1].lin.weight.mul_(factor)
        return float(importances(g, fitted.head(), given.graph, old, y_old)[1][-3].sum())

    assert size(2.0) > 4 * size(1.0)


def test_promotion_makes_the_new_loss_depend_on_less(fitted, labelled) -> None:
    given = labelled_new_task(labelled, [0, 1])
    history = (
        discover_supervised(fitted, given, TWP(epochs=40, lambda_l=0.0, lambda_t=0.0, beta=0.01))
        .stages[-1]
        .history
    )
    assert set(history) == {"new", "promote"}
    assert history["promote"][-1] < 0.5 * max(history["promote"])
