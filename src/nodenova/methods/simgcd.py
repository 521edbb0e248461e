"""SimGCD: a parametric classifier for known and new classes at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nodenova.errors import SettingError
from nodenova.graph import Graph, NewTask
from nodenova.losses import l_distill_global, l_group_contrast, l_mean_entropy, l_self, l_views
from nodenova.model.model import Model, trained_encoder
from nodenova.nn.class_memory import Memory
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.seeding import sample
from nodenova.nn.training import History, TrainedMethod
from nodenova.settings import setting


@dataclass(frozen=True)
class SimGCD(TrainedMethod):
    """SimGCD: one cosine classifier for all classes, taught by another view of the same node.

    Wen, Zhao, Qi, "Parametric Classification for Generalized Category Discovery: A Baseline Study",
    ICCV 2023. Unlabelled nodes may be of known classes too.

        logit_c = cos(z, w_c),  h = a projection of z on the unit sphere, two views of each node
        L_u   = mean over nodes of - sum_c q'_c log p_c + epsilon (log C - H(mean p)),
                p = softmax(logit / tau_s), q' the other view's softmax(logit / tau_t), no gradient
        L_s   = cross-entropy of p against the class, on labelled nodes
        L_rep = contrast of the h: the two views of a node attract (tau_u)
        L_sup = the same with all views of a class as positives, on labelled nodes (tau_c)
        L     = (1 - lam) (L_u + L_rep) + lam (L_s + L_sup) + omega_fd L_FD

    tau_t falls linearly from `teacher_start` to `teacher` in `warmup_epochs`. Numbers are the
    released code's. The paper prints a cosine schedule for tau_t, and tau_u = 0.07, tau_c = 1,
    which the code has the other way round. What differs from the paper:

    - A model stores no labelled node, so none is seen here. Features drawn from the statistics of
      the old classes stand in for them, as many as there are unlabelled nodes in the step; two
      draws of a class are two views of one stand-in. A draw is right only while the encoder stays
      what it was, which L_FD, the distillation of `FRoST` over all visible nodes, is for. Its
      weight is chosen by hiding known classes of Cora and CiteSeer (`tools/choose.py`, 6 draws
      each, all unlabelled nodes new): H 59 and 37; 51 and 41 with FRoST's 10; 0 and 0 without.
      The bench has SimGCD with the labelled nodes themselves, without L_FD, as `simgcd-labelled`
      (marked †).
    - A view of a graph has a part of the edges dropped and a part of the features masked, instead
      of a crop; shares as in You et al., "Graph Contrastive Learning with Augmentations", 2020.
    - The encoder is that of phase 1, and all of it is trained, instead of the last block of a
      vision transformer that was trained without labels. h has 128 wide layers instead of 2,048
      (out: 256).
    - One step per epoch, on at most `batch` nodes, with Adam at phase 1's rate and decay: the
      released SGD (0.1, momentum 0.9, cosine decay, batches of 128) takes hundreds of steps per
      epoch.

    Attributes:
        epochs: Number of epochs, of one step each; released code.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        lam: Weight of the labelled terms against the others; paper.
        epsilon: Weight of the entropy of the mean prediction; released code.
        student: tau_s; paper.
        teacher_start: tau_t in the first epoch; paper.
        teacher: tau_t after the warm-up; paper.
        warmup_epochs: Number of epochs of the warm-up of tau_t; paper.
        tau_u: Temperature of L_rep; released code.
        tau_c: Temperature of L_sup; released code.
        drop_edges: Share of the edges that a view drops.
        mask_features: Share of the features that a view masks.
        projection: Width of the three layers of h.
        omega_fd: Weight of L_FD; chosen by hiding known classes.
        batch: Number of nodes per step, labelled (or stand-ins) and unlabelled together.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.SimGCD(epochs=5))
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> sorted(model.stages[-1].history)
        ['classes', 'contrast', 'distill', 'entropy', 'same_class', 'views']
    """

    mixed: ClassVar[bool] = True  # its tasks may hold nodes of known classes

    lam: float = setting(0.35, at_least=0)
    epsilon: float = setting(2.0, at_least=0)
    student: float = setting(0.1, above=0)
    teacher_start: float = setting(0.07, above=0)
    teacher: float = setting(0.04, above=0)
    warmup_epochs: int = setting(30, at_least=0)
    tau_u: float = setting(1.0, above=0)
    tau_c: float = setting(0.07, above=0)
    drop_edges: float = setting(0.2, at_least=0)
    mask_features: float = setting(0.2, at_least=0)
    projection: int = setting(128, at_least=1)
    omega_fd: float = setting(1.0, at_least=0)
    batch: int = setting(512, at_least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(lam=self.lam, drop_edges=self.drop_edges, mask_features=self.mask_features)

    def discover(self, model: Model, task: NewTask) -> Model:
        g, head, history = self.train(model, task)
        n_old, ids = model.num_columns, torch.from_numpy(task.ids).to(model.device)
        with torch.no_grad():
            logits = head(g(task.graph)[ids])  # (n, C)
        new = logits.argmax(dim=1) >= n_old
        if not task.mixed or not new.any():
            new = torch.ones_like(new)
        groups = logits[new, n_old:].argmax(dim=1)
        memory = Memory.remember(g, task.graph, ids[new], groups, task.number)
        h_u = nn.Linear(g.spec.hidden, task.number).to(model.device)
        with torch.no_grad():
            h_u.weight.copy_(head.linear.weight[n_old:])
            h_u.bias.zero_()
        known = model.memory.append(memory)
        return model.grown(encoder=g, head=head, novel_head=h_u, memory=known, history=history)

    def train(
        self, model: Model, task: NewTask, labelled: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Encoder, UnitLinearHead, History]:
        """Return the trained encoder, the cosine classifier, and each term in each epoch.

        `labelled` are ids (n,) and classes (n,) of labelled nodes; without them features of old
        classes are drawn.
        """
        g, old = trained_encoder(model, "simgcd"), model.memory.replay
        rows = nn.Linear(g.spec.hidden, model.num_columns + task.number, bias=False)
        h = projection_head(g.spec.hidden, self.projection)
        for part in (rows, *h):
            if isinstance(part, nn.Linear):
                nn.init.trunc_normal_(part.weight, std=0.02)
        rows, h = rows.to(model.device), h.to(model.device)
        ids = torch.from_numpy(task.ids).to(model.device)
        with torch.no_grad():
            z_old = model.frozen_encoder()(task.graph)  # (N, hidden), the same in every epoch

        def terms(epoch: int) -> dict[str, Tensor]:
            views = [g(self.view(task.graph)) for _ in range(2)]  # (N, hidden) each
            some = ids[sample(len(ids), self.batch // 2, model.device)]
            if labelled is None:
                size = (max(1, len(some) // len(old.mean)), *old.mean.shape)
                drawn = [old.draw(torch.randn(size, device=model.device)) for _ in range(2)]
                known, y = [z for z, _ in drawn], drawn[0][1]
            else:
                few = sample(len(labelled[0]), self.batch // 2, model.device)
                known, y = [z[labelled[0][few]] for z in views], labelled[1][few]
            both = [torch.cat([a, z[some]]) for a, z in zip(known, views, strict=True)]
            parts = self.losses(rows, h, both, y, epoch)
            if self.omega_fd:
                parts["distill"] = self.omega_fd * l_distill_global(z_old, g(task.graph))
            return parts

        history = self._train(terms, [g, rows, h])
        head = UnitLinearHead.on_sphere(g.spec.hidden, rows.out_features, self.student)
        head.to(model.device)
        with torch.no_grad():
            head.linear.weight.copy_(F.normalize(rows.weight, dim=1))
            head.linear.bias.zero_()
        return g, head, history

    def losses(
        self, rows: nn.Linear, h: nn.Sequential, views: list[Tensor], y: Tensor, epoch: int
    ) -> dict[str, Tensor]:
        """Weighted terms of two views (n, hidden) of nodes, the first ones of classes y (m,)."""
        logits = [F.linear(F.normalize(z, dim=1), F.normalize(rows.weight, dim=1)) for z in views]
        unit = [F.normalize(h(z), dim=1) for z in views]
        n, m, free = len(views[0]), len(y), 1.0 - self.lam
        parts = {}
        if free:
            taught = l_views(logits[0], logits[1], self.student, self.teacher_at(epoch))
            parts["views"] = free * taught
            same_node = torch.arange(n, device=y.device).repeat(2)
            parts["contrast"] = free * l_group_contrast(torch.cat(unit), same_node, self.tau_u)
        if free and self.epsilon:
            entropy = l_mean_entropy(torch.cat(logits), self.student)
            parts["entropy"] = free * self.epsilon * entropy
        if self.lam:
            known = torch.cat([each[:m] for each in logits])
            parts["classes"] = self.lam * l_self(known / self.student, y.repeat(2))
            near = torch.cat([each[:m] for each in unit])
            parts["same_class"] = self.lam * l_group_contrast(near, y.repeat(2), self.tau_c)
        return parts

    def teacher_at(self, epoch: int) -> float:
        """Return tau_t of an epoch, counted from 1."""
        share = min((epoch - 1) / max(self.warmup_epochs - 1, 1), 1.0) if self.warmup_epochs else 1
        return self.teacher_start + share * (self.teacher - self.teacher_start)

    def view(self, graph: Graph) -> Graph:
        """Return the graph with a random part of its edges dropped and of its features masked."""
        pair = graph.cached("pairs", lambda: number_pairs(graph))  # (E,)
        edge = (torch.rand(pair.max(initial=-1) + 1) >= self.drop_edges).numpy()[pair]
        column = (torch.rand(graph.num_features) >= self.mask_features).numpy().astype(np.float32)
        x: Any = graph.x
        if sp.issparse(x):
            x = sp.csr_array((x.data * column[x.indices], x.indices, x.indptr), shape=x.shape)
        else:
            x = x * column
        weight = None if graph.edge_weight is None else graph.edge_weight[edge]
        return Graph(x, graph.edge_index[:, edge], graph.node_ids, edge_weight=weight)


def number_pairs(graph: Graph) -> np.ndarray:
    """Return (E,) the number of the pair that each edge joins, the same in both directions."""
    low, high = graph.edge_index.min(axis=0), graph.edge_index.max(axis=0)
    return np.unique(low * graph.num_nodes + high, return_inverse=True)[1].ravel()


def projection_head(hidden: int, width: int) -> nn.Sequential:
    """Return three linear layers with GELU between them."""
    first, inner, last = (nn.Linear(size, width) for size in (hidden, width, width))
    return nn.Sequential(first, nn.GELU(), inner, nn.GELU(), last)


def check_shares(**shares: float) -> None:
    """Raise unless all are at most 1; a view keeps something, so what it drops is below 1."""
    for name, share in shares.items():
        if share > 1 or (share == 1 and name != "lam"):
            least = "at most 1" if name == "lam" else "below 1"
            raise SettingError(f"{name} is a share, {least}, it is {share}")
