"""TWP: topology-aware weight preserving."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from nodenova.data.labels import LabelledNewTask
from nodenova.encoders.gnn import GNN, gatv2_ends
from nodenova.graph import Graph
from nodenova.model.model import Model, trained_encoder, trained_head
from nodenova.nn.attention import edge_segments
from nodenova.nn.encoder import TrainedEncoder
from nodenova.nn.heads import UnitLinearHead, grow
from nodenova.nn.training import TrainedMethod, gradients
from nodenova.settings import setting
from nodenova.supervised._shared import grow_model, training_subgraph

STEP = 1e-3  # of the difference quotient in `total_slope`


@dataclass(frozen=True)
class TWP(TrainedMethod):
    """Topology-aware weight preserving: weights that matter for old labels or attention stay near.

    Liu, Yang & Wang, "Overcoming Catastrophic Forgetting in Graph Neural Networks", AAAI 2021.

        L         = L_new + sum over theta of (lambda_l I^loss + lambda_t I^topo) (theta - theta*)^2
                    + beta |I_new|_1
        I^loss    = |dL_old / dtheta|         what the old labels depend on
        I^topo    = |d(mean over old nodes i of |e_i|^2) / dtheta|
                                              what attention at the old nodes depends on
        e_ij      = LeakyReLU(a . [W h_i, W h_j]) on gat;
                    (W h_i) . tanh(W h_j) on gcn and sage, which have no attention
        |I_new|_1 = sum over theta of |dL_new / dtheta|
                                              leaves weights free for later stages

    theta are the parameters of encoder and old head, theta* at the end of phase 1; the new rows of
    the joint head are free.

    What differs from the paper:

    - The paper's method is given the task at test time; here one joint head decides, and L_new is
      over all its logits.
    - The importances are computed when phase 2 begins, from the old training nodes and labels that
      the entrance passes on for it, instead of being stored at the end of phase 1; no dropout. No
      old node takes part in training.
    - On an encoder of your own e_ij = z_i . tanh(z_j), as its layers are not known.
    - e is taken from every layer; the released code takes the first, which leaves the upper ones
      without I^topo. It also squares the gradients; here they are as printed.
    - |I_new|_1 is a derivative, so its own is a second one; the released code drops it (`.data`).
      Here |I_new|_1 = (L_new(theta + s sign I) - L_new(theta - s sign I)) / 2s for a small s, which
      can be minimized as it is.

    Attributes:
        epochs: Number of epochs, of one step each.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        lambda_l: Weight of I^loss.
        lambda_t: Weight of I^topo.
        beta: Weight of |I_new|_1.
    """

    needs: ClassVar[tuple[str, ...]] = ("new_labels", "old_nodes", "old_labels")

    lambda_l: float = setting(100.0, at_least=0)
    lambda_t: float = setting(100.0, at_least=0)
    beta: float = setting(0.01, at_least=0)

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        head = trained_head(model, "twp")
        g, h_a = trained_encoder(model, "twp"), grow(head, task.num_new)
        assert task.old_ids is not None
        assert task.old_y is not None
        old, y_old = (torch.from_numpy(a).to(model.device) for a in (task.old_ids, task.old_y))
        i_loss, i_topo = importances(g.eval(), head, task.graph, old, y_old)
        both = zip(i_loss, i_topo, strict=True)
        weight = [self.lambda_l * a + self.lambda_t * b for a, b in both]
        theta_star = [p.detach().clone() for p in (*g.parameters(), *head.parameters())]
        subgraph = training_subgraph(model, task)
        n_old = len(model.classes)
        classify = nn.Sequential(g, h_a)
        first = {p: name for name, p in classify.named_parameters()}
        # A weight may be in two modules, and a module at two places, of which one counts.
        names = {
            name: p
            for place, module in classify.named_modules()
            for name, p in module.named_parameters(place, False, remove_duplicate=False)
        }

        def l_new(theta: Mapping[str, Tensor]) -> Tensor:
            weights = {name: theta[first[p]] for name, p in names.items()}
            logits = functional_call(classify, weights, (subgraph.graph,), tie_weights=False)
            return F.cross_entropy(logits[subgraph.new], subgraph.y)

        def terms(epoch: int) -> dict[str, Tensor]:
            parts = {"new": F.cross_entropy(h_a(g(subgraph.graph)[subgraph.new]), subgraph.y)}
            if self.lambda_l or self.lambda_t:
                theta = [*g.parameters(), h_a.linear.weight[:n_old], h_a.linear.bias[:n_old]]
                parts["keep"] = l_preserve(theta, theta_star, weight)
            if self.beta:
                g.eval()
                parts["promote"] = self.beta * total_slope(l_new, dict(classify.named_parameters()))
            return parts

        history = self._train(terms, [g, h_a])
        return grow_model(model, subgraph, g, h_a, history)


def importances(
    g: TrainedEncoder, head: UnitLinearHead, graph: Graph, ids: Tensor, y: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """Return I^loss and I^topo of every parameter of encoder and head, from labelled nodes."""
    parameters = [*g.parameters(), *head.parameters()]

    def size_of_gradient(of: Tensor) -> list[Tensor]:
        return [slope.abs() for slope in gradients(of, parameters)]

    i_loss = size_of_gradient(F.cross_entropy(head(g(graph)[ids]), y))
    i_topo = size_of_gradient(attention_size(g, graph, ids))
    return i_loss, i_topo


def attention_size(g: TrainedEncoder, graph: Graph, ids: Tensor) -> Tensor:
    """Return the mean over nodes `ids` of |e_i|^2: all edges, self-loops, heads and layers."""
    from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, SAGEConv

    device = ids.device
    edges = edge_segments(graph, device)
    mine = torch.isin(edges.target, ids)
    source, target = edges.source[mine], edges.target[mine]
    if not isinstance(g, GNN):
        z = g(graph)
        return (z[target] * z[source].tanh()).sum(dim=-1).square().sum() / len(ids)
    kind = g.spec.kind
    x: Any = g.inputs(graph)
    total = torch.zeros((), device=device)
    for depth, conv in enumerate(g.convs):
        x = kind.activation(x) if depth else x
        if isinstance(conv, GATConv):
            h = (x @ conv.lin.weight.t()).view(-1, conv.heads, conv.out_channels)
            score = (h * conv.att_src).sum(-1)[source] + (h * conv.att_dst).sum(-1)[target]
            e = F.leaky_relu(score, conv.negative_slope)
        elif isinstance(conv, GATv2Conv):
            at_source, at_target = gatv2_ends(conv, x)  # (heads, N, size)
            e = F.leaky_relu(at_source[:, source] + at_target[:, target], conv.negative_slope)
            e = (e * conv.att[0][:, None]).sum(-1)
        elif isinstance(conv, SAGEConv):
            at_target, at_source = x @ conv.lin_r.weight.t(), x @ conv.lin_l.weight.t()
            e = (at_target[target] * at_source[source].tanh()).sum(-1)
        else:
            assert isinstance(conv, GCNConv)
            h = x @ conv.lin.weight.t()
            e = (h[target] * h[source].tanh()).sum(-1)
        total = total + e.square().sum()
        x = kind.layer(conv, x, graph, device)
    return total / len(ids)


def l_preserve(
    theta: Sequence[Tensor], theta_star: Sequence[Tensor], weight: Sequence[Tensor]
) -> Tensor:
    """Return the sum over parameters of weight (theta - theta*)^2."""
    each = zip(theta, theta_star, weight, strict=True)
    return torch.stack([(w * (a - b).square()).sum() for a, b, w in each]).sum()


def total_slope(
    loss: Callable[[Mapping[str, Tensor]], Tensor], theta: Mapping[str, Tensor]
) -> Tensor:
    """Return the sum of |dloss / dtheta| as a difference quotient, which has a gradient."""
    slopes = gradients(loss(theta), list(theta.values()))
    step = {name: STEP * slope.sign() for name, slope in zip(theta, slopes, strict=True)}
    up = loss({name: p + step[name] for name, p in theta.items()})
    down = loss({name: p - step[name] for name, p in theta.items()})
    return (up - down) / (2.0 * STEP)
