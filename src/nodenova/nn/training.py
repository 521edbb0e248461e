"""The one training loop, and the settings of methods that use it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from nodenova.errors import SettingError
from nodenova.progress import report
from nodenova.settings import check_settings, setting

History: TypeAlias = "dict[str, list[float]]"


def rampup(epoch: int, length: int) -> float:
    """exp(-5 (1 - t/T)^2) for t = `epoch` < T = `length`, then 1: phases a noisy term in."""
    if length <= 0:
        return 1.0
    t = min(epoch, length) / length
    return math.exp(-5.0 * (1.0 - t) ** 2)


def minimize(
    terms: Callable[[int], Mapping[str, Tensor]],
    modules: Sequence[nn.Module],
    *,
    epochs: int,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    validate: Callable[[], tuple[float, ...]] | None = None,
    patience: int | None = None,
) -> History:
    """Minimize the sum of named, weighted loss terms with Adam; return the value of each per epoch.

    Args:
        terms: Called with epoch = 1..epochs. A term of weight zero is left out in every epoch.
        modules: Modules to train. They end in evaluation mode.
        epochs: Number of steps.
        lr: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        validate: Returns a score to maximize; the modules end in the state with the best score.
        patience: Epochs without a better score after which training stops; None for never.

    Raises:
        SettingError: If a term is not finite and there is no better state to end in.
    """
    optimizer = torch.optim.Adam(
        [p for m in modules for p in m.parameters()], lr=lr, weight_decay=weight_decay
    )
    history: History = {}
    best: tuple[float, ...] | None = None
    best_epoch, best_state = 0, [copy.deepcopy(m.state_dict()) for m in modules]
    for epoch in range(1, epochs + 1):
        for module in modules:
            module.train()
        optimizer.zero_grad()
        parts = terms(epoch)
        if parts:
            loss = torch.stack(list(parts.values())).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        values = {name: float(part.detach()) for name, part in parts.items()}
        for name, value in values.items():
            history.setdefault(name, []).append(value)
        report(epoch, epochs, **values)
        broken = [name for name, value in values.items() if not math.isfinite(value)]
        if broken and best is not None:
            break  # the best state is from before
        if broken:
            raise SettingError(
                f"training failed in epoch {epoch} of {epochs}: {', '.join(broken)} is not a "
                "finite number; try a smaller lr or fewer layers"
            )
        if validate is not None:
            for module in modules:
                module.eval()
            with torch.no_grad():
                score = validate()
            if best is None or score > best:
                best, best_epoch = score, epoch
                best_state = [copy.deepcopy(m.state_dict()) for m in modules]
            elif patience is not None and epoch - best_epoch >= patience:
                break
    if validate is not None:
        for module, state in zip(modules, best_state, strict=True):
            module.load_state_dict(state)
    for module in modules:
        module.eval()
    return history


@dataclass(frozen=True)
class TrainedMethod:
    """A method that trains with Adam: its first settings, which it documents itself."""

    prefers: ClassVar[str] = "gcn"

    epochs: int = setting(200, at_least=1)
    lr: float = setting(0.01, at_least=0)
    weight_decay: float = setting(5e-4, at_least=0)

    def __post_init__(self) -> None:
        check_settings(self)

    def _train(
        self,
        terms: Callable[[int], Mapping[str, Tensor]],
        modules: Sequence[nn.Module],
        epochs: int | None = None,
        **options: Any,
    ) -> History:
        """`minimize` with these settings; `epochs` replaces its own."""
        options |= {"lr": self.lr, "weight_decay": self.weight_decay}
        return minimize(terms, modules, epochs=self.epochs if epochs is None else epochs, **options)


AnyModule = TypeVar("AnyModule", bound=nn.Module)


def freeze(module: AnyModule) -> AnyModule:
    """A copy without dropout or gradient."""
    return copy.deepcopy(module).eval().requires_grad_(False)
