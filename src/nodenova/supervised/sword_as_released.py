"""SWORD as in the authors' script for new classes: with the labels of the new nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nodenova.data.labels import LabelledNewTask
from nodenova.losses import l_distill_global, l_perturb, l_replay, l_self, perturb_logits
from nodenova.model.model import Model, trained_head
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import grow
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import setting


@dataclass(frozen=True)
class SwordAsReleased(TrainedMethod):
    """SWORD's released script, which uses labels of new nodes: measures what they are worth.

    Hou et al., CIKM 2024, released code. Not the paper's method; that is `Sword`.

        L    = novel (L_CE + beta1 L_Self + beta2 L_Perturb) + base (L_Replay + omega L_Distill)
        beta = alpha * rampup(epoch)

    - L_CE is cross-entropy of the joint head with the TRUE classes of the new training nodes.
      L_Pseudo (Eq. 4) is left out, so h^u is trained by nothing but L_Perturb: the
      predictions it passes to L_Self are those of a head that never learned anything.
    - L_Perturb puts the noise on h^u's logits, with one standard deviation for all nodes and
      classes.
    - L_Replay draws 2 features per class, with one sigma per dimension for all classes (the mean
      over classes, each from the unbiased variance + 1e-5), and leaves out the temperature.
    - L_Distill compares all nodes at once: | Z_old/|Z_old| - Z/|Z| |, norms over the whole matrix.
    - Fixed epochs, which the authors choose by dataset; 530 is Cora with GCN. `novel` is 1.8 in the
      script with the labels and 1.2 in the versions without.

    It starts from the script's phase 1 (no early stopping; epochs and hidden size by dataset; for
    GAT attention v2 with dropout of 0.6, on the input too), which `nodenova bench` gives it;
    `nodenova run` and Python start it from any model. The script's phase 1 has a fixed seed; here
    it has the seed of the run.

    Attributes:
        epochs: Number of epochs, of one step each, on the whole visible graph.
        lr: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        alpha1: beta1 = alpha1 * rampup, weight of L_Self, Eq. 6.
        alpha2: beta2 = alpha2 * rampup, weight of L_Perturb, Eq. 8.
        rampup_epochs: Number of epochs of the ramp-up of beta1 and beta2.
        eta: Size of the perturbation, Eq. 7.
        draws: Number of features drawn per class and epoch, in L_Replay, Eq. 10.
        omega: omega_fd, weight of L_Distill, Eq. 11.
        novel: Weight of the first three terms.
        base: Weight of the last two; base / novel is lambda of Eq. 14.
    """

    needs: ClassVar[tuple[str, ...]] = ("new_labels",)

    epochs: int = setting(530, at_least=1)
    alpha1: float = setting(0.08, at_least=0)
    alpha2: float = setting(5.0, at_least=0)
    rampup_epochs: int = setting(50, at_least=0)
    eta: float = setting(0.2, at_least=0)
    draws: int = setting(2, at_least=1)
    omega: float = setting(10.0, at_least=0)
    novel: float = setting(1.8, at_least=0)
    base: float = setting(0.5, at_least=0)

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        g, h_a = model.encoder(), grow(trained_head(model, "sword_as_released"), task.num_new)
        assert task.y is not None
        h_u = nn.Linear(g.spec.hidden, task.num_new).to(model.device)
        n_old, memory = len(model.classes), model.memory
        per_class = float(memory.classes.dof) / n_old + 1.0
        unbiased = memory.replay.var * per_class / max(per_class - 1.0, 1.0)
        sigma = (unbiased + 1e-5).sqrt().mean(dim=0)  # (hidden,)
        ids, y = (torch.from_numpy(a).to(model.device) for a in (task.ids, task.y))
        with torch.no_grad():
            z_old = model.frozen_encoder()(task.graph)  # (N, hidden), the same in every epoch

        def terms(epoch: int) -> dict[str, Tensor]:
            z = g(task.graph)  # (N, hidden)
            logits = h_u(z)  # (N, new)
            logits_u, logits_a = logits[ids], h_a(z[ids])
            logits_prime = perturb_logits(logits_u, logits, torch.randn_like(logits_u), self.eta)
            y_hat = n_old + logits_u.detach().argmax(dim=1)  # Eq. 5
            noise = torch.randn(self.draws, *memory.replay.mean.shape, device=model.device)
            z_c = (memory.replay.mean + sigma * noise).flatten(0, 1)  # (draws * old, hidden)
            y_c = torch.arange(n_old, device=model.device).repeat(self.draws)
            ramp = rampup(epoch, self.rampup_epochs)
            return {
                "ce": self.novel * F.cross_entropy(logits_a, n_old + y),
                "self": self.novel * self.alpha1 * ramp * l_self(logits_a, y_hat),
                "perturb": self.novel * self.alpha2 * ramp * l_perturb(logits_u, logits_prime),
                "replay": self.base * l_replay(h_a(z_c) * h_a.temperature, y_c),
                "distill": self.base * self.omega * l_distill_global(z_old, z),
            }

        history = self._train(terms, [g, h_a, h_u])
        known = memory.append(Memory.remember(g, task.graph, ids, y, task.num_new))
        return model.grown(encoder=g, head=h_a, novel_head=h_u, memory=known, history=history)
