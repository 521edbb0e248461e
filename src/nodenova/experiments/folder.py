"""A run's folder: what was asked, one row and one model a seed, and a report. A run that was stopped can go on.

runs/cora/run.json            the plan
runs/cora/seed-0/model.json   + weights: the model of seed 0
runs/cora/seed-0/row.json     its scores; written last, so a seed with a row is finished
runs/cora/map.npz             embeddings of some test nodes, for the map in the report
runs/cora/report.html
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from nodenova.data.answers import Labelled
from nodenova.errors import StorageError
from nodenova.experiments import schedules
from nodenova.experiments.maps import read_map, write_map
from nodenova.experiments.run import Outcome, Plan, Row, Watch, run_one, unwatched
from nodenova.fitting import TRAINING
from nodenova.model import Model
from nodenova.storage import load_model, read_json, save_model, to_json, write_atomically

FORMAT = "nodenova run"


class RunFolder:
    """The folder of one plan, for any number of seeds."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, plan: Plan, data: str, overwrite: bool = False) -> RunFolder:
        """Open `path` for `plan`: new or empty, or a run of the same plan on the same data, which then goes on."""
        folder, document = cls(path), {"format": FORMAT, "version": 1, "plan": _plain(plan), "data": data}
        if plan.encoder != "prism":  # a run of a version that trained otherwise must not get seeds of this one
            document["phase_1"] = TRAINING | schedules.fit_settings(plan)
        if path.exists() and not path.is_dir():
            raise StorageError(f"{path} is a file, not a folder for a run")
        if path.is_dir() and any(path.iterdir()):
            existing = folder._document()
            if overwrite:
                shutil.rmtree(path)
            elif existing != document:
                raise StorageError(f"{path} holds another run ({_difference(existing, document)}); "
                                   "choose another --out, or give --overwrite to replace it")  # fmt: skip
            else:
                return folder
        write_atomically(path / "run.json", to_json(document))
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run, for reading."""
        folder = cls(path)
        folder._document()
        return folder

    def rows(self) -> list[Row]:
        """The rows of the finished seeds, by seed."""
        rows = [read_json(path) for path in self.path.glob("seed-*/row.json")]
        return sorted(rows, key=lambda row: row["seed"])

    def model(self, seed: int | None = None) -> Model:
        """The model of a seed, the first finished one unless given."""
        return load_model(self.path / f"seed-{self._seed(seed)}")

    def map(self) -> dict[str, np.ndarray] | None:
        """Embeddings z, true classes y, predicted classes, node_ids and the seed they are of; None if not kept."""
        path = self.path / "map.npz"
        return read_map(path) if path.is_file() else None

    def run(
        self,
        labelled: Labelled,
        plan: Plan,
        seeds: Sequence[int],
        watch: Watch = unwatched,
        done: Callable[[Row], None] = lambda row: None,
    ) -> list[Row]:
        """Run the seeds that are not there yet and return the rows of all of `seeds`."""
        finished = {row["seed"]: row for row in self.rows()}
        for seed in seeds:
            if seed not in finished:
                outcome = run_one(labelled, plan, seed, watch)
                self._write(outcome, seed)
                finished[seed] = outcome.row
            done(finished[seed])
        return [finished[seed] for seed in seeds]

    def _write(self, outcome: Outcome, seed: int) -> None:
        if not (self.path / "map.npz").exists():
            write_map(outcome, self.path / "map.npz")
        save_model(outcome.model, self.path / f"seed-{seed}")
        write_atomically(self.path / f"seed-{seed}" / "row.json", to_json(outcome.row))

    def _seed(self, seed: int | None) -> int:
        seeds = [row["seed"] for row in self.rows()]
        if not seeds:
            raise StorageError(f"{self.path}: this run has no finished seed yet")
        if seed is not None and seed not in seeds:
            raise StorageError(f"{self.path}: seed {seed} is not in this run; it has {', '.join(map(str, seeds))}")
        return seeds[0] if seed is None else seed

    def _document(self) -> object:
        path = self.path / "run.json"
        if not path.is_file():
            what = "exists and is not a run" if self.path.is_dir() else "does not exist"
            raise StorageError(f"{self.path} {what} (it has no run.json); nothing was written")
        document = read_json(path)
        if document.get("format") != FORMAT:
            raise StorageError(f"{path}: not a run of nodenova")
        return document


def _plain(plan: Plan) -> object:
    """The plan as JSON gives it back, so that a saved one and a new one compare equal."""
    return json.loads(json.dumps(asdict(plan)))


def _difference(a: object, b: object) -> str:
    """The first place in which two documents differ, in words."""
    if isinstance(a, dict) and isinstance(b, dict) and ("phase_1" in b) > ("phase_1" in a):
        return "made by a version that trained phase 1 otherwise"
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                inner = _difference(a.get(key), b.get(key))
                return f"{key}: {inner}" if key != "plan" else inner
    return f"{a!r} there, {b!r} now"
