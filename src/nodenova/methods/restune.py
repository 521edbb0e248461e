"""ResTune: residual tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.graph import NewTask
from nodenova.losses import l_cluster, l_perturb, l_pseudo, l_soft_targets, nearest, perturb
from nodenova.methods._centers import start_centers
from nodenova.methods._two_heads import joined_model
from nodenova.model.model import Model, trained_encoder, trained_head
from nodenova.nn.encoder import restrict_to_receptive_field
from nodenova.nn.sampling import Batches
from nodenova.nn.seeding import sample
from nodenova.nn.training import TrainedMethod
from nodenova.settings import choice, setting


@dataclass(frozen=True)
class ResTune(TrainedMethod):
    """Residual tuning: the old features stay, and the new classes learn a residual beside them.

    Liu & Tuytelaars, "Residual Tuning: Toward Novel Category Discovery Without Labels", TNNLS 2022.

        z     = z^b + z^r      basic features of the old encoder, and a residual that is learned
                               for the new classes
        q_ij, p_ij as in DTC: Student's t at centers mu started by k-means; p its sharpened target
        L     = KL(p || q) + L_MSE(q, q') + L_BCE(q_i . q_j, s_ij) + alpha L_LwF
        s_ij  = 1 for i itself and the k nodes most similar to it by the old head,
                0 for the k least, others left out
        L_LwF = - mean over nodes of softmax(h^l(z^b) / T) . log softmax(h^l(z) / T)

    Numbers are the released code's, where scripts differ that for CIFAR-10. What differs from the
    paper:

    - The residual is the last layer's, where the paper has a second last block; what is below is
      shared and frozen. A last layer without activation adds up (W^b + W^r; on gcn and sage exactly
      so), hence one encoder holds the sum and starts at W^r = 0. The paper reads old classes from
      z^b and new ones from z^b + z^r; to have both from one z, the residual is kept where the old
      head does not look, w_c . z^r = 0 for every old class c. What is left for L_LwF is the
      length of z, by which the old head divides (on gat also the attention). Without room (as many
      old classes as z has dimensions) the centers alone are learned. On an encoder of your own the
      residual is a linear layer of z^b.
    - L_LwF is taken over the new nodes and those near them, which on a graph can be seen; the paper
      has new images only. Teacher and student see the same part of the graph, both without dropout
      (the paper's ResNet has none): through dropout the student would have to be surer than its
      teacher to give the same answers.
    - Distances are in units of sigma, their root mean square after k-means: a head that
      reads z/|z| ignores the length of z.
    - L_BCE is on q itself instead of on a third head, and is a mean over the pairs that count. KL
      is a mean over nodes; the released code divides it by the number of new classes once more. q'
      comes from z with noise, not another crop.
    - One step per epoch, on all new nodes, with Adam at phase 1's rate and decay, as in `DTC`.
    - The released code calls a node new where q, at most 1, exceeds every old logit. Behind a
      confident old head that is never, so "untrained" is the default here: it keeps the old
      classes, which is what the method is for. Old logits of a GNN that was stopped early are
      themselves about 1, and the rule as it stands would hang on when that was. "concatenated" puts
      rows from the class means of its own assignments behind the old head's (`_two_heads`) and
      loses most of Old: z moves, and the old means are remembered as they were.
    - argmax q is linear in z (weight mu, bias -|mu|^2/2), and that is h^u. One new class: nothing
      is trained.

    Attributes:
        epochs: Number of epochs, of one step each, on all new nodes.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        clustering: Weight of KL(p || q); released code.
        update: Number of epochs between updates of p; released script for CIFAR-10.
        consistency: Weight of L_MSE, without ramp-up; released code.
        pairwise: Weight of L_BCE; released code.
        k: Most and least similar nodes, in s_ij of L_BCE; released code.
        alpha: Weight of L_LwF; released code (it sets 1 regardless of its option).
        temperature: T of L_LwF; released code.
        eta: Size of the perturbation in q', SWORD's.
        restarts: Number of starts of k-means; released code.
        new_rows: "untrained": as `grow` makes them; "concatenated": rows from class means.
        pair_nodes: Number of new nodes above which an epoch compares pairs of a sample, in L_BCE.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.ResTune(epochs=5))
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> sorted(model.stages[-1].history)  # KL(p || q), L_MSE, L_LwF and L_BCE
        ['clustering', 'consistency', 'distill', 'pairwise']
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes

    clustering: float = setting(1.0, at_least=0)
    update: int = setting(5, at_least=1)
    consistency: float = setting(1.0, at_least=0)
    pairwise: float = setting(1.0, at_least=0)
    k: int = setting(10, at_least=1)
    alpha: float = setting(1.0, at_least=0)
    temperature: float = setting(2.0, above=0)
    eta: float = setting(0.2, at_least=0)
    restarts: int = setting(20, at_least=1)
    new_rows: str = choice("untrained", "concatenated")
    pair_nodes: int = setting(4096, at_least=1)

    def discover(self, model: Model, task: NewTask) -> Model:
        head = trained_head(model, "restune").requires_grad_(False)
        g = trained_encoder(model, "restune").requires_grad_(False)
        last = [p.requires_grad_() for p in g.last_layer()]  # W, b
        basic = [p.detach().clone() for p in last]
        unseen = orthogonal(head.linear.weight)  # (hidden, hidden)
        task = restrict_to_receptive_field(task, g)
        ids = torch.from_numpy(task.ids).to(model.device)
        with torch.no_grad():
            z_b = g(task.graph)  # (nodes of the subgraph, hidden): the residual is still zero
            logits_b = head(z_b)  # (nodes of the subgraph, old)
        centers = start_centers(z_b[ids], task.number, self.restarts)
        p = centers.target(g, task)  # (n, new)
        batches = Batches(g, task.graph, ids, slice(None))

        @torch.no_grad()
        def keep_unseen() -> None:
            for now, start in zip(last, basic, strict=True):
                now.copy_(start + unseen @ (now - start))

        def terms(epoch: int) -> dict[str, Tensor]:
            nonlocal p
            keep_unseen()
            if epoch > 1 and (epoch - 1) % self.update == 0:
                p = centers.target(g, task)
            graph, (new, every) = batches.draw()
            z = g.eval()(graph)  # (nodes of the subgraph, hidden), without dropout
            z_u = z[new.rows]
            q = centers.assign(z_u)  # (n, new)
            parts = {}
            if self.clustering:
                parts["clustering"] = self.clustering * l_cluster(p[new.at], q)
            if self.consistency:
                q_prime = centers.assign(perturb(z_u, torch.randn_like(z_u), self.eta))
                parts["consistency"] = self.consistency * l_perturb(q.log(), q_prime.log())
            if self.pairwise:
                some = sample(len(z_u), self.pair_nodes, model.device)
                y_old = F.softmax(head(z_u[some]).detach(), dim=1)
                like = y_old @ y_old.t()
                same, unlike = nearest(like, self.k).fill_diagonal_(1.0), nearest(-like, self.k)
                # With few nodes, some are among the most and the least similar: these are left out.
                clear = (same + unlike) == 1
                s = q[some] @ q[some].t()
                parts["pairwise"] = self.pairwise * l_pseudo(s[clear], same[clear])
            if self.alpha:
                logits, before = head(z[every.rows]), logits_b[every.ids]
                parts["distill"] = self.alpha * l_soft_targets(logits, before, self.temperature)
            return parts

        epochs = self.epochs if task.number > 1 else 0
        history = self._train(terms, [g, centers.h_u], epochs)
        keep_unseen()
        h_u = centers.nearest_center_head()
        return joined_model(model, task, g, head, self.new_rows, h_u, history)


def orthogonal(rows: Tensor) -> Tensor:
    """Return the (hidden, hidden) projection onto the complement of all rows (n, hidden)."""
    _, size, basis = torch.linalg.svd(rows.detach().double(), full_matrices=False)
    basis = basis[size > 1e-6 * size.max()]
    identity = torch.eye(rows.shape[1], dtype=basis.dtype, device=rows.device)
    return (identity - basis.t() @ basis).to(rows.dtype)
