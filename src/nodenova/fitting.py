"""Phase 1: learn the labelled classes. The model keeps sums over the nodes of a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import OldTask
from nodenova.data.tasks import check_min_class_size
from nodenova.display import plural
from nodenova.encoders.gnn import RUNNING
from nodenova.encoders.prism.calibration import calibrate_temperature, learn_view_scale
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.lda import LDASettings, lda_head
from nodenova.encoders.registry import SHAPE, EncoderKind, encoder_kind
from nodenova.errors import SettingError, brief, one_of
from nodenova.model.classes import NodeClass
from nodenova.model.model import FitSignature, Model, Stage
from nodenova.nn.class_memory import Memory
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead
from nodenova.nn.sampling import Batches
from nodenova.nn.seeding import Threads, pick_device, repeatable, sample
from nodenova.nn.training import freeze, minimize
from nodenova.open_world.novelty import MAX_NODES, Partition
from nodenova.progress import FIT, Progress, no_progress, reporting_to
from nodenova.settings import check_arguments, from_text

SEES = ("graph", "old_nodes", "old_labels")
# Settings of the training of encoders, with defaults.
TRAINING: dict[str, Any] = {
    "epochs": 200,
    "lr": 0.01,
    "weight_decay": 5e-4,
    "early_stopping": True,
    "patience": 100,
    "head": "linear",
    "prototype_passes": 0,
}
LDA = tuple(each.name for each in fields(LDASettings))  # settings of all encoders
HEADS: dict[str, Callable[[int, int], LinearHead | UnitLinearHead]] = {
    "linear": LinearHead,
    "cosine": UnitLinearHead.on_sphere,
}


def fit(
    old: OldTask,
    encoder: str | type[Any] = "prism",
    *,
    seed: int = 0,
    device: str = "auto",
    threads: Threads = "auto",
    progress: Progress = no_progress,
    min_class_size: int = 1,
    **settings: Any,
) -> Model:
    """Learn the old classes: an encoder, a head, and statistics of each class (Eq. 9).

    `prism` computes its encoder and head in closed form. `gcn`, `gat` and `sage` are trained on the
    labelled old nodes (Eq. 1) with a linear head. They end in the state that was best on the old
    validation nodes (accuracy, then loss), and training stops when that has not improved for
    `patience` epochs; without validation nodes, or with early_stopping=False, it runs all epochs
    and ends in the last one.

    Args:
        old: Graph, labelled nodes and their classes, from `split` or `tasks_from_labels`.
        encoder: `prism`, `gcn`, `gat` or `sage`; or an encoder of your own: its class, or
            path/to/mine.py:Net, whose file is run.
        seed: Random seed; the same seed on the same machine gives the same model, bit for bit.
        device: "auto", "cpu", "cuda", ….
        threads: Number of threads, "auto" for all cores; the result does not depend on it.
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.
        min_class_size: Number of training nodes that every class must have. The model keeps mean
            and variance of each class: those of one node are the node's embedding, those of two
            nodes show both up to signs.
        **settings: For every encoder: rank_low=1, rank_high=8 and prior=500, by which classes are
            compared (see `Prism`). For trained ones: hidden=16, layers=2, dropout=0.5,
            input_dropout=0 (of the features), heads=8 and attention="v1" (gat), batch=0 (nodes of
            each step of both phases, with neighbors=10 drawn per node and layer; 0 for the whole
            graph), precision="float32" ("bfloat16", "float16": autocast), epochs=200,
            lr=0.01, weight_decay=5e-4, patience=100, early_stopping=True, head="linear" ("cosine"
            trains a head on z/|z| at temperature 0.1), prototype_passes=0 (20 estimates classes
            under dropout). An encoder of your own has hidden, its own settings, and those of
            training from epochs on.

    Returns:
        A model of the old classes, for `discover`.

    Raises:
        SettingError: If an encoder or setting is unknown or impossible, or a class is smaller
            than `min_class_size`.
        NumericsError: If a number became NaN or infinite; it names the term and the epoch.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1, 2])
        >>> nova.fit(old)
        Model(prism, 3 classes, 0 of them discovered)
    """
    check_arguments(fit, locals())
    check_fit_settings(encoder, settings)
    _check_class_sizes(old, min_class_size)
    place = pick_device(device)
    kind = encoder_kind(encoder)
    lda = LDASettings(**{key: value for key, value in settings.items() if key in LDA})
    with repeatable(seed, "fit", threads), reporting_to(progress, FIT):
        if kind.closed_form is not None:
            model = _compute(old, kind.closed_form, seed, place, lda).check_numbers()
        else:
            model = _train(old, kind, seed, place, settings, lda).check_numbers()
    if min_class_size == 1:
        return model
    stage = model.stages[0]
    limit = {"min_class_size": min_class_size}
    return replace(model, stages=(replace(stage, settings={**stage.settings, **limit}),))


def _check_class_sizes(old: OldTask, min_class_size: int) -> None:
    """Raise if a class has fewer training nodes than `min_class_size`."""
    check_min_class_size(min_class_size)
    sizes = np.bincount(old.train_y, minlength=len(old.class_names))
    for name, size in zip(old.class_names, sizes.tolist(), strict=True):
        if size < min_class_size:
            raise SettingError(
                f"class {name!r} has {plural(size, 'training node')}, fewer than "
                f"min_class_size={min_class_size}: label more of its nodes, or leave it out"
            )


def _compute(
    old: OldTask, kind: type[PrismEncoder], seed: int, device: torch.device, lda: LDASettings
) -> Model:
    train, y = _tensors(old.train_ids, old.train_y, device)
    n = len(old.class_names)
    # Nodes that cells are found on; z of the others is not kept.
    some = sample(old.graph.num_nodes, MAX_NODES, device)
    views, z = kind.fit_rows(old.graph, torch.cat([train, some]), device)
    g, z = views.whiten(z, y)
    z, z_some = z[: len(y)], z[len(y) :]
    multirank = g.spec.multirank
    memory = Memory.of(z, y, n, multirank)
    scale = learn_view_scale(multirank, z, y, n, g.spec.prior_weight, lda)
    temperature = calibrate_temperature(multirank, z, y, n, scale, lda)
    classes = memory.classes.with_view_scale(scale).with_temperature(temperature)
    head = lda_head(multirank, classes, classes, float(classes.temperature), lda)
    stage = Stage("fit", g.spec.as_settings() | asdict(lda), seed, SEES)
    with torch.no_grad():
        cells = Partition.of(multirank, classes, z_some, z, y, lda)
    return _model(g, head, Memory(memory.replay, classes), old, stage, cells)


def _train(
    old: OldTask,
    kind: EncoderKind,
    seed: int,
    device: torch.device,
    settings: Mapping[str, Any],
    lda: LDASettings,
) -> Model:
    graph = old.graph
    training = TRAINING | {key: value for key, value in settings.items() if key in TRAINING}
    shape = {key: value for key, value in settings.items() if key in kind.settings}
    train, y = _tensors(old.train_ids, old.train_y, device)
    val, y_val = _tensors(old.val_ids, old.val_y, device)
    num_classes = len(old.class_names)
    g = kind.fresh(graph, shape).to(device)
    spec = g.spec
    h = HEADS[training["head"]](spec.hidden, num_classes).to(device)
    batches = Batches(g, graph, train)
    # One batch of validation nodes, the same in every epoch: scores of different ones differ.
    part, (some,) = Batches(g, graph, val).draw()

    def terms(epoch: int) -> dict[str, Tensor]:
        seen, (known,) = batches.draw()
        return {"ce": F.cross_entropy(h(g(seen)[known.rows]), y[known.at])}

    def validate() -> tuple[float, float]:
        logits, y_some = h(g(part)[some.rows]), y_val[some.at]
        accuracy = float((logits.argmax(dim=1) == y_some).float().mean())
        return accuracy, -float(F.cross_entropy(logits, y_some))

    history = minimize(
        terms,
        [g, h],
        **{key: training[key] for key in ("epochs", "lr", "weight_decay", "patience")},
        validate=validate if len(val) and training["early_stopping"] else None,
    )
    memory = Memory.remember(g, graph, train, y, num_classes, training["prototype_passes"])
    with torch.no_grad():
        z = g(graph)[train]
        scale = memory.classes.view_scale
        temperature = calibrate_temperature(spec.multirank, z, y, num_classes, scale, lda)
    memory = Memory(memory.replay, memory.classes.with_temperature(temperature))
    stage = Stage("fit", spec.as_settings() | training | asdict(lda), seed, SEES, history)
    return _model(g, h, memory, old, stage)


def _model(
    g: Encoder, h: Head, memory: Memory, old: OldTask, stage: Stage, cells: Partition | None = None
) -> Model:
    return Model(
        _encoder=freeze(g),
        _head=freeze(h),
        _novel_head=None,
        _memory=memory,
        _cells=cells,
        classes=tuple(NodeClass(i, name, 0) for i, name in enumerate(old.class_names)),
        stages=(stage,),
        fit_signature=FitSignature.of(old.graph),
    )


def settings_from_text(
    texts: Mapping[str, str], encoders: Sequence[str | type[Any]] = ("gcn",)
) -> dict[str, Any]:
    """Parse settings of `fit`, as given on the command line, for some encoders."""
    known = TRAINING | asdict(LDASettings())
    for encoder in encoders:
        known |= encoder_kind(encoder).settings
    for key in texts:
        if key not in known:
            raise one_of("setting of fit", key, known)
    return {key: from_text(key, text, known[key]) for key, text in texts.items()}


def check_fit_settings(encoder: str | type[Any], settings: Mapping[str, Any]) -> None:
    """Raise a SettingError if `fit` would reject these settings for this encoder."""
    kind = encoder_kind(encoder)
    if taken := sorted(kind.settings.keys() & {*LDA, *TRAINING, "min_class_size"}):
        raise SettingError(
            f"{kind.name}: {taken[0]} is a setting of phase 1; give yours another name"
        )
    LDASettings(**{key: value for key, value in settings.items() if key in LDA})
    own = {key: value for key, value in settings.items() if key not in LDA}
    if kind.own is not None and (used := [key for key in RUNNING if key in own]):
        raise SettingError(
            f"{used[0]} is for gcn, gat and sage: how far {kind.name} looks is not known, so it is "
            "trained on the whole graph"
        )
    if "neighbors" in own and not own.get("batch"):
        raise SettingError("neighbors are drawn for batches of nodes only: give batch, too")
    shape = kind.settings if kind.trainable else SHAPE
    for key in own:
        if key not in shape and key not in TRAINING:
            raise one_of("setting of fit", key, [*LDA, *shape, *TRAINING])
    if not kind.trainable:
        if own:
            raise SettingError(
                f"{', '.join(own)}: only for encoders that are trained, and {kind.name} is "
                "computed: use gcn, gat or sage"
            )
        return
    defaults = {**kind.settings, **TRAINING}
    for key, value in own.items():
        kind_of = type(defaults[key])
        wanted: Any = {int: Integral, float: Real}.get(kind_of, kind_of)
        if key != "head" and not isinstance(value, wanted):
            raise SettingError(f"{key} must be {kind_of.__name__}, it is {brief(value)}")
    kind.check({key: value for key, value in own.items() if key in shape})
    if settings.get("epochs", 1) < 1:
        raise SettingError(f"epochs must be at least 1, it is {settings['epochs']}")
    if settings.get("prototype_passes", 0) < 0:
        raise SettingError(
            f"prototype_passes must not be negative, it is {settings['prototype_passes']}"
        )
    if str(settings.get("head", "linear")) not in HEADS:
        raise one_of("head", str(settings["head"]), HEADS)


def _tensors(ids: np.ndarray, y: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(ids).to(device), torch.from_numpy(y).to(device)
