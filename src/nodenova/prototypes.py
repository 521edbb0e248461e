"""What is remembered of a class when its nodes are gone: a mean and a variance per dimension (Eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nodenova.graph import Graph


@dataclass(frozen=True, eq=False)
class Prototypes:
    mean: Tensor  # (C, hidden)
    var: Tensor  # (C, hidden)

    @classmethod
    def of(cls, z: Tensor, y: Tensor, num_classes: int) -> Prototypes:
        """Eq. 9: mu_c and nu_c^2 over the nodes z with class y; a class without nodes gets the overall mean."""
        z = z.detach()
        mean, var = [], []
        for c in range(num_classes):
            z_c = z[y == c] if (y == c).any() else z
            mean.append(z_c.mean(0))
            var.append(z_c.var(0, unbiased=False))
        return cls(torch.stack(mean), torch.stack(var))

    @classmethod
    @torch.no_grad()
    def remember(cls, g: nn.Module, graph: Graph, ids: Tensor, y: Tensor, num_classes: int, passes: int = 20) -> Prototypes:
        """Eq. 9 over several passes with dropout, so that replayed features are as wide as those a head is trained on.

        Without dropout the training nodes sit closer together than any other node of their class ever will.
        """
        was_training = g.training
        g.train()
        z = torch.cat([g(graph)[ids] for _ in range(passes)])
        g.train(was_training)
        return cls.of(z, y.repeat(passes), num_classes)

    def draw(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Replayed features and their classes from standard normal `noise` of shape (draws, C, hidden)."""
        z = self.mean + self.var.sqrt() * noise  # (draws, C, hidden)
        y = torch.arange(self.mean.shape[0], device=z.device).expand(noise.shape[0], -1)
        return z.flatten(0, 1), y.flatten()

    def followed_by(self, new: Prototypes) -> Prototypes:
        """The prototypes of a later stage behind these."""
        return Prototypes(torch.cat([self.mean, new.mean]), torch.cat([self.var, new.var]))

    def copy(self) -> Prototypes:
        return Prototypes(self.mean.clone(), self.var.clone())

    def to(self, device: torch.device) -> Prototypes:
        return Prototypes(self.mean.to(device), self.var.to(device))
