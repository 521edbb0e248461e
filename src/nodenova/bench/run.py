"""One run of one seed under any protocol: fit, discover, grade; its row records everything."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from nodenova.bench.baselines import Baseline, CountingRule, Phase1
from nodenova.bench.plan import Plan
from nodenova.bench.row import NodeCounts, Row, frozen_settings
from nodenova.data.labels import Exam, LabelledGraph, OldTask
from nodenova.data.mixed_splits import OpenWorld
from nodenova.data.protocols import PaperSplit
from nodenova.discovery import SEES, discover
from nodenova.evaluation import metrics
from nodenova.evaluation.grade import Grade, grade
from nodenova.evaluation.graded import Counts, Seconds, counts_of
from nodenova.evaluation.metrics import calibration_scores, detection_scores
from nodenova.fitting import fit
from nodenova.methods.prism import Prism
from nodenova.methods.registry import Method, settings_of
from nodenova.model.model import Model
from nodenova.nn.encode_cache import shared_passes
from nodenova.nn.seeding import repeatable
from nodenova.progress import Progress, no_progress
from nodenova.supervised import LabelledMethod
from nodenova.supervised.entrance import discover_supervised

KNOWN_ALONE = ("gnnsafe", "closed")  # calibration is that of known nodes among known classes
MATCHED_GLOBALLY = ("pown", "openima")  # their headline is one matching over all classes
WHICH_NEW = "which_new"  # in `sees`: which unlabelled nodes are of new classes


@dataclass(frozen=True, eq=False)
class Phase1Result:
    """Phase 1 of a plan for one seed; every method of that seed can start from it."""

    model: Model
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a run."""

    model: Model  # after both phases (after phase 1 where a baseline makes no model)
    exam: Exam  # of the last session
    row: Row


@dataclass
class _Phase2Result:
    """A grade after each phase, scores that no matrix has, and the last model if there is one."""

    grades: list[Grade] = field(default_factory=list)
    confusion_fit: Counts = ()
    measured: dict[str, float] = field(default_factory=dict)
    sees: tuple[str, ...] = SEES
    model: Model | None = None
    seconds: float = 0.0


def fit_phase1(
    labelled: LabelledGraph, plan: Plan, seed: int, progress: Progress = no_progress
) -> Phase1Result:
    """Fit phase 1 alone; it depends on the encoder, not on the method."""
    return _fit(plan.world_protocol.world(labelled, seed).old, plan, seed, progress)


def _fit(old: OldTask, plan: Plan, seed: int, progress: Progress) -> Phase1Result:
    plan.check_source()
    clock, settings = time.perf_counter(), plan.phase1_settings
    model = fit(old, plan.encoder, seed=seed, device=plan.device, progress=progress, **settings)
    return Phase1Result(model, time.perf_counter() - clock)


def run_one(
    labelled: LabelledGraph,
    plan: Plan,
    seed: int,
    progress: Progress = no_progress,
    fitted: Phase1Result | None = None,
) -> Outcome:
    """Run both phases and the exams of a plan's protocol for one seed.

    Args:
        labelled: Graph with all its labels.
        plan: What to run.
        seed: Seed of both phases, and of a split that is drawn.
        progress: Called as each phase advances.
        fitted: Phase 1 of the same plan and seed, if it was fitted before.

    Returns:
        The model, the exam and the row, which has no key.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> plan = Plan(graph.name, nova.NeverNew(), "gcn", (0, 1), 2, (("epochs", 5),))
        >>> outcome = run_one(graph, plan, seed=0)
        >>> outcome.row.num_old, outcome.row.scores("block")["new"]
        (2, 0.0)
    """
    world = plan.world_protocol.world(labelled, seed)
    fitted = fitted or _fit(world.old, plan, seed, progress)
    if not plan.protocol:
        result = _run_paper(labelled, world, plan, seed, progress, fitted.model)
    else:
        clock = time.perf_counter()
        if isinstance(plan.method, Phase1):
            result = _phase_1_alone(world, plan.method, fitted.model)
        elif isinstance(plan.method, CountingRule) or plan.protocol.startswith("count"):
            result = _count(world, plan, seed, fitted.model)
        elif isinstance(plan.method, Baseline):
            result = _assign(world, plan.method, seed, fitted.model)
        else:
            result = _discover(world, plan, seed, progress, fitted.model)
        result.seconds = time.perf_counter() - clock
        if result.model is not None:
            result.measured |= _extra_scores(labelled, world, plan, result)
    row = _row(labelled, world, plan, seed, fitted, result)
    return Outcome(result.model or fitted.model, world.exams[-1], row)


def _row(
    labelled: LabelledGraph,
    world: OpenWorld,
    plan: Plan,
    seed: int,
    fitted: Phase1Result,
    result: _Phase2Result,
) -> Row:
    last, exam, model = result.grades[-1], world.exams[-1], result.model or fitted.model
    # Rows store these words, so they do not change.
    seeded = f"seeded, {plan.per_class} training nodes a class"
    split = "published" if labelled.has_split else seeded
    many = len(world.tasks) > 1
    return Row.of(
        plan,
        seed,
        labelled.fingerprint(),
        class_names=tuple(exam.class_names),
        split=plan.protocol or split,
        nodes=NodeCounts(sum(len(task.ids) for task in world.tasks), len(exam.ids)),
        settings=frozen_settings(settings_of(plan.method)),
        fit_settings=frozen_settings(model.stages[0].settings),
        sees=(*result.sees, *([WHICH_NEW] if plan.handed == "told" else [])),
        confusion=counts_of(last.confusion),
        confusion_fit=result.confusion_fit,
        confusion_old=None if last.confusion_old is None else counts_of(last.confusion_old),
        confusion_new=None if last.confusion_new is None else counts_of(last.confusion_new),
        sessions=tuple(counts_of(each.confusion) for each in result.grades) if many else (),
        measured=result.measured,
        sizes=last.sizes,
        predicted_sizes=last.predicted,
        seconds=Seconds(fit=fitted.seconds, discover=result.seconds),
        device=str(model.device),
    )


def _run_paper(
    labelled: LabelledGraph,
    world: OpenWorld,
    plan: Plan,
    seed: int,
    progress: Progress,
    before: Model,
) -> _Phase2Result:
    """Phase 2 of the paper's split; supervised methods are given the labels."""
    protocol, (new,), (exam,) = plan.world_protocol, world.tasks, world.exams
    assert isinstance(protocol, PaperSplit)
    with shared_passes():  # phase 2 and both exams read the same z where the encoder stays
        clock = time.perf_counter()
        method = plan.method
        if isinstance(method, Method):
            # Without a refresh, so that all methods start from the same phase 1.
            model = discover(before, new, method, refresh=False, seed=seed, progress=progress)
        else:
            assert isinstance(method, LabelledMethod)
            task = protocol.labelled_task(labelled, seed)
            model = discover_supervised(before, task, method, seed=seed, progress=progress)
        seconds = time.perf_counter() - clock
        last, first = grade(model, exam), grade(before, exam)
    return _Phase2Result(
        [last], counts_of(first.confusion), {}, tuple(model.stages[-1].sees), model, seconds
    )


def _discover(
    world: OpenWorld, plan: Plan, seed: int, progress: Progress, model: Model
) -> _Phase2Result:
    """Discover and grade session by session."""
    assert isinstance(plan.method, Method)
    # After phase 1 too: forgetting is measured against it.
    first = [_grade_old(model, world)] if len(world.tasks) > 1 else []
    result = _Phase2Result(first, model=model)
    before, refreshes = world.old.graph, 0
    for session, exam in enumerate(world.exams):
        task = world.handed(session, plan.handed)
        model = discover(model, task, plan.method, before=before, seed=seed, progress=progress)
        before, refreshes = task.graph, refreshes + (model.stages[-1].refresh is not None)
        result.grades.append(grade(model, exam))
        result.model, result.sees = model, tuple(model.stages[-1].sees)
    if plan.visibility == "inductive":
        result.measured["refreshes"] = float(refreshes)
    return result


def _grade_old(model: Model, world: OpenWorld) -> Grade:
    """Grade of the model of phase 1 on the old classes of the first exam."""
    exam, n_old = world.exams[0], world.exams[0].sizes[0]
    old, names = exam.y < n_old, exam.class_names[:n_old]
    return grade(model, Exam(exam.graph, exam.ids[old], exam.y[old], (n_old,), names))


def _assign(world: OpenWorld, method: Baseline, seed: int, model: Model) -> _Phase2Result:
    """Let a baseline assign every node to a class."""
    (task,), (exam,) = world.tasks, world.exams
    place = {node: i for i, node in enumerate(task.graph.node_ids.tolist())}
    ids = [place[node] for node in world.old.graph.node_ids[world.old.train_ids].tolist()]
    old = replace(world.old, graph=task.graph, train_ids=np.array(ids))
    with repeatable(seed, "rival"):
        predicted = method.assign(model, old, task)[exam.ids]
    # Classes beyond the number that was given have columns too, and no partner.
    found = max(task.num_new or 0, int(predicted.max()) + 1 - exam.sizes[0])
    sizes = (exam.sizes[0], found)
    confusion = metrics.confusion_matrix(exam.y, predicted, sum(exam.sizes), sum(sizes))
    return _Phase2Result([Grade(confusion, None, exam.sizes, sizes)], sees=method.sees)


def _phase_1_alone(world: OpenWorld, method: Phase1, model: Model) -> _Phase2Result:
    """Grade the model of phase 1; where there are new classes, also its score of being new."""
    (task,), (exam,) = world.tasks, world.exams
    result = _Phase2Result([grade(model, exam)], sees=method.sees, model=model)
    is_new = exam.y >= exam.sizes[0]
    if is_new.any():
        score = np.full(task.graph.num_nodes, -np.inf)
        score[task.ids] = method.novelty(model, task)
        result.measured |= detection_scores(score[exam.ids], is_new)
    return result


def _count(world: OpenWorld, plan: Plan, seed: int, model: Model) -> _Phase2Result:
    """Count new classes (without a rule: the true number), then let Prism find as many."""
    (exam,), true = world.exams, len(world.classes[1])
    task, result = world.handed(0, plan.handed), _Phase2Result()
    number, clock = true, time.perf_counter()
    if isinstance(plan.method, CountingRule):
        with repeatable(seed, "count"):
            counted = plan.method.count_classes(model, replace(task, num_new=None))
        number = counted.number
        result.measured["seconds_count"] = time.perf_counter() - clock
        if counted.likely:
            result.measured |= {
                "holds": 100.0 * (true in counted.likely),
                "likely": float(len(counted.likely)),
            }
    result.measured |= {"true": float(true), "counted": float(number)}
    if number:
        method = plan.method if isinstance(plan.method, Method) else Prism()
        limited = replace(task, num_new=min(number, len(task.ids)))
        model = discover(model, limited, method, seed=seed)
    result.grades.append(grade(model, exam))
    result.model = model
    return result


def _extra_scores(
    labelled: LabelledGraph, world: OpenWorld, plan: Plan, result: _Phase2Result
) -> dict[str, float]:
    """Scores of a protocol that cannot be computed from a confusion matrix."""
    model, exam, last = result.model, world.exams[-1], result.grades[-1]
    assert model is not None
    p = model.predict_proba(exam.graph)[exam.ids]  # (graded nodes, classes)
    found: dict[str, float] = {}
    n_old = len(plan.old)
    if plan.protocol in KNOWN_ALONE:
        if p.shape[1] > n_old:
            found |= detection_scores(p[:, n_old:].sum(axis=1), exam.y >= n_old)
        old = exam.y < n_old
        among = p[old, :n_old] / np.maximum(p[old, :n_old].sum(axis=1, keepdims=True), 1e-12)
        return {**found, **calibration_scores(among, exam.y[old], np.arange(n_old))}
    matching = "global" if plan.protocol in MATCHED_GLOBALLY else "block"
    # Where no class was found the grade has columns for new classes, and the model has none.
    found |= calibration_scores(p, exam.y, last.matched(matching)[: p.shape[1]])
    if isinstance(plan.method, CountingRule) or plan.protocol.startswith("count"):
        known, n_true = labelled.y >= 0, labelled.num_classes
        ids, predicted = np.unique(model.predict(labelled.graph)[known], return_inverse=True)
        confusion = metrics.confusion_matrix(labelled.y[known], predicted, n_true, len(ids))
        found["nmi_all"] = metrics.nmi(confusion)
    return found
