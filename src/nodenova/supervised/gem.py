"""GEM: gradient episodic memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import nnls
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.model.model import Model, trained_head
from nodenova.nn.heads import grow
from nodenova.nn.training import TrainedMethod, gradients
from nodenova.settings import choice, setting
from nodenova.supervised._shared import grow_model, training_subgraph


@dataclass(frozen=True)
class GEM(TrainedMethod):
    """Gradient episodic memory: steps that do not raise the loss on the memory of earlier stages.

    Lopez-Paz & Ranzato, "Gradient Episodic Memory for Continual Learning", NeurIPS 2017.

    The new labels are learned in a direction that does not raise the loss on the memory of any
    earlier stage k:

        g = grad L_new,  g_k = grad L_memory,k,  rows of G: the g_k
        min over g~ of  1/2 |g~ - g|^2   with  <g~, g_k> >= 0 for all k
        dual:  min over v of  1/2 v'GG'v + g'G'v,  v >= margin,   g~ = g + G'v

    and g~ = g where no constraint is broken. One stage is one task k; its memory is `memory` random
    nodes per class.

    What differs from the paper:

    - The paper's method is given the task at test time and compares the logits of one task only.
      Here one joint head decides, so losses are over all logits; `logits="own"` takes each task's
      own, as in the paper: then nothing compares old with new.
    - Adam instead of plain gradient steps: the constraint holds for g~, not for Adam's step.
    - The memory holds a share of each class instead of the last examples seen. Margin 0.5 is the
      paper's.

    Attributes:
        epochs: Number of epochs, of one step each.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        memory: Number of nodes kept of each old class, in L_memory,k.
        margin: Lower bound of v in the dual: the pull of the memory when a constraint is broken.
        logits: "all"; or "own": each task's loss over its own classes only, as in the paper.
    """

    needs: ClassVar[tuple[str, ...]] = ("new_labels", "old_nodes", "old_labels")

    memory: int = setting(10, at_least=1)
    margin: float = setting(0.5, at_least=0)
    logits: str = choice("all", "own")

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        g, h_a = model.encoder(), grow(trained_head(model, "gem"), task.num_new)
        assert task.old_y is not None
        keep = sample_each_class(task.old_y, self.memory)
        subgraph = training_subgraph(model, task, keep=keep)
        sizes = (*model.classes_per_stage, task.num_new)
        ends = np.cumsum(sizes)
        # the classes of each stage
        own = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        y_old = subgraph.y_old
        memories = [(y_old >= part.start) & (y_old < part.stop) for part in own[:-1]]
        parameters = [*g.parameters(), *h_a.parameters()]

        def loss(z: Tensor, y: Tensor, part: slice) -> Tensor:
            logits = h_a(z)
            if self.logits == "own":
                return F.cross_entropy(logits[:, part], y - part.start)
            return F.cross_entropy(logits, y)

        def gradient(loss: Tensor) -> Tensor:
            slopes = gradients(loss, parameters, retain_graph=True)
            return torch.cat([d.flatten() for d in slopes])

        def terms(epoch: int) -> dict[str, Tensor]:
            z = g(subgraph.graph)
            z_old = z[subgraph.old]
            l_new = loss(z[subgraph.new], subgraph.y, own[-1])
            l_k = [
                loss(z_old[k], y_old[k], part)
                for k, part in zip(memories, own[:-1], strict=True)
                if k.any()
            ]
            g_new = gradient(l_new)
            g_tilde = project(g_new, torch.stack([gradient(one) for one in l_k]), self.margin)
            # The losses of the memory are recorded only; their gradients are already in g~.
            return {
                "new": with_gradient(l_new, parameters, g_tilde),
                "memory": torch.stack(l_k).mean().detach(),
            }

        history = self._train(terms, [g, h_a])
        return grow_model(model, subgraph, g, h_a, history)


def sample_each_class(y: np.ndarray, most: int) -> np.ndarray:
    """Return the places of at most `most` random nodes per class, ascending."""
    shuffled = torch.randperm(len(y)).numpy()
    return np.sort(np.concatenate([shuffled[y[shuffled] == c][:most] for c in np.unique(y)]))


def project(g: Tensor, memories: Tensor, margin: float) -> Tensor:
    """Return g~ from (P,) g and (tasks, P) memories: g if no constraint is broken."""
    along = memories @ g
    if (along >= 0).all() or not along.isfinite().all():  # what is not finite ends the training
        return g
    v = dual_solution(g.detach().cpu().numpy(), memories.detach().cpu().numpy(), margin)
    return g + torch.from_numpy(v).to(g) @ memories


def dual_solution(g: np.ndarray, memories: np.ndarray, margin: float) -> np.ndarray:
    """Return the v >= margin that minimizes 1/2 v'GG'v + g'G'v."""
    # With v = margin + u this is least squares, |G'u + g + G'margin|^2, over u >= 0; Lawson &
    # Hanson's active sets solve it in a finite number of steps. A QR decomposition first reduces
    # it to one row per task.
    columns = memories.T.astype(np.float64)  # (P, tasks)
    q, r = np.linalg.qr(columns)
    u = nnls(r, -q.T @ (g.astype(np.float64) + margin * columns.sum(axis=1)))[0]
    return np.asarray(margin + u)


def with_gradient(loss: Tensor, parameters: Sequence[Tensor], gradient: Tensor) -> Tensor:
    """Return a tensor with the value of `loss` and the gradient `gradient` (P,)."""
    pieces = torch.split(gradient.detach(), [p.numel() for p in parameters])
    pairs = zip(parameters, pieces, strict=True)
    linear = torch.stack([(p.flatten() * piece).sum() for p, piece in pairs]).sum()
    return loss.detach() + (linear - linear.detach())
