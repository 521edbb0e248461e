"""ER-GNN: experience replay on a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.model.model import Model, trained_head
from nodenova.nn.heads import grow
from nodenova.nn.numerics import solve
from nodenova.nn.training import TrainedMethod
from nodenova.settings import choice, setting
from nodenova.supervised._shared import grow_model, training_subgraph


@dataclass(frozen=True)
class ERGNN(TrainedMethod):
    """Experience replay: some nodes of each old class are kept and trained on beside the new ones.

    Zhou & Cao, "Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience
    Replay", AAAI 2021.

        L    = beta L_new + (1 - beta) L_memory
        beta = |E| / (|V| + |E|)       V: new labelled nodes, E: the memory

    The memory E has `memory` nodes of each old class, chosen when the old encoder stands, in one of
    three ways:

        mf  mean of features           those nearest to the mean of their class
        cm  coverage maximization      those with the fewest nodes of other classes
                                       closer than `distance`
        im  influence maximization     those whose removal would move the classifier most:
                                       |H^-1 grad L(v)|

    What differs from the paper:

    - The paper's method is given the task at test time; here one joint head decides, and both
      losses are over all its logits.
    - z is brought to unit length before distances are taken, as the head does: `distance` is
      between points on a sphere.
    - Of the paper's influence function only the joint head's part is taken, theta = (W, b) with z
      held fixed. There H is known in closed form and solved exactly, with `damping` on its
      diagonal, which is what weight decay adds to it.

    Attributes:
        epochs: Number of epochs, of one step each.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        memory: Number of nodes kept of each old class, in E.
        choice: Rule by which E keeps nodes: "mf", "cm" or "im".
        distance: Radius of "cm".
        damping: Constant added to the diagonal of H, in "im".
    """

    needs: ClassVar[tuple[str, ...]] = ("new_labels", "old_nodes", "old_labels")

    memory: int = setting(10, at_least=1)
    choice: str = choice("mf", "cm", "im")
    distance: float = setting(0.5, above=0)
    damping: float = setting(5e-4, above=0)

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        head = trained_head(model, "er_gnn")
        g, h_a = model.encoder(), grow(head, task.num_new)
        assert task.old_ids is not None
        assert task.old_y is not None
        with torch.no_grad():
            old = torch.from_numpy(task.old_ids).to(model.device)
            z = F.normalize(model.frozen_encoder()(task.graph)[old], dim=1)
            p = head(z).softmax(dim=1)
        y_old = torch.from_numpy(task.old_y).to(model.device)
        if self.choice == "mf":
            worth = nearness_to_mean(z, y_old)
        elif self.choice == "cm":
            worth = -count_strangers(z, y_old, self.distance)
        else:
            u = F.pad(z, (0, 1), value=1.0) / head.temperature
            worth = influence(u, p, y_old, self.damping)
        keep = best_per_class(worth.cpu().numpy(), task.old_y, self.memory)
        subgraph = training_subgraph(model, task, keep=keep)
        beta = len(subgraph.old) / (len(subgraph.new) + len(subgraph.old))

        def terms(epoch: int) -> dict[str, Tensor]:
            z = g(subgraph.graph)
            return {
                "new": beta * F.cross_entropy(h_a(z[subgraph.new]), subgraph.y),
                "memory": (1.0 - beta) * F.cross_entropy(h_a(z[subgraph.old]), subgraph.y_old),
            }

        history = self._train(terms, [g, h_a])
        return grow_model(model, subgraph, g, h_a, history)


def best_per_class(worth: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the `most` best nodes per class, ascending; ties go to the earlier."""
    order = np.argsort(-worth, kind="stable")
    return np.sort(np.concatenate([order[y[order] == c][:most] for c in np.unique(y)]))


def nearness_to_mean(z: Tensor, y: Tensor) -> Tensor:
    """Return (n,) minus the distance of z (n, hidden) to the mean of its class y (n,)."""
    member = F.one_hot(y).to(z)  # (n, C)
    mean = member.t() @ z / member.sum(dim=0).clamp_min(1.0)[:, None]  # (C, hidden)
    return -(z - mean[y]).norm(dim=1)


def count_strangers(z: Tensor, y: Tensor, distance: float) -> Tensor:
    """Return (n,) the number of nodes of other classes that are closer than `distance`."""
    return ((torch.cdist(z, z) < distance) & (y[:, None] != y[None, :])).sum(dim=1)


def influence(u: Tensor, p: Tensor, y: Tensor, damping: float) -> Tensor:
    """Return (n,) the length of H^-1 grad_theta L(v) for a softmax classifier with logits theta u.

    u: (n, d) inputs, p: (n, C) its probabilities, y: (n,) classes.

        grad L(v) = (p - onehot(y)) x u
        H         = mean over nodes of (diag(p) - p p') x (u u') + damping
    """
    u, p = u.double(), p.double()
    (n, d), classes = u.shape, p.shape[1]
    curvature = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]  # (n, C, C)
    h = torch.einsum("nab,ni,nj->aibj", curvature, u, u).reshape(classes * d, classes * d) / n
    h += damping * torch.eye(classes * d, dtype=h.dtype, device=h.device)
    gradient = ((p - F.one_hot(y, classes))[:, :, None] * u[:, None, :]).reshape(n, classes * d)
    return solve(h, gradient.t(), "the curvature of the loss").norm(dim=0)
