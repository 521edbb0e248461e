"""CPCA: class prototype construction and augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.losses import l_distill, l_replay
from nodenova.model.model import Model, trained_head
from nodenova.nn.heads import UnitLinearHead, grow
from nodenova.nn.training import TrainedMethod
from nodenova.settings import setting
from nodenova.supervised._shared import grow_model, training_subgraph


@dataclass(frozen=True)
class CPCA(TrainedMethod):
    """Class prototype construction and augmentation: old classes by their means, mixed in pairs.

    Ren et al., "Incremental Graph Classification by Class Prototype Construction and Augmentation",
    CIKM 2023.

        L = L_new + replay L_replay + augment L_virtual + distill L_distill

    Construction: an old class is its prototype, the mean of z over its nodes; z has the topology in
    it. Prototypes stand in for old data: the head is trained on features drawn near them
    (L_replay), and the encoder is held near what it was (L_distill), so that they stay true. No old
    node is kept.

    Augmentation: every pair (a, b) of prototypes, old ones and those of the new classes, makes a
    virtual class,

        z_ab = r m_a + (1 - r) m_b,   r uniform in [0.4, 0.6]

    with a row of its own in the classifier while it trains. New classes then cannot spread into
    what lies between the old ones. Those rows are dropped in the end.

    What differs from the paper:

    - This follows its abstract and idea; the way of mixing is ours, because neither its full text
      nor code was at hand. The weights were chosen on old validation nodes of Cora and CiteSeer:
      stronger ones keep no more of the old classes.
    - Phase 1 is the common one, without virtual classes.
    - L_distill is over all visible nodes, which on a graph are more than the new ones; none has a
      label.

    Attributes:
        epochs: Number of epochs, of one step each.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        replay: Weight of L_replay.
        draws: Number of features drawn near each old prototype, and of mixtures z_ab of each pair,
            per epoch.
        augment: Weight of L_virtual.
        distill: Weight of L_distill.
    """

    needs: ClassVar[tuple[str, ...]] = ("new_labels",)

    replay: float = setting(10.0, at_least=0)
    draws: int = setting(20, at_least=1)
    augment: float = setting(1.0, at_least=0)
    distill: float = setting(10.0, at_least=0)

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        head, g = trained_head(model, "cpca"), model.encoder()
        n_old, n = len(model.classes), len(model.classes) + task.num_new
        a, b = torch.triu_indices(n, n, offset=1, device=model.device)  # every pair of classes once
        h = grow(grow(head, task.num_new), len(a) if self.augment else 0)
        subgraph = training_subgraph(model, task)
        old = model.frozen_encoder()
        replay = model.memory.replay
        graph, new = task.graph, torch.from_numpy(task.ids).to(model.device)
        if not self.distill:
            graph, new = subgraph.graph, subgraph.new  # no other node's z is needed
        with torch.no_grad():
            z_old = old(graph)  # (N, hidden), the same in every epoch
        member = F.one_hot(subgraph.y - n_old, task.num_new).to(z_old)  # (n, new)
        # (new, n): rows that average over the nodes of a class
        share = (member / member.sum(dim=0)).t()

        def terms(epoch: int) -> dict[str, Tensor]:
            z = g(graph)  # (N, hidden)
            parts = {"new": F.cross_entropy(h(z[new]), subgraph.y)}
            if self.replay:
                noise = torch.randn(self.draws, *replay.mean.shape, device=model.device)
                z_c, y_c = replay.draw(noise)
                parts["replay"] = self.replay * l_replay(h(z_c), y_c)
            if self.augment:
                m = torch.cat([replay.mean, share @ z[new]])  # (old + new, hidden)
                r = 0.4 + 0.2 * torch.rand(self.draws, len(a), 1, device=model.device)
                virtual = (r * m[a] + (1.0 - r) * m[b]).flatten(0, 1)
                y_v = n + torch.arange(len(a), device=model.device).repeat(self.draws)
                parts["virtual"] = self.augment * F.cross_entropy(h(virtual), y_v)
            if self.distill:
                parts["distill"] = self.distill * l_distill(z_old, z)
            return parts

        history = self._train(terms, [g, h])
        return grow_model(model, subgraph, g, drop_virtual(h, n), history)


@torch.no_grad()
def drop_virtual(h: UnitLinearHead, n: int) -> UnitLinearHead:
    """Return a head with the first n rows of `h`."""
    real = UnitLinearHead.on_sphere(h.linear.in_features, n, h.temperature)
    real.to(h.linear.weight.device)
    real.linear.weight.copy_(h.linear.weight[:n])
    real.linear.bias.copy_(h.linear.bias[:n])
    return real
