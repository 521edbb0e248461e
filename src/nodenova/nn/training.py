"""The one training loop. A method calls it with its terms; it never calls a method."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from nodenova.errors import SettingError
from nodenova.progress import report

History: TypeAlias = "dict[str, list[float]]"


def rampup(epoch: int, length: int) -> float:
    """exp(-5 (1 - t/T)^2) for t < T, then 1: lets a noisy term in slowly.

    Args:
        epoch: t.
        length: T; 0 for no ramp.

    Examples:
        >>> [round(rampup(epoch, 50), 3) for epoch in (0, 25, 50, 100)]
        [0.007, 0.287, 1.0, 1.0]
    """
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
    """Minimize the sum of named, weighted terms with Adam.

    Args:
        terms: Called with epoch = 1..epochs. A term that is zero by weight is left out of the
            mapping, in every epoch.
        modules: What is trained. They end in evaluation mode.
        epochs: How many steps.
        lr: Of Adam.
        weight_decay: Of Adam.
        validate: Returns something to be maximized; the modules then end in the best state it saw.
        patience: Training stops when `validate` has not improved for so many epochs; None for
            never.

    Returns:
        What each term was in each epoch.

    Raises:
        SettingError: A term is not a finite number, and there is no better state to end in.
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
        lost = [name for name, value in values.items() if not math.isfinite(value)]
        if lost and best is not None:
            break  # the best state is from before
        if lost:
            raise SettingError(
                f"training broke down in epoch {epoch} of {epochs}: {', '.join(lost)} is not a "
                "finite number; a smaller lr or fewer layers may help"
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


AnyModule = TypeVar("AnyModule", bound=nn.Module)


def freeze(module: AnyModule) -> AnyModule:
    """A copy that is done learning: no dropout, no gradient."""
    return copy.deepcopy(module).eval().requires_grad_(False)
