"""One classifier from two heads: the old classes' and one that has learnt the new classes apart from them.

Nothing in such a method compares old with new. What is missing is taken from how the old head relates to the old classes'
means, without a label; m is the mean of z/|z| over the nodes of a class, remembered for old classes, and for new ones over
the nodes that the method itself puts in the class.

A new head that is linear in z/|z| (`rows`) is put behind the old one as it is. A softmax over new classes alone does not
change when all its logits are raised together; that one free number is set so that both heads are equally loud at home:

    mean over new k of logit_k(m_k) = mean over old c of logit_c(m_c)

Other new heads (centres), and one that had nothing to learn (one new class), become the rows of a nearest-mean classifier
on the old head's scale. Such a classifier has w_c = kappa m_c + v and b_c = beta - kappa |m_c|^2 / 2 for some kappa, v and
beta that all classes share; they are fitted to the old rows by least squares and applied to the new means. Were the old
head exactly of this form, every class would win at its own mean.

Old means and old rows are those of phase 1: a method that moves its encoder and holds nothing pays for it here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodenova.encoders import Encoder
from nodenova.heads import CosineHead, grow
from nodenova.model import Model
from nodenova.prototypes import Prototypes
from nodenova.task import NewTask
from nodenova.training import History
from nodenova.views import Views

JOINTS = ("concatenated", "strict")


def head_for_new(head: CosineHead, num_new: int) -> CosineHead:
    """h^u: z -> W z/|z| / temperature, read like the old head. No bias, so that h^u.linear on z itself decides the same."""
    h_u = CosineHead(head.linear.in_features, num_new, head.temperature).to(head.linear.weight.device)
    torch.nn.init.zeros_(h_u.linear.bias)
    h_u.linear.bias.requires_grad_(False)
    return h_u


@torch.no_grad()
def joined(head: CosineHead, old: Prototypes, new: Prototypes, joint: str, rows: Tensor | None = None) -> CosineHead:
    """The old head's rows and, behind them, the new head's; "strict" leaves the new ones as `grow` made them, untrained.

    rows: (new, hidden), or None to have them from the means of the new classes.
    """
    num_new, n_old = len(new.mean), head.num_classes
    h_a = grow(head, num_new)
    if joint == "strict":
        return h_a
    w, b = head.linear.weight, head.linear.bias
    if rows is None or num_new == 1:
        kappa, v, beta = as_nearest_mean(w, b, old.centre)
        rows, bias = kappa * new.centre + v, beta - 0.5 * kappa * new.centre.square().sum(dim=1)
    else:
        at_home = ((w * old.centre).sum(dim=1) + b).mean()
        bias = at_home - (rows * new.centre).sum(dim=1).mean()
    h_a.linear.weight[n_old:] = rows
    h_a.linear.bias[n_old:] = bias
    return h_a


def joined_model(
    model: Model,
    task: NewTask,
    g: Encoder | Views,
    head: CosineHead,
    groups: Tensor,
    joint: str,
    *,
    rows: Tensor | None = None,
    novel_head: nn.Linear | None = None,
    history: History | None = None,
) -> Model:
    """What a method with two heads returns: its encoder, a joint head on the old `head`, the statistics of its groups."""
    old, ids = model.prototypes, torch.from_numpy(task.ids).to(model.device)
    new = Prototypes.remember(g, task.graph, ids, groups, task.num_new)
    h_a = joined(head, old, new, joint, rows)
    return model.grown(encoder=g, head=h_a, novel_head=novel_head, prototypes=old.followed_by(new), history=history)


def as_nearest_mean(w: Tensor, b: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """kappa (), v (hidden,) and beta () for which w_c ~ kappa m_c + v and b_c ~ beta - kappa |m_c|^2 / 2.

    w, m: (C, hidden), b: (C,). One class says nothing of kappa; it is then the length of its row.
    """
    spread, rows = m - m.mean(dim=0), w - w.mean(dim=0)
    kappa = (rows * spread).sum() / spread.square().sum() if len(m) > 1 else w.norm()
    return kappa, w.mean(dim=0) - kappa * m.mean(dim=0), (b + 0.5 * kappa * m.square().sum(dim=1)).mean()
