"""The one training loop, and the settings of methods that use it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from nodenova.errors import NumericsError, SettingError
from nodenova.nn.numerics import ADVICE, all_finite, numerics_error
from nodenova.progress import report
from nodenova.settings import check_settings, setting

History: TypeAlias = "dict[str, list[float]]"
MAX_RATE = 1e30  # of learning and of weight decay: safe in float32


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
        SettingError: If `lr` or `weight_decay` is beyond 1e30.
        NumericsError: If a term, the score or a weight is not finite and there is no better state
            to end in.
    """
    _check_rates(lr=lr, weight_decay=weight_decay)
    optimizer = torch.optim.Adam(
        [p for m in modules for p in m.parameters()], lr=lr, weight_decay=weight_decay
    )
    # In float16 small gradients would vanish; without it this does nothing.
    halved = any(getattr(getattr(m, "spec", None), "precision", "") == "float16" for m in modules)
    scaler = torch.amp.GradScaler(_device_of(modules), enabled=halved)
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
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimizer)
            scaler.update()
        values = {name: float(part.detach()) for name, part in parts.items()}
        problem = _name_broken(values)
        score = None if validate is None or problem else _evaluate(validate, modules)
        if score is not None and not all(map(math.isfinite, score)):
            problem = "the score of the validation nodes"
        if problem and best is not None:
            break  # the best state is from before
        if problem:
            raise _failure(problem, epoch, epochs, lr)
        for name, value in values.items():
            history.setdefault(name, []).append(value)
        report(epoch, epochs, **values)
        if score is not None:
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
    # The last step may have broken what the last loss could not see yet.
    if not all(all_finite(p) for module in modules for p in module.parameters()):
        raise _failure("a weight", epochs, epochs, lr)
    return history


def _device_of(modules: Sequence[nn.Module]) -> str:
    return next((p.device.type for m in modules for p in m.parameters()), "cpu")


def _check_rates(**rates: float) -> None:
    for name, value in rates.items():
        if not 0 <= value <= MAX_RATE:
            raise SettingError(f"{name} must be from 0 to {MAX_RATE:g}, it is {value:g}")


def _evaluate(
    validate: Callable[[], tuple[float, ...]], modules: Sequence[nn.Module]
) -> tuple[float, ...]:
    for module in modules:
        module.eval()
    with torch.no_grad():
        return validate()


def _name_broken(values: Mapping[str, float]) -> str:
    """The terms that are not finite, for a sentence; empty if all are."""
    broken = [name for name, value in values.items() if not math.isfinite(value)]
    return f"the term {', '.join(broken)}" if broken else ""


def _failure(problem: str, epoch: int, epochs: int, lr: float) -> NumericsError:
    became = f"{problem} became NaN or infinite in epoch {epoch} of {epochs}"
    return numerics_error(f"{became} with lr={lr:g}", f"{ADVICE}, or use a smaller lr")


def gradients(
    of: Tensor, parameters: Sequence[Tensor], retain_graph: bool | None = None
) -> list[Tensor]:
    """Gradient of a number by each parameter; zeros for frozen ones and where it has no part."""
    moving = [p for p in parameters if p.requires_grad]
    found: Sequence[Tensor | None] = [None] * len(moving)
    if moving and of.requires_grad:
        found = torch.autograd.grad(of, moving, retain_graph=retain_graph, allow_unused=True)
    slopes = iter(found)
    each = [next(slopes) if p.requires_grad else None for p in parameters]
    zeros = torch.zeros_like
    return [zeros(p) if d is None else d for p, d in zip(parameters, each, strict=True)]


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
