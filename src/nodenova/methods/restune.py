"""ResTune: residual tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.centres import decide_by_centres, start_centres
from nodenova.encoders import Encoder
from nodenova.joining import JOINTS, joined_model
from nodenova.losses.clustering import l_cluster, l_soft_targets, student_t, target_distribution
from nodenova.losses.contrast import nearest
from nodenova.losses.pairwise import l_pseudo
from nodenova.losses.self_training import l_perturb, perturbed
from nodenova.model import Model, trained_head
from nodenova.settings import check_settings
from nodenova.task import NewTask
from nodenova.training import minimise


@dataclass(frozen=True)
class ResTune:
    """Liu & Tuytelaars, "Residual Tuning: Toward Novel Category Discovery Without Labels", TNNLS 2022.

        z    = z^b + z^r      basic features of the old encoder, frozen, and a residual that is learnt for the new classes
        q_ij, p_ij as in DTC: Student's t around centres mu started by k-means; p its sharpened target
        L    = KL(p || q) + L_MSE(q, q') + L_BCE(q_i . q_j, s_ij) + alpha L_LwF
        s_ij = 1 for i itself and the k nodes that the old head finds most like it, 0 for the k least, others left out
        L_LwF = - mean over nodes of softmax(h^l(z^b) / T) . log softmax(h^l(z) / T)

    What differs from the paper:
    - The residual is the last layer's, where the paper has a second last block; what is below is shared, here also
      frozen. A last layer without activation adds up (W^b + W^r; on gcn and sage exactly so), hence one encoder holds the
      sum and starts at W^r = 0. For the same reason old classes are read from z^b + z^r, not from the basic branch alone.
    - Distances are in units of sigma, their root mean square after k-means: the cosine head has left z without a scale.
    - L_LwF is taken over all visible nodes, which on a graph are more than the new ones; none has a label.
    - L_BCE speaks of q itself instead of a third head. q' comes from z with noise instead of another crop. Adam.
    - argmax q is linear in z (weight mu, bias -|mu|^2/2), and that is h^u. It is not linear in z/|z|, so the joint head
      gets rows from the class means of its own assignments (see `joining`) behind the old head's.
    - One new class: nothing to cluster, L_LwF alone.
    """

    prefers: ClassVar[str] = "gcn"

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    clustering: float = 1.0  # weight of KL(p || q)
    update: int = 5  # renew p every so many epochs
    consistency: float = 1.0  # weight of L_MSE
    pairwise: float = 1.0  # weight of L_BCE
    k: int = 10  # most and least similar nodes in L_BCE
    alpha: float = 1.0  # weight of L_LwF
    temperature: float = 2.0  # T of L_LwF
    eta: float = 0.2  # size of the perturbation
    restarts: int = 20  # of k-means
    joint: str = "concatenated"  # "strict": the joint head's new rows as `grow` made them
    pair_nodes: int = 4096  # above this many new nodes, each epoch compares the pairs of a random sample

    def __post_init__(self) -> None:
        counts, choices = ("epochs", "update", "k", "restarts", "pair_nodes"), {"joint": JOINTS}
        not_negative = ("lr", "weight_decay", "clustering", "consistency", "pairwise", "alpha", "eta")
        check_settings(self, counts=counts, positive=("temperature",), not_negative=not_negative, choices=choices)

    def discover(self, model: Model, task: NewTask) -> Model:
        head, g = trained_head(model, "restune"), model.encoder()
        assert isinstance(g, Encoder)  # a trained head stands on a trained encoder
        for layer in list(g.convs)[:-1]:
            layer.requires_grad_(False)
        head.requires_grad_(False)
        ids = torch.from_numpy(task.ids).to(model.device)
        several = task.num_new > 1  # of one class q is always sure: constants, whose only effect would be weight decay
        with torch.no_grad():
            z_b = g(task.graph)  # (N, hidden): the residual is still zero
            logits_b = head(z_b)  # (N, old)
        h_u, sigma = start_centres(z_b[ids], task.num_new, self.restarts)  # its weight is mu

        def assigned(z_u: Tensor) -> Tensor:
            return student_t(z_u / sigma, h_u.weight / sigma)  # q, (n, new)

        p = target_distribution(assigned(z_b[ids]))  # (n, new)

        def terms(epoch: int) -> dict[str, Tensor]:
            nonlocal p
            if epoch > 1 and (epoch - 1) % self.update == 0:
                with torch.no_grad():
                    p = target_distribution(assigned(g.eval()(task.graph)[ids]))
                g.train()
            z = g(task.graph)  # (N, hidden)
            z_u = z[ids]
            q = assigned(z_u)  # (n, new)
            parts = {}
            if self.clustering and several:
                parts["clustering"] = self.clustering * l_cluster(p, q)
            if self.consistency and several:
                q_prime = assigned(perturbed(z_u, torch.randn_like(z_u), self.eta))
                parts["consistency"] = self.consistency * l_perturb(q.log(), q_prime.log())
            if self.pairwise and several:
                some = torch.randperm(len(ids))[: self.pair_nodes].to(ids.device)
                y_old = F.softmax(head(z_u[some]).detach(), dim=1)
                like = y_old @ y_old.t()
                same, unlike = nearest(like, self.k).fill_diagonal_(1.0), nearest(-like, self.k)
                told = (same + unlike) == 1  # few nodes: what is among the most and the least similar says nothing
                parts["pairwise"] = self.pairwise * l_pseudo((q[some] @ q[some].t())[told], same[told])
            if self.alpha:
                parts["distill"] = self.alpha * l_soft_targets(head(z), logits_b, self.temperature)
            return parts

        history = minimise(terms, [g, h_u], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        decide_by_centres(h_u)
        with torch.no_grad():
            groups = h_u(g(task.graph)[ids]).argmax(dim=1)
        return joined_model(model, task, g, head, groups, self.joint, novel_head=h_u, history=history)
