"""What a model remembers of its classes: sums over their nodes, and no node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.encoder import Encoder
from nodenova.nn.multirank import MultiRank
from nodenova.nn.statistics import ClassStatistics, means


@dataclass(frozen=True, eq=False)
class ReplayStatistics:
    """Mean and variance of z of each class (Eq. 9), from which features of it are drawn again."""

    mean: Tensor  # (C, hidden)
    var: Tensor  # (C, hidden), biased

    @classmethod
    def estimate(cls, z: Tensor, y: Tensor, num_classes: int) -> ReplayStatistics:
        """From nodes z (n, hidden) of classes y (n,); an empty class gets those of all nodes."""
        z = z.detach()
        every = torch.ones_like(y, dtype=torch.bool)
        rows = [z[y == c if (y == c).any() else every] for c in range(num_classes)]
        return cls(means(z, y, num_classes), torch.stack([r.var(0, unbiased=False) for r in rows]))

    def draw(self, noise: Tensor, sigma: str = "class") -> tuple[Tensor, Tensor]:
        """Draw features (draws * C, hidden) and their classes (draws * C,).

        `noise` is standard normal (draws, C, hidden); `sigma` is "class" for the spread of each
        class or "shared" for the mean spread.
        """
        spread = self.var.sqrt() if sigma == "class" else self.var.sqrt().mean(dim=0)
        z = self.mean + spread * noise  # (draws, C, hidden)
        y = torch.arange(self.mean.shape[0], device=z.device).expand(noise.shape[0], -1)
        return z.flatten(0, 1), y.flatten()


@dataclass(frozen=True, eq=False)
class Memory:
    """What a model remembers of its classes.

    Attributes:
        replay: Statistics to draw features from.
        classes: Statistics to classify by.
    """

    replay: ReplayStatistics
    classes: ClassStatistics

    @classmethod
    def of(cls, z: Tensor, y: Tensor, num_classes: int, multirank: MultiRank) -> Memory:
        """Estimate from nodes z (n, hidden) with classes y (n,)."""
        return cls(
            ReplayStatistics.estimate(z, y, num_classes),
            ClassStatistics.of_nodes(z.detach(), y, num_classes, multirank),
        )

    @classmethod
    @torch.no_grad()
    def remember(
        cls, g: Encoder, graph: Graph, ids: Tensor, y: Tensor, num_classes: int, passes: int = 0
    ) -> Memory:
        """Estimate from the nodes `ids` (n,) with classes `y` (n,) as the encoder sees them (Eq.
        9).

        With `passes` > 0, from that many passes with dropout together, which is wider than one
        without.
        """
        was_training = g.training
        g.train(passes > 0)
        times = passes if passes > 0 and g.spec.is_random else 1
        z = torch.cat([g(graph)[ids] for _ in range(times)])
        g.train(was_training)
        return cls.of(z, y.repeat(times), num_classes, g.spec.multirank)

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.replay.mean)

    def append(self, new: Memory) -> Memory:
        """Add the classes of a later stage."""
        return Memory(_join(self.replay, new.replay), self.classes.append(new.classes))

    def with_parts(self, parts: Memory) -> Memory:
        """Add parts of a class; the scatter within classes has seen their nodes already."""
        return Memory(_join(self.replay, parts.replay), self.classes.with_parts(parts.classes))

    def select(self, keep: Sequence[int]) -> Memory:
        """Keep some classes."""
        return Memory(
            ReplayStatistics(self.replay.mean[keep], self.replay.var[keep]),
            self.classes.select(keep),
        )

    def copy(self) -> Memory:
        return self.map(Tensor.clone)

    def to(self, device: torch.device) -> Memory:
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> Memory:
        """Apply a function to every tensor."""
        return Memory.from_tensors({name: change(each) for name, each in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """All tensors, by their names in a saved model."""
        own = {f.name: getattr(self.classes, f.name) for f in fields(ClassStatistics)}
        if not len(self.classes.count):
            del own["count"]
        return vars(self.replay) | {ON_DISK.get(name, name): tensor for name, tensor in own.items()}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> Memory:
        """The inverse of `tensors`."""
        tensors = {"count": torch.zeros(0)} | tensors  # missing in the first models
        own = {f.name: tensors[ON_DISK.get(f.name, f.name)] for f in fields(ClassStatistics)}
        return cls(ReplayStatistics(tensors["mean"], tensors["var"]), ClassStatistics(**own))


# Names in saved models.
ON_DISK = {"center": "centre", "diag": "rest"}


def _join(a: ReplayStatistics, b: ReplayStatistics) -> ReplayStatistics:
    return ReplayStatistics(torch.cat([a.mean, b.mean]), torch.cat([a.var, b.var]))
