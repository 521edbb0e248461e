"""The folder of a graded run: its plan, one row and one model per seed, and a report.

runs/cora/run.json            the plan
runs/cora/seed-0/model.json   + weights: the model of seed 0
runs/cora/seed-0/row.json     its row; written last, so a seed with a row is finished
runs/cora/map.npz             embeddings of some test nodes, for the map in the report
runs/cora/map.layout.npz      their places on the map
runs/cora/report.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.bench.embeddings import read_map, write_map
from nodenova.bench.plan import Plan, current_form
from nodenova.bench.row import Row
from nodenova.bench.run import Outcome, run_one
from nodenova.data.labels import LabelledGraph
from nodenova.errors import NodenovaError, StorageError, brief
from nodenova.files.atomic import write_atomically
from nodenova.files.content import to_json
from nodenova.files.documents import check, map_of, nullable, plain, read_json, record, text, whole
from nodenova.files.folders import change_folder, is_empty, lock_folder, recover
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import write_model
from nodenova.progress import Progress, add_prefix, no_progress

FORMAT = "nodenova run"
MAP = "map.npz"
VERSION = 2  # settings are resolved values; in 1 they were text, and only the given ones
RUN = record(
    {"version": whole(1, VERSION), "plan": map_of(plain), "data": text},
    {"phase_1": nullable(map_of(plain))},
)


class GradedFolder:
    """The folder of one plan, for any number of seeds; a stopped run can be continued.

    Attributes:
        path: Path of the folder.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> import nodenova as nova
        >>> from nodenova.bench.plan import Plan
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> plan = Plan(graph.name, nova.NeverNew(), "gcn", (0, 1), 2, (("epochs", 5),))
        >>> with TemporaryDirectory() as place:
        ...     folder = GradedFolder.create(Path(place), plan, graph.fingerprint())
        ...     rows = folder.run(graph, plan, seeds=[0, 1])
        ...     [row.seed for row in GradedFolder.open(Path(place)).rows()]
        [0, 1]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # run.json of a run that replaces the one here as soon as its first seed is finished
        self._replacing: dict[str, Any] | None = None

    @classmethod
    def create(cls, path: Path, plan: Plan, data: str, overwrite: bool = False) -> GradedFolder:
        """Open `path` for `plan`: a new or empty folder, or a run of the same plan to continue.

        Args:
            path: Path of the folder.
            plan: What to run.
            data: Fingerprint of the graph.
            overwrite: Whether another run in the folder may be replaced, which happens when the
                first seed of this one is finished.

        Raises:
            StorageError: If `path` holds something else, or a run of another plan or other data.
        """
        # Seeds of this version must not be added to a run whose phase 1 was trained otherwise.
        phase_1 = plan.resolved_training or None
        folder = cls(path)
        wanted = {"plan": plan.to_json(), "data": data, "phase_1": phase_1}
        if path.exists() and not path.is_dir():
            raise StorageError(f"{path} is a file, not a folder for a run")
        document = {"format": FORMAT, "version": VERSION, **wanted}
        if path.is_dir():
            recover(path)
        if path.is_dir() and not is_empty(path):
            existing = folder._document()
            stored = {
                "plan": _current_plan(existing.get("plan")),
                "data": existing.get("data"),
                "phase_1": existing.get("phase_1"),
            }
            if overwrite:
                folder._replacing = document
            elif stored != wanted:
                raise StorageError(
                    f"{path} holds another run ({_difference(stored, wanted)}); "
                    "choose another --out, or replace it with --overwrite"
                )
            return folder
        write_atomically(path / "run.json", to_json(document))
        return folder

    @classmethod
    def open(cls, path: Path) -> GradedFolder:
        """Open an existing run for reading.

        Raises:
            StorageError: If there is no run at `path`.
        """
        folder = cls(path)
        folder._document()
        return folder

    def rows(self) -> list[Row]:
        """Return the rows of the finished seeds, sorted by seed."""
        if self._replacing is not None:
            return []
        return sorted(map(_read_row, self.path.glob("seed-*/row.json")), key=lambda row: row.seed)

    def model(self, seed: int | None = None) -> Model:
        """Return the model of a seed (default: the first finished one).

        Raises:
            StorageError: If the seed is not finished.
        """
        return load_model(self.path / f"seed-{self._seed(seed)}")

    def map(self) -> dict[str, np.ndarray] | None:
        """Return arrays z, y, predicted, node_ids and seed of the map; None if there is no map."""
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
        """Run the seeds that have no row yet and return the rows of all `seeds`.

        Args:
            labelled: Graph that the folder was created for.
            plan: Plan that it was created for.
            seeds: Seeds in the order of the rows.
            progress: Called as each phase advances.
            done: Called with the row of each seed, also of those that existed.
        """
        with lock_folder(self.path):
            finished = {row.seed: row for row in self.rows()}
            for seed in seeds:
                if seed not in finished:
                    outcome = run_one(labelled, plan, seed, add_prefix(progress, f"seed {seed}: "))
                    self._write(outcome, seed)
                    finished[seed] = outcome.row
                done(finished[seed])
        return [finished[seed] for seed in seeds]

    def _write(self, outcome: Outcome, seed: int) -> None:
        with change_folder(self.path) as change:
            place = change.new / f"seed-{seed}"
            write_model(outcome.model, place)
            write_atomically(place / "row.json", to_json(outcome.row.to_json()))
            if self._replacing is not None or not (self.path / MAP).exists():
                write_map(outcome, change.new / MAP)
            if self._replacing is not None:
                write_atomically(change.new / "run.json", to_json(self._replacing))
                change.remove("seed-*/*", "map.layout.npz", "report.html")
        self._replacing = None
        if change.interrupted:  # this seed is stored, and the next one must not begin
            raise KeyboardInterrupt

    def _seed(self, seed: int | None) -> int:
        seeds = [row.seed for row in self.rows()]
        if not seeds:
            raise StorageError(f"{self.path}: this run has no finished seed yet")
        if seed is not None and seed not in seeds:
            raise StorageError(
                f"{self.path}: this run has no seed {seed}; it has {', '.join(map(str, seeds))}"
            )
        return seeds[0] if seed is None else seed

    def _document(self) -> dict[str, Any]:
        path = self.path / "run.json"
        if self.path.is_dir():
            recover(self.path)
        if not path.is_file():
            what = "exists and is not a run" if self.path.is_dir() else "does not exist"
            raise StorageError(f"{self.path} {what} (it has no run.json); nothing was written")
        document: dict[str, Any] = read_json(path)
        if document.get("format") != FORMAT:
            raise StorageError(f"{path}: not a run of nodenova")
        check(document, RUN, str(path))
        return document


def _read_row(path: Path) -> Row:
    document = read_json(path)
    try:
        return Row.from_json(document)
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


def _current_plan(plan: Any) -> object:
    """Return a stored plan in today's form; one that cannot be read stays as it is."""
    with suppress(NodenovaError, TypeError, KeyError, ValueError, AttributeError):
        return current_form(plan)
    return plan


def _difference(a: object, b: object) -> str:
    """Return the first place in which two documents differ, in words."""
    if isinstance(a, dict) and isinstance(b, dict):
        if "phase_1" in a and a["phase_1"] is None and b["phase_1"] is not None:
            return "its version trained phase 1 differently"
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                inner = _difference(a.get(key), b.get(key))
                return f"{key}: {inner}" if key != "plan" else inner
    return f"{brief(a)} there, {brief(b)} now"
