"""A run's folder: what was asked, one row and one model a seed, and a report.

A run that was stopped can go on.

runs/cora/run.json            the plan
runs/cora/seed-0/model.json   + weights: the model of seed 0
runs/cora/seed-0/row.json     its scores; written last, so a seed with a row is finished
runs/cora/map.npz             embeddings of some test nodes, for the map in the report
runs/cora/map.layout.npz      their places on it: it is laid out once
runs/cora/report.html
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.bench import schedules
from nodenova.bench.embeddings import read_map, write_map
from nodenova.bench.plan import Plan, as_now
from nodenova.bench.row import Row
from nodenova.bench.run import Outcome, run_one
from nodenova.data.labels import LabelledGraph
from nodenova.errors import NodenovaError, StorageError
from nodenova.files import read_json, to_json, write_atomically
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import save_model
from nodenova.progress import Progress, add_prefix, no_progress

FORMAT = "nodenova run"
MAP = "map.npz"
VERSION = 2  # since settings are kept resolved, as values; 1 kept those that were given, as text


class RunFolder:
    """The folder of one plan, for any number of seeds.

    Attributes:
        path: Where it is.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> import nodenova as nova
        >>> from nodenova.bench.plan import Plan
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> plan = Plan(graph.name, nova.NeverNew(), "gcn", (0, 1), 2, (("epochs", 5),))
        >>> with TemporaryDirectory() as place:
        ...     folder = RunFolder.create(Path(place), plan, graph.fingerprint())
        ...     rows = folder.run(graph, plan, seeds=[0, 1])
        ...     [row.seed for row in RunFolder.open(Path(place)).rows()]
        [0, 1]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, plan: Plan, data: str, overwrite: bool = False) -> RunFolder:
        """Open `path` for `plan`: new or empty, or a run of the same plan, which then goes on.

        Args:
            path: Where the folder is, or will be.
            plan: What to run.
            data: The fingerprint of the graph.
            overwrite: Delete another run that is there.

        Raises:
            StorageError: `path` holds something else, or a run of another plan or other data.
        """
        # A run of a version that trained phase 1 otherwise must not get seeds of this one.
        phase_1 = schedules.resolved(plan) or None
        folder = cls(path)
        asked = {"plan": plan.to_json(), "data": data, "phase_1": phase_1}
        if path.exists() and not path.is_dir():
            raise StorageError(f"{path} is a file, not a folder for a run")
        if path.is_dir() and any(path.iterdir()):
            existing = folder._document()
            there = {
                "plan": _as_now(existing.get("plan")),
                "data": existing.get("data"),
                "phase_1": existing.get("phase_1"),
            }
            if overwrite:
                shutil.rmtree(path)
            elif there != asked:
                raise StorageError(
                    f"{path} holds another run ({_difference(there, asked)}); "
                    "choose another --out, or give --overwrite to replace it"
                )
            else:
                return folder
        write_atomically(
            path / "run.json", to_json({"format": FORMAT, "version": VERSION, **asked})
        )
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run, for reading.

        Raises:
            StorageError: There is none at `path`.
        """
        folder = cls(path)
        folder._document()
        return folder

    def rows(self) -> list[Row]:
        """The rows of the finished seeds, by seed."""
        return sorted(map(_read_row, self.path.glob("seed-*/row.json")), key=lambda row: row.seed)

    def model(self, seed: int | None = None) -> Model:
        """The model of a seed, the first finished one unless given.

        Raises:
            StorageError: That seed, or any, is not finished.
        """
        return load_model(self.path / f"seed-{self._seed(seed)}")

    def map(self) -> dict[str, np.ndarray] | None:
        """Embeddings z, true classes y, predicted classes, node_ids and the seed they are of.

        None if they were not kept.
        """
        path = self.path / MAP
        return read_map(path) if path.is_file() else None

    def run(
        self,
        labelled: LabelledGraph,
        plan: Plan,
        seeds: Sequence[int],
        progress: Progress = no_progress,
        done: Callable[[Row], None] = lambda row: None,
    ) -> list[Row]:
        """Run the seeds that are not there yet and return the rows of all of `seeds`.

        Args:
            labelled: The graph that the folder was created for.
            plan: The plan that it was created for.
            seeds: Which seeds, in the order of the rows.
            progress: Called as each phase advances.
            done: Called with the row of each seed, those that were there too.
        """
        finished = {row.seed: row for row in self.rows()}
        for seed in seeds:
            if seed not in finished:
                outcome = run_one(labelled, plan, seed, add_prefix(progress, f"seed {seed}: "))
                self._write(outcome, seed)
                finished[seed] = outcome.row
            done(finished[seed])
        return [finished[seed] for seed in seeds]

    def _write(self, outcome: Outcome, seed: int) -> None:
        if not (self.path / MAP).exists():
            write_map(outcome, self.path / MAP)
        save_model(outcome.model, self.path / f"seed-{seed}")
        write_atomically(self.path / f"seed-{seed}" / "row.json", to_json(outcome.row.to_json()))

    def _seed(self, seed: int | None) -> int:
        seeds = [row.seed for row in self.rows()]
        if not seeds:
            raise StorageError(f"{self.path}: this run has no finished seed yet")
        if seed is not None and seed not in seeds:
            raise StorageError(
                f"{self.path}: seed {seed} is not in this run; it has {', '.join(map(str, seeds))}"
            )
        return seeds[0] if seed is None else seed

    def _document(self) -> dict[str, Any]:
        path = self.path / "run.json"
        if not path.is_file():
            what = "exists and is not a run" if self.path.is_dir() else "does not exist"
            raise StorageError(f"{self.path} {what} (it has no run.json); nothing was written")
        document = read_json(path)
        if document.get("format") != FORMAT:
            raise StorageError(f"{path}: not a run of nodenova")
        return document


def _read_row(path: Path) -> Row:
    document = read_json(path)
    try:
        return Row.from_json(document)
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


def _as_now(plan: Any) -> object:
    """A saved plan in the form of `Plan.to_json`.

    One that is no longer understood stays as it is and equals none.
    """
    with suppress(NodenovaError, TypeError, KeyError, ValueError):
        return as_now(plan)
    return plan


def _difference(a: object, b: object) -> str:
    """The first place in which two documents differ, in words."""
    if (
        isinstance(a, dict)
        and isinstance(b, dict)
        and "phase_1" in a
        and a["phase_1"] is None
        and b["phase_1"] is not None
    ):
        return "made by a version that trained phase 1 otherwise"
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                inner = _difference(a.get(key), b.get(key))
                return f"{key}: {inner}" if key != "plan" else inner
    return f"{a!r} there, {b!r} now"
