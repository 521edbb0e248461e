"""One classifier from two heads: the head of the old classes and a head of the new ones.

Nothing in such a method compares old with new, so the logit scale of the new head is set here,
without a label. m is the mean of z/|z| over the nodes of a class: stored for old classes, and for
new ones over the nodes that the method assigns to the class. There are two ways, by the kind of the
new head:

`match_logit_scale`, for a head that is linear in z/|z|. A softmax over new classes alone does not
change when all its logits are raised together; that one free number is set so that both heads have
the same mean logit at the means of their own classes:

    mean over new k of logit_k(m_k) = mean over old c of logit_c(m_c)

`nearest_mean`, for centers, and for a head that had nothing to learn (one new class): the rows of a
nearest-mean classifier on the scale of the old head. Such a classifier has w_c = kappa m_c + v and
b_c = beta - kappa |m_c|^2 / 2 for some kappa, v and beta that all classes share; they are fitted to
the old rows by least squares and applied to the new means. If the old head had exactly this form,
every class would win at its own mean.

Old means and old rows are those of phase 1: a method that changes its encoder without holding it
near the old one pays for it here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodenova.graph import NewTask
from nodenova.model.model import Model, trained_head
from nodenova.nn.class_memory import Memory
from nodenova.nn.encoder import Encoder, restrict_to_receptive_field
from nodenova.nn.heads import UnitLinearHead, as_nearest_mean, grow
from nodenova.nn.training import History

JOINTS = ("concatenated", "untrained")


def trained_parts(
    model: Model, task: NewTask, method: str
) -> tuple[Encoder, UnitLinearHead, NewTask, Tensor]:
    """Return encoder, head, and the task with its ids (n,) where z of the new nodes is decided."""
    g, head = model.encoder(), trained_head(model, method)
    task = restrict_to_receptive_field(task, g)
    return g, head, task, torch.from_numpy(task.ids).to(model.device)


def new_head(head: UnitLinearHead, num_new: int) -> UnitLinearHead:
    """Return h^u: z -> W z/|z| / temperature; without a bias h^u.linear(z) decides the same."""
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
    novel: UnitLinearHead | nn.Linear | Tensor,
    history: History | None = None,
) -> Model:
    """Return the model of a method with two heads, joined into one; see the top of this file.

    Args:
        model: Model before the stage.
        task: Task of the method, on the whole graph or on the receptive field of the new nodes.
        g: Encoder of the method.
        head: Head of the old classes, to which rows are added.
        new_rows: "concatenated", or "untrained" to leave the new rows as `grow` makes them.
        novel: Head h^u of the new classes, on z/|z| or on z; or the new class of each new node.
        history: Value of each term of the loss in each epoch.
    """
    old = model.memory
    ids = torch.from_numpy(task.ids).to(model.device)
    rows = novel.linear.weight if isinstance(novel, UnitLinearHead) else None
    h_u = novel.linear if isinstance(novel, UnitLinearHead) else novel
    with torch.no_grad():
        groups = h_u if isinstance(h_u, Tensor) else h_u(g.eval()(task.graph)[ids]).argmax(1)
    new = Memory.remember(g, task.graph, ids, groups, task.number)
    if rows is None or task.number == 1:
        w_new, b_new = nearest_mean(head, old.classes.center, new.classes.center)
    else:
        w_new, b_new = rows, match_logit_scale(head, old.classes.center, new.classes.center, rows)
    h_a = grow(head, task.number)
    if new_rows == "concatenated":
        with torch.no_grad():
            h_a.linear.weight[head.num_classes :] = w_new
            h_a.linear.bias[head.num_classes :] = b_new
    novel_head = None if isinstance(h_u, Tensor) else h_u
    known = old.append(new)
    return model.grown(encoder=g, head=h_a, novel_head=novel_head, memory=known, history=history)


@torch.no_grad()
def match_logit_scale(head: UnitLinearHead, old: Tensor, new: Tensor, rows: Tensor) -> Tensor:
    """Return the bias of the rows (new, hidden), one number; old, new: (C, hidden) class means."""
    at_home = ((head.linear.weight * old).sum(dim=1) + head.linear.bias).mean()
    return at_home - (rows * new).sum(dim=1).mean()


@torch.no_grad()
def nearest_mean(head: UnitLinearHead, old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows (new, hidden) and biases (new,) on the old head's scale, from class means."""
    kappa, v, beta = as_nearest_mean(head.linear.weight, head.linear.bias, old)
    return kappa * new + v, beta - 0.5 * kappa * new.square().sum(dim=1)
