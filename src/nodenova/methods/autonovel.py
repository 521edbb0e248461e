"""AutoNovel: rank statistics and consistency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.graph import NewTask
from nodenova.losses import l_pairs, l_perturb, perturb, top_k_sets
from nodenova.methods._two_heads import joined_model, new_head, trained_parts
from nodenova.model.model import Model
from nodenova.nn.sampling import Batches
from nodenova.nn.seeding import sample
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import choice, setting


@dataclass(frozen=True)
class AutoNovel(TrainedMethod):
    """AutoNovel: pairs of new nodes by ranking statistics, and consistency under noise.

    Han et al., "Automatically Discovering and Learning New Visual Categories with Ranking
    Statistics", ICLR 2020.

        eta   = softmax(h^u(z)),  eta' of the perturbed z'
        s_ij  = 1 if top_k(z_i) = top_k(z_j) as sets, else 0
        L_BCE = - mean over pairs of s_ij log(eta_i . eta'_j) + (1 - s_ij) log(1 - eta_i . eta'_j)
        L_MSE = mean of (eta_i - eta'_i)^2
        L     = L_BCE + omega(t) L_MSE,  omega(t) = omega exp(-5 (1 - t/T)^2)

    k, omega and T are those of the released script for CIFAR-10, which with five old and five new
    classes is the nearest to these graphs (for CIFAR-100 omega = 50 and T = 150, for SVHN 50 and
    80). What differs from the paper:

    - L_CE on old nodes and L_MSE of h^l are dropped with the old nodes; nothing preserves the old
      classes.
    - No self-supervised pre-training, and the whole encoder is trained: two layers leave no "last
      block" worth freezing.
    - The second view is z with noise (eta * std per dimension) instead of another crop.
    - One step per epoch, on all new nodes, with Adam at phase 1's rate and decay: the script's SGD
      (0.1, momentum 0.9, a tenth after epoch 170, decay 1e-4, batches of 128) takes some 400 steps
      per epoch and belongs to its ResNet.
    - h^u reads z/|z| at the old head's temperature, without bias, so that its rows can stand behind
      the old head's as they are; `_two_heads` sets their scale. The paper's own joint head is
      trained on old labels and pseudo-labels together.
    - One new class: there is nothing to separate, nothing is trained; its row in the joint head is
      the mean of the new nodes.

    Attributes:
        epochs: Number of epochs, of one step each (see above); released scripts.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        k: Number of top activations that must agree, in s_ij; released code.
        pairwise: Weight of L_BCE; released code.
        omega: Weight of L_MSE after the ramp-up; released script for CIFAR-10.
        rampup_epochs: T of omega(t); released script for CIFAR-10.
        eta: Size of the perturbation z', SWORD's.
        new_rows: "concatenated": h^u's rows behind the old head's; "untrained": as `grow` makes
            them.
        pair_nodes: Number of new nodes above which each epoch takes a random sample of them.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.AutoNovel(epochs=5))
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> sorted(model.stages[-1].history)  # L_MSE and L_BCE, epoch by epoch
        ['consistency', 'pairwise']
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes

    k: int = setting(5, at_least=1)
    pairwise: float = setting(1.0, at_least=0)
    omega: float = setting(5.0, at_least=0)
    rampup_epochs: int = setting(50, at_least=0)
    eta: float = setting(0.2, at_least=0)
    new_rows: str = choice("concatenated", "untrained")
    pair_nodes: int = setting(4096, at_least=1)

    def discover(self, model: Model, task: NewTask) -> Model:
        g, head, task, ids = trained_parts(model, task, "autonovel")
        h_u = new_head(head, task.number)
        batches = Batches(g, task.graph, ids)

        def terms(epoch: int) -> dict[str, Tensor]:
            graph, (new,) = batches.draw()
            z = g(graph)[new.rows]
            z_u = z[sample(len(z), self.pair_nodes, model.device)]  # (n, hidden)
            logits = h_u(z_u)  # (n, new)
            logits_prime = h_u(perturb(z_u, torch.randn_like(z_u), self.eta))
            parts = {}
            if self.pairwise:
                key = top_k_sets(z_u, self.k)
                parts["pairwise"] = self.pairwise * l_pairs(logits, logits_prime, key)
            if self.omega:
                omega = self.omega * rampup(epoch, self.rampup_epochs)
                parts["consistency"] = omega * l_perturb(logits, logits_prime)
            return parts

        epochs = self.epochs if task.number > 1 else 0
        history = self._train(terms, [g, h_u], epochs)
        return joined_model(model, task, g, head, self.new_rows, h_u, history)
