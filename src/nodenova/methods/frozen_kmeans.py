"""The simplest baseline: k-means on the embeddings of the frozen encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from nodenova.graph import NewTask
from nodenova.methods._two_heads import joined_model
from nodenova.model.model import Model, trained_head
from nodenova.nn.encoder import restrict_to_receptive_field
from nodenova.nn.kmeans import cluster
from nodenova.settings import check_settings, choice, setting


@dataclass(frozen=True)
class FrozenKMeans:
    """k-means on the frozen encoder's z, and a nearest-mean classifier; nothing is trained.

    A baseline: a method that trains should beat it.

        groups = k-means of z/|z| of the new nodes on its first k principal components,
                 k the number of new classes
        m_k    = mean of z/|z| over group k
        w_k    = kappa m_k + v,  b_k = beta - kappa |m_k|^2 / 2    rows of a nearest-mean classifier
        kappa, v, beta by least squares from the old head's rows
                       and the old classes' remembered means

    So the new rows have the scale of the old ones, and no label is used: see `_two_heads`. There is
    no paper and no h^u: New-N is computed from the new rows.

    Attributes:
        restarts: Number of starts of k-means.
        new_rows: "concatenated": the rows w_k, b_k; "untrained": as `grow` makes them.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.FrozenKMeans(restarts=2))
        Model(gcn, 4 classes, 2 of them discovered)
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes
    prefers: ClassVar[str] = "gcn"

    restarts: int = setting(20, at_least=1)
    new_rows: str = choice("concatenated", "untrained")

    def __post_init__(self) -> None:
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        head, g = trained_head(model, "frozen_kmeans"), model.frozen_encoder()
        task = restrict_to_receptive_field(task, g)
        ids = torch.from_numpy(task.ids).to(model.device)
        with torch.no_grad():
            z_u = F.normalize(g(task.graph)[ids], dim=1)  # (n, hidden)
        groups = cluster(z_u, task.number, self.restarts)
        return joined_model(model, task, g, head, self.new_rows, groups)
