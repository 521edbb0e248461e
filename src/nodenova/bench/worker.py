"""One run of a sweep: a row, whatever goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nodenova.bench import league_run as league
from nodenova.bench import schedules
from nodenova.bench.embeddings import map_content
from nodenova.bench.row import Row, frozen_settings
from nodenova.bench.run import Phase1Result, learn, run_one
from nodenova.bench.runs import RunSpec
from nodenova.data.labels import LabelledGraph
from nodenova.evaluation.provenance import commit, versions
from nodenova.files import write_atomically
from nodenova.io.datasets import load_dataset
from nodenova.io.load import load_graph
from nodenova.progress import Progress, no_progress


@dataclass(frozen=True)
class Source:
    """Where a process finds a dataset again by its name.

    Attributes:
        data_root: Folder with raw dataset files; None for the environment variable NODENOVA_DATA.
        split: Which published split, where there are several.

    Examples:
        >>> Source().load("synthetic:nodes=200,classes=4").graph.num_nodes
        200
    """

    data_root: str | None = None
    split: int = 0

    def load(self, name: str) -> LabelledGraph:
        """A user's file by its path, or a dataset by its name."""
        if Path(name).exists():
            return load_graph(name)
        return load_dataset(name, self.data_root, split=self.split)


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """What came of a run.

    Attributes:
        row: Done or failed.
        fitted: Phase 1, for the next run that shares it; None where that failed.
        map: Content of the file `row.map`, if it is to be kept.
    """

    row: Row
    fitted: Phase1Result | None
    map: bytes | None = None


class Runner:
    """Does runs one after the other, and keeps the graphs they are on.

    Args:
        source: Where their datasets are.
        progress: Called as each phase advances.
    """

    def __init__(self, source: Source, progress: Progress = no_progress) -> None:
        self.source = source
        self.progress = progress
        self.graphs: dict[str, LabelledGraph] = {}

    def attempt(self, spec: RunSpec, fitted: Phase1Result | None = None) -> RunOutcome:
        """One run.

        Args:
            spec: Which.
            fitted: Its phase 1, if it was done before.
        """
        name, plan, seed = spec.plan.dataset, spec.plan, spec.seed
        try:
            if name not in self.graphs:
                self.graphs[name] = self.source.load(name)
            graph = self.graphs[name]
            if plan.protocol:
                fitted = fitted or league.learn(graph, plan, seed, self.progress)
                row = league.play(graph, plan, seed, self.progress, fitted)
                return RunOutcome(replace(row, key=spec.key), fitted)
            fitted = fitted or learn(graph, plan, seed, self.progress)
            outcome = run_one(graph, plan, seed, self.progress, fitted)
            content = map_content(outcome) if spec.keep_map else None
            kept = f"{spec.key}.npz" if spec.keep_map else None
            return RunOutcome(replace(outcome.row, key=spec.key, map=kept), fitted, content)
        # Whatever goes wrong in one run is its result, and the others go on.
        except Exception as error:
            return RunOutcome(failed_row(spec, f"{type(error).__name__}: {error}"), fitted)


def kept(spec: RunSpec, made: RunOutcome, maps: Path) -> Row:
    """The row of a run, when its map is written; one that failed where that cannot be.

    Args:
        spec: The run.
        made: What came of it.
        maps: Folder for maps.
    """
    if made.map is not None:
        try:
            write_atomically(maps / str(made.row.map), made.map)
        except OSError as error:
            return failed_row(spec, f"{type(error).__name__}: {error}")
    return made.row


def failed_row(spec: RunSpec, error: str) -> Row:
    """The row of a run that gave no result: what was to be run, and what went wrong."""
    plan = spec.plan
    return Row(
        key=spec.key,
        status="failed",
        error=error,
        dataset=plan.dataset,
        method=plan.method_name,
        encoder=plan.encoder,
        seed=spec.seed,
        num_old=len(plan.old),
        num_new=plan.num_new,
        old_classes=plan.old,
        class_split=plan.class_split,
        draw="protocol" if plan.protocol else plan.draw,
        visibility=plan.visibility,
        protocol=plan.protocol,
        handed=plan.handed,
        changed=frozen_settings(schedules.changed(plan)),
        fit_changed=frozen_settings(dict(plan.fit_settings)),
        versions=versions(),
        commit=commit(),
        data=spec.data,
    )
