"""One run of the league: fit, discover session by session, grade. The row carries all of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from nodenova.bench import schedules
from nodenova.bench.baselines import Baseline, CountingRule
from nodenova.bench.plan import Plan
from nodenova.bench.protocols import world_of
from nodenova.bench.row import NodeCounts, Row, frozen_settings
from nodenova.bench.run import Phase1Result, fit_plan
from nodenova.data.labels import Exam, LabelledGraph
from nodenova.data.mixed_splits import OpenWorld
from nodenova.discovery import SEES, discover
from nodenova.evaluation import metrics
from nodenova.evaluation.grade import Grade, grade
from nodenova.evaluation.graded import Seconds, counts_of
from nodenova.evaluation.metrics import detection_scores
from nodenova.evaluation.provenance import commit, versions
from nodenova.graph import NewTask
from nodenova.methods.prism import Prism
from nodenova.methods.registry import Method, settings_of
from nodenova.model.model import Model
from nodenova.nn.seeding import repeatable
from nodenova.progress import Progress, no_progress

TOLD = "which_new"  # in `sees`: which unlabelled nodes are of new classes


@dataclass
class _Played:
    """What came out: a grade after each phase, what no matrix says, the last model if any."""

    grades: list[Grade] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)
    sees: tuple[str, ...] = SEES
    model: Model | None = None


def learn(
    labelled: LabelledGraph, plan: Plan, seed: int, progress: Progress = no_progress
) -> Phase1Result:
    """Phase 1 of a run: it does not depend on who takes part, but for the encoder.

    Args:
        labelled: The graph.
        plan: What is run.
        seed: Of phase 1.
        progress: Called as each phase advances.

    Returns:
        The model of the old classes, and how long it took.
    """
    return fit_plan(_world(labelled, plan, seed).old, plan, seed, progress)


def play(
    labelled: LabelledGraph,
    plan: Plan,
    seed: int,
    progress: Progress = no_progress,
    fitted: Phase1Result | None = None,
) -> Row:
    """Every session of a protocol and its exams.

    Args:
        labelled: The graph.
        plan: What is run: its `protocol` says on which nodes, its `handed` how they are given.
        seed: Of both phases.
        progress: Called as each phase advances.
        fitted: Phase 1, if it was done before.

    Returns:
        The row, without a key.

    Examples:
        >>> import nodenova as nova
        >>> from nodenova.bench.league_runs import league_runs
        >>> graph = nova.synthetic(nodes=300, classes=4, seed=0)
        >>> first = league_runs("mixed", [graph], ["gcd"], seeds=[0])[0]
        >>> row = play(graph, first.plan, first.seed)
        >>> row.protocol, row.handed, row.sizes
        ('mixed-30', 'mixed', (2, 2))
    """
    world = _world(labelled, plan, seed)
    fitted = fitted or fit_plan(world.old, plan, seed, progress)
    clock = time.perf_counter()
    if isinstance(plan.method, CountingRule) or plan.protocol.startswith("count"):
        played = _count(world, plan, seed, fitted.model)
    elif isinstance(plan.method, Baseline):
        played = _assign(world, plan.method, seed, fitted.model)
    else:
        played = _discover(world, plan, seed, progress, fitted.model)
    seconds = time.perf_counter() - clock
    if played.model is not None:
        played.measured |= _measured(labelled, world, plan, played.model)
    last, model = played.grades[-1], played.model or fitted.model
    exam, many = world.exams[-1], len(world.tasks) > 1
    return Row(
        dataset=plan.dataset,
        method=plan.method_name,
        encoder=plan.encoder,
        seed=seed,
        num_old=len(plan.old),
        num_new=plan.num_new,
        old_classes=plan.old,
        class_names=tuple(exam.class_names),
        class_split=plan.class_split,
        draw="protocol",
        split=plan.protocol,
        visibility=plan.visibility,
        protocol=plan.protocol,
        handed=plan.handed,
        nodes=NodeCounts(sum(len(task.ids) for task in world.tasks), len(exam.ids)),
        settings=frozen_settings(settings_of(plan.method)),
        changed=frozen_settings(schedules.changed(plan)),
        fit_settings=frozen_settings(model.stages[0].settings),
        fit_changed=frozen_settings(dict(plan.fit_settings)),
        sees=(*played.sees, *([TOLD] if plan.handed == "told" else [])),
        confusion=counts_of(last.confusion),
        confusion_old=None if last.confusion_old is None else counts_of(last.confusion_old),
        confusion_new=None if last.confusion_new is None else counts_of(last.confusion_new),
        sessions=tuple(counts_of(each.confusion) for each in played.grades) if many else (),
        measured=played.measured,
        sizes=last.sizes,
        predicted_sizes=last.predicted,
        seconds=Seconds(fit=fitted.seconds, discover=seconds),
        device=str(model.device),
        versions=versions(),
        commit=commit(),
        data=labelled.fingerprint(),
    )


def _world(labelled: LabelledGraph, plan: Plan, seed: int) -> OpenWorld:
    return world_of(labelled, plan.protocol, plan.class_split or 0, seed, plan.visibility)


def _discover(world: OpenWorld, plan: Plan, seed: int, progress: Progress, model: Model) -> _Played:
    assert isinstance(plan.method, Method)
    # After phase 1 too: what is forgotten later is measured against it.
    played = _Played([_first_grade(model, world)] if len(world.tasks) > 1 else [], model=model)
    before, refreshes = world.old.graph, 0
    for session, exam in enumerate(world.exams):
        task = world.handed(session, plan.handed)
        model = discover(model, task, plan.method, before=before, seed=seed, progress=progress)
        before, refreshes = task.graph, refreshes + (model.stages[-1].refresh is not None)
        played.grades.append(grade(model, exam))
        played.model, played.sees = model, tuple(model.stages[-1].sees)
    if plan.visibility == "inductive":
        played.measured["refreshes"] = float(refreshes)
    return played


def _first_grade(model: Model, world: OpenWorld) -> Grade:
    exam, n_old = world.exams[0], world.exams[0].sizes[0]
    old, names = exam.y < n_old, exam.class_names[:n_old]
    return grade(model, Exam(exam.graph, exam.ids[old], exam.y[old], (n_old,), names))


def _assign(world: OpenWorld, method: Baseline, seed: int, model: Model) -> _Played:
    (task,), (exam,) = world.tasks, world.exams
    place = {node: i for i, node in enumerate(task.graph.node_ids.tolist())}
    ids = [place[node] for node in world.old.graph.node_ids[world.old.train_ids].tolist()]
    old = replace(world.old, graph=task.graph, train_ids=np.array(ids))
    with repeatable(seed, "rival"):
        said = method.assign(model, old, task)[exam.ids]
    predicted = (exam.sizes[0], task.num_new or 0)
    confusion = metrics.confusion_matrix(exam.y, said, sum(exam.sizes), sum(predicted))
    return _Played([Grade(confusion, None, exam.sizes, predicted)], sees=method.sees)


def _count(world: OpenWorld, plan: Plan, seed: int, model: Model) -> _Played:
    """Count, then let Prism find as many; or, where there is no rule, as many as there are."""
    (exam,), true = world.exams, len(world.classes[1])
    task, played = world.handed(0, plan.handed), _Played()
    number, clock = true, time.perf_counter()
    if isinstance(plan.method, CountingRule):
        with repeatable(seed, "count"):
            counted = plan.method.count_classes(model, replace(task, num_new=None))
        number = counted.number
        played.measured["seconds_count"] = time.perf_counter() - clock
        if counted.likely:
            played.measured |= {
                "holds": 100.0 * (true in counted.likely),
                "likely": float(len(counted.likely)),
            }
    played.measured |= {"true": float(true), "counted": float(number)}
    if number:
        method = plan.method if isinstance(plan.method, Method) else Prism()
        model = discover(model, _told(task, number), method, seed=seed)
    played.grades.append(grade(model, exam))
    played.model = model
    return played


def _told(task: NewTask, number: int) -> NewTask:
    return replace(task, num_new=min(number, len(task.ids)))


def _measured(
    labelled: LabelledGraph, world: OpenWorld, plan: Plan, model: Model
) -> dict[str, float]:
    if plan.protocol.startswith("count"):
        known, n_true = labelled.y >= 0, labelled.num_classes
        ids, said = np.unique(model.predict(labelled.graph)[known], return_inverse=True)
        confusion = metrics.confusion_matrix(labelled.y[known], said, n_true, len(ids))
        return {"nmi_all": metrics.nmi(confusion)}
    if plan.protocol == "gnnsafe":
        (exam,), n_old = world.exams, len(plan.old)
        p = model.predict_proba(exam.graph)[exam.ids]  # (graded nodes, classes)
        return dict(detection_scores(p[:, n_old:].sum(axis=1), exam.y >= n_old))
    return {}
