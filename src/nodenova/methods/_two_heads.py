"""One classifier from two heads: the old classes' and one that has learned the new ones apart.

Nothing in such a method compares old with new. What is missing is how loud the new head speaks; it
is set without a label. m is the mean of z/|z| over the nodes of a class, remembered for old
classes, and for new ones over those nodes that the method itself puts in the class. There are two
ways, by what the method's own new head is:

`match_logit_scale`, for a head that is linear in z/|z|. A softmax over new classes alone does not
change when all its logits are raised together; that one free number is set so that both heads are
equally loud at home:

    mean over new k of logit_k(m_k) = mean over old c of logit_c(m_c)

`nearest_mean`, for centers, and for a head that had nothing to learn (one new class): the rows of a
nearest-mean classifier on the old head's scale. Such a classifier has w_c = kappa m_c + v and
b_c = beta - kappa |m_c|^2 / 2 for some kappa, v and beta that all classes share; they are fitted to
the old rows by least squares and applied to the new means. Were the old head exactly of this form,
every class would win at its own mean.

Old means and old rows are those of phase 1: a method that moves its encoder and holds nothing pays
for it here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodenova.graph import NewTask
from nodenova.model.model import Model
from nodenova.nn.class_memory import Memory
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import UnitLinearHead, as_nearest_mean, grow
from nodenova.nn.training import History

JOINTS = ("concatenated", "untrained")


def head_for_new(head: UnitLinearHead, num_new: int) -> UnitLinearHead:
    """h^u: z -> W z/|z| / temperature, read like the old head.

    It has no bias, so that h^u.linear on z itself decides the same.
    """
    h_u = UnitLinearHead.on_sphere(head.linear.in_features, num_new, head.temperature)
    h_u.to(head.linear.weight.device)
    torch.nn.init.zeros_(h_u.linear.bias)
    h_u.linear.bias.requires_grad_(False)
    return h_u


def joined_model(
    model: Model,
    task: NewTask,
    g: Encoder,
    head: UnitLinearHead,
    new_rows: str,
    *,
    groups: Tensor | None = None,
    novel_head: nn.Linear | None = None,
    rows: Tensor | None = None,
    history: History | None = None,
) -> Model:
    """What a method with two heads returns: a model that has joined them into one.

    How loud the new rows speak beside the old ones is set without a label: see `_two_heads`.

    Args:
        model: What the method was given.
        task: Its new nodes, in the whole graph or in their receptive field.
        g: The method's encoder.
        head: The old classes' head, to which rows are added.
        new_rows: "concatenated", or "untrained" to leave the new rows as `grow` makes them.
        groups: (n,) which new class the method puts each new node in; by `novel_head` unless given.
        novel_head: h^u, if the method has one.
        rows: (new, hidden) of a new head that is linear in z/|z|, if it is.
        history: What each term of the loss was in each epoch.

    Returns:
        The encoder, a joint head on the old `head`, and the statistics of the groups.
    """
    old = model.memory
    ids = torch.from_numpy(task.ids).to(model.device)
    if groups is None:
        assert novel_head is not None
        with torch.no_grad():
            groups = novel_head(g.eval()(task.graph)[ids]).argmax(dim=1)
    new = Memory.remember(g, task.graph, ids, groups, task.number)
    if rows is None or task.number == 1:
        w_new, b_new = nearest_mean(head, old.classes.center, new.classes.center)
    else:
        w_new, b_new = rows, match_logit_scale(head, old.classes.center, new.classes.center, rows)
    h_a = grow(head, task.number)
    if new_rows == "concatenated":  # else the new rows stay as `grow` made them, untrained
        with torch.no_grad():
            h_a.linear.weight[head.num_classes :] = w_new
            h_a.linear.bias[head.num_classes :] = b_new
    return model.grown(
        encoder=g, head=h_a, novel_head=novel_head, memory=old.append(new), history=history
    )


@torch.no_grad()
def match_logit_scale(head: UnitLinearHead, old: Tensor, new: Tensor, rows: Tensor) -> Tensor:
    """The bias of the rows (new, hidden), one number. old, new: (C, hidden) means of classes."""
    at_home = ((head.linear.weight * old).sum(dim=1) + head.linear.bias).mean()
    return at_home - (rows * new).sum(dim=1).mean()


@torch.no_grad()
def nearest_mean(head: UnitLinearHead, old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (new, hidden) and biases (new,) on the scale of the old head.

    old, new: (C, hidden) means of the classes.
    """
    kappa, v, beta = as_nearest_mean(head.linear.weight, head.linear.bias, old)
    return kappa * new + v, beta - 0.5 * kappa * new.square().sum(dim=1)
