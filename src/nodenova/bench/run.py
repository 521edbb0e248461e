"""One run: fit, discover, grade, for one seed. Its row carries everything that made it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nodenova.bench import schedules
from nodenova.bench.plan import Plan
from nodenova.bench.row import NodeCounts, Row, frozen_settings
from nodenova.data.labels import Exam, LabelledGraph, OldTask
from nodenova.data.splits import labelled_new_task, resample_training_nodes, split, with_split
from nodenova.discovery import discover
from nodenova.evaluation.grade import grade
from nodenova.evaluation.graded import Seconds, counts_of
from nodenova.evaluation.provenance import commit, versions
from nodenova.fitting import fit
from nodenova.methods.registry import Method, settings_of
from nodenova.model.model import Model
from nodenova.nn.encode_cache import shared_passes
from nodenova.progress import Progress, no_progress
from nodenova.supervised.entrance import discover_supervised


@dataclass(frozen=True, eq=False)
class Phase1Result:
    """Phase 1 of a plan for one seed.

    Every method of that seed can start from it: a model cannot be damaged.

    Attributes:
        model: Of the old classes.
        seconds: How long it took.
    """

    model: Model
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run leaves.

    Attributes:
        model: After both phases.
        exam: What it was graded on.
        row: What was run, and what it said of the test nodes.
    """

    model: Model
    exam: Exam
    row: Row


def drawn(labelled: LabelledGraph, plan: Plan, seed: int) -> LabelledGraph:
    """The graph with the training nodes that a plan asks for."""
    if plan.draw == "published":
        return with_split(labelled, plan.per_class, seed)
    return resample_training_nodes(
        labelled, plan.old, plan.per_class, seed, balanced=plan.draw == "balanced"
    )


def learn(
    labelled: LabelledGraph, plan: Plan, seed: int, progress: Progress = no_progress
) -> Phase1Result:
    """Phase 1 alone. It does not depend on the plan's method."""
    ready = drawn(labelled, plan, seed)
    old, _, _ = split(ready, plan.old, num_new=plan.num_new, setting=plan.visibility)
    return fit_plan(old, plan, seed, progress)


def fit_plan(old: OldTask, plan: Plan, seed: int, progress: Progress) -> Phase1Result:
    """Phase 1 as a plan has it, on labelled nodes that were chosen already."""
    clock = time.perf_counter()
    model = fit(
        old,
        plan.encoder,
        seed=seed,
        device=plan.device,
        progress=progress,
        **schedules.fit_settings(plan),
    )
    return Phase1Result(model, time.perf_counter() - clock)


def run_one(
    labelled: LabelledGraph,
    plan: Plan,
    seed: int,
    progress: Progress = no_progress,
    fitted: Phase1Result | None = None,
) -> Outcome:
    """Both phases and the exam for one seed.

    Args:
        labelled: The graph, with all its labels.
        plan: What to run.
        seed: Of both phases, and of a split that is drawn.
        progress: Called as each phase advances.
        fitted: Phase 1 of the same plan and seed, if it was done before.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> plan = Plan(graph.name, nova.NeverNew(), "gcn", (0, 1), 2, (("epochs", 5),))
        >>> outcome = run_one(graph, plan, seed=0)
        >>> outcome.row.num_old, outcome.row.scores("block")["new"]
        (2, 0.0)
    """
    method = plan.method
    ready = drawn(labelled, plan, seed)
    old, new, exam = split(ready, plan.old, num_new=plan.num_new, setting=plan.visibility)
    fitted = fitted or fit_plan(old, plan, seed, progress)
    before = fitted.model
    with shared_passes():  # phase 2 and both exams read the same z where the encoder stays
        clock = time.perf_counter()
        if isinstance(method, Method):
            # As methods were compared from the first: what phase 1 has learned stays.
            after = discover(before, new, method, refresh=False, seed=seed, progress=progress)
        else:
            given = labelled_new_task(
                ready, plan.old, num_new=plan.num_new, setting=plan.visibility
            )
            after = discover_supervised(before, given, method, seed=seed, progress=progress)
        discover_seconds = time.perf_counter() - clock
        last, first = grade(after, exam), grade(before, exam)
    row = Row(
        dataset=plan.dataset,
        method=plan.method_name,
        encoder=plan.encoder,
        seed=seed,
        num_old=len(plan.old),
        num_new=plan.num_new,
        old_classes=plan.old,
        class_names=tuple(exam.class_names),
        class_split=plan.class_split,
        draw=plan.draw,
        split="published"
        if labelled.has_split
        else f"seeded, {plan.per_class} training nodes a class",
        visibility=plan.visibility,
        nodes=NodeCounts(unlabelled_new=len(new.ids), test=len(exam.ids)),
        settings=frozen_settings(settings_of(method)),
        changed=frozen_settings(schedules.changed(plan)),
        fit_settings=frozen_settings(after.stages[0].settings),
        fit_changed=frozen_settings(dict(plan.fit_settings)),
        sees=tuple(after.stages[-1].sees),
        confusion=counts_of(last.confusion),
        confusion_fit=counts_of(first.confusion),
        confusion_old=None if last.confusion_old is None else counts_of(last.confusion_old),
        confusion_new=None if last.confusion_new is None else counts_of(last.confusion_new),
        sizes=last.sizes,
        predicted_sizes=last.predicted,
        seconds=Seconds(fit=fitted.seconds, discover=discover_seconds),
        device=str(after.device),
        versions=versions(),
        commit=commit(),
        data=labelled.fingerprint(),
    )
    return Outcome(after, exam, row)
