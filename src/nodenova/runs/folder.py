"""The folder of a discovery on a user's own graph.

The model, what it says of every node and class, and the page:

    runs/mine/run.json         what was asked and understood; a folder with it is whole
    runs/mine/model/           the model; a review becomes part of it
    runs/mine/graph.npz        the graph, with no label in it (left out with keep_graph=False)
    runs/mine/features.json    names of the features, and how columns of a table become them
    runs/mine/labels.npz       the labels of phase 1, for page and tables (left out with the graph)
    runs/mine/before.npz       the classes of an earlier run that this one goes on from, by node
    runs/mine/answers.npz      the answer key, if there was one: for grading and for the page alone
    runs/mine/predictions.csv  every node: class, name, probability, the user's own label
    runs/mine/classes.csv      every class: size, confidence, typical features, representatives
    runs/mine/suggestions.json what it suggests to decide: see `nodenova.Suggestions.load`
    runs/mine/report.html      the page
    runs/mine/map.npz          places of nodes on its map
    runs/mine/shown.csv        what it shows of nodes beside their names, if anything
    runs/mine/review.json      the last review, if there was one
    runs/mine/decisions.json   all decisions that are part of the model
    runs/mine/labels.csv       the labels that follow from them, for `nodenova discover --labels`
    runs/mine/origin/          the model and the labels before the first review

What follows from the model and the graph of a run, written into its folder.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nodenova.errors import StorageError
from nodenova.evaluation.graded import GradedRun
from nodenova.files import read_json, table_content, to_json, umask, write_atomically
from nodenova.graph import Graph
from nodenova.io.npz import graph_npz, load_graph
from nodenova.io.recipe import TableEncoder
from nodenova.model.classes import display_names
from nodenova.model.info import ClassInfo
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import save_model
from nodenova.progress import Progress, no_progress
from nodenova.review.node_text import read_shown, write_shown
from nodenova.review.page import review_page
from nodenova.review.review_file import History
from nodenova.runs.apply import ReviewSession, apply_to_saved, undo
from nodenova.runs.labels import next_labels
from nodenova.runs.map_cache import KeptMap
from nodenova.runs.run import DiscoveryRun
from nodenova.runs.run_dir import FORMAT, check_place, run_document

REPORT = "report.html"


def write_findings(
    folder: Path, run: DiscoveryRun, progress: Progress = no_progress, report: bool = True
) -> None:
    """Write the tables, the suggestions and the page of a run.

    Args:
        folder: Where to.
        run: What was found.
        progress: Function `progress(phase, done, total)`, called while the page is made.
        report: Whether the page is made. One that is not is made when it is asked for; an earlier
            one, which would say something else now, goes.
    """
    table = folder / "predictions.csv"
    write_atomically(table, run.predictions.content(table))
    if report:
        progress("describing the classes", 0)
        page = review_page(run.page_data(KeptMap(folder, progress)))
        write_atomically(folder / REPORT, page.encode())
    else:
        (folder / REPORT).unlink(missing_ok=True)
    write_atomically(folder / "classes.csv", classes_csv(run.classes))
    write_atomically(folder / "suggestions.json", to_json(run.suggestions.to_json()))
    labels = folder / "labels.csv"
    if run.history.decisions:
        write_atomically(labels, table_content(next_labels(run), labels))
    else:
        labels.unlink(missing_ok=True)


def classes_csv(classes: Sequence[ClassInfo]) -> bytes:
    """A table of the classes: one line each."""
    shown = ["id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure"]
    shown += ["labelled", "cohesion", "nearest", "same_as", "same_as_probability", "two"]

    def value(info: ClassInfo, name: str) -> object:
        found = getattr(info, name)
        return round(found, 4) if isinstance(found, float) else found

    columns: dict[str, list[object]] = {
        name: [value(info, name) for info in classes] for name in shown
    }
    columns["features"] = [" ".join(f.name for f in info.features) for info in classes]
    columns["representatives"] = [
        " | ".join(str(node) for node in info.representatives) for info in classes
    ]
    return table_content(columns, Path("classes.csv"))


class DiscoveryFolder:
    """A folder that `DiscoveryFolder.write` made. It is there whole or not at all.

    Args:
        path: Of the folder.

    Raises:
        StorageError: It is not of a discovery, or not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document = run_document(path)

    @classmethod
    def write(
        cls,
        path: Path,
        run: DiscoveryRun,
        *,
        keep_graph: bool = True,
        overwrite: bool = False,
        reading: Mapping[str, object] | None = None,
        report: bool = True,
        progress: Progress = no_progress,
    ) -> DiscoveryFolder:
        """Write everything beside `path` and put it there in one step.

        Args:
            path: Where.
            run: What was found.
            keep_graph: Whether the graph and the labels of phase 1 are kept too.
            overwrite: Whether an earlier discovery there may be replaced.
            reading: Options of `load_graph` by which its files were read, for later ones.
            report: Whether the page is made now, or when it is asked for.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Raises:
            StorageError: A run may not be written there.
        """
        check_place(path, overwrite)
        path.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            os.chmod(place, 0o777 & ~umask())
            save_model(run.model, place / "model")
            if keep_graph:
                write_atomically(place / "graph.npz", graph_npz(run.graph))
                if run.given is not None:
                    names = [] if run.labels is None else list(run.labels.names)
                    _write_arrays(place / "labels.npz", y=run.given, names=np.array(names, str))
                if run.before is not None:
                    _write_arrays(place / "before.npz", y=run.before)
            recipe = None if run.recipe is None else run.recipe.as_json()
            write_atomically(
                place / "features.json",
                to_json({"names": run.graph.feature_names, "recipe": recipe}),
            )
            if run.answers is not None:
                _write_arrays(
                    place / "answers.npz", y=run.answers[0], names=np.array(run.answers[1])
                )
            document = {
                "format": FORMAT,
                "version": 1,
                "title": run.title,
                "facts": run.facts,
                "unsure_below": run.min_confidence,
                "keep_labels": run.keep_labels,
                "none_share": run.none_share,
                "lineage": list(run.lineage),
                "reading": dict(reading or {}),
                "rows": [row.to_json() for row in run.rows],
                "versions": run.versions,
            }
            write_atomically(place / "run.json", to_json(document))
            write_shown(place, run.graph.node_ids, run.shown)
            write_findings(place, run, progress, report)
            if path.is_dir():
                shutil.rmtree(path)
            os.rename(place, path)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return cls(path)

    @property
    def model_folder(self) -> Path:
        """Where the model is."""
        return self.path / "model"

    @property
    def keeps_graph(self) -> bool:
        """Whether the graph was kept."""
        return (self.path / "graph.npz").is_file()

    def model(self) -> Model:
        """The model with all reviews that became part of it."""
        return load_model(self.model_folder)

    def graph(self) -> Graph:
        """The graph that was kept.

        Raises:
            StorageError: None was.
        """
        if not self.keeps_graph:
            raise StorageError(
                f"{self.path} keeps no graph: give it with --graph, or --nodes and --edges"
            )
        return load_graph(self.path / "graph.npz").graph

    def features(self) -> tuple[tuple[str, ...] | None, TableEncoder | None]:
        """Names of the features the model knows, and the recipe by which a table becomes them."""
        document = read_json(self.path / "features.json")
        names = document.get("names")
        recipe = document.get("recipe")
        return (
            None if names is None else tuple(names),
            None if recipe is None else TableEncoder.from_json(recipe),
        )

    def names(self, model: Model) -> list[str]:
        """What the classes of the run's model are called.

        Their automatic names are those that classes.csv has.
        """
        try:
            with (self.path / "classes.csv").open(newline="", encoding="utf-8") as file:
                automatic = {int(line["id"]): line["auto_name"] for line in csv.DictReader(file)}
        except OSError:  # a run without its tables
            automatic = {}
        return display_names(model.classes, automatic)

    def class_of_nodes(self) -> dict[str, int]:
        """The id of the class that predictions.csv puts each node in, by the node's id as a text.

        Raises:
            StorageError: There is no such table.
        """
        path = self.path / "predictions.csv"
        if not path.is_file():
            raise StorageError(f"{self.path} has no predictions.csv: nodenova report writes it")
        with path.open(newline="", encoding="utf-8") as file:
            return {line["node"]: int(line["class"]) for line in csv.DictReader(file)}

    def run(self) -> DiscoveryRun:
        """The discovery as a value again."""
        d = self.document
        key = _read_arrays(self.path / "answers.npz")
        answers = None if key is None else (key["y"], [str(name) for name in key["names"]])
        labels = _read_arrays(self.path / "labels.npz")
        before = _read_arrays(self.path / "before.npz")
        return DiscoveryRun(
            title=d["title"],
            model=self.model(),
            graph=self.graph(),
            facts=d["facts"],
            recipe=self.features()[1],
            answers=answers,
            given=None if labels is None else labels["y"],
            given_names=[str(name) for name in (labels or {}).get("names", ())],
            keep_labels=d.get("keep_labels", True),
            none_share=d.get("none_share", 0.0),
            before=None if before is None else before["y"],
            lineage=d.get("lineage", ()),
            rows=[GradedRun.from_json(row) for row in d["rows"]],
            min_confidence=d["unsure_below"],
            versions=d["versions"],
            shown=read_shown(self.path),
            history=History.read(self.path),
        )

    def apply(self, review: object, progress: Progress = no_progress) -> Model:
        """Make a review part of the model, and write everything that is about it anew.

        Args:
            review: The review or its document. A wrong one changes nothing.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Raises:
            SettingError: One of its decisions cannot be taken.
        """
        graph = self.graph() if self.keeps_graph else None
        model = apply_to_saved(self.model_folder, review, graph, self.path / "review.json")
        if graph is not None:
            self.report(progress)
        return model

    def undo(self, count: int = 1, progress: Progress = no_progress) -> History:
        """Take back the last decisions, and write everything that is about the model anew.

        Args:
            count: How many.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            What is decided now.

        Raises:
            SettingError: There are not so many; nothing was changed.
        """
        graph = self.graph() if self.keeps_graph else None
        now = undo(self.model_folder, graph, self.path, count)
        if graph is not None:
            self.report(progress)
        return now

    def report(self, progress: Progress = no_progress) -> Path:
        """Write the page, the tables and the suggestions anew; the path of the page."""
        write_findings(self.path, self.run(), progress)
        return self.path / REPORT

    def desk(self, progress: Progress = no_progress) -> ReviewSession:
        """What the review server serves and saves to."""
        return ReviewSession(
            self.model_folder, self.run(), self.path / "review.json", progress=progress
        )


def _write_arrays(path: Path, **arrays: np.ndarray) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())


def _read_arrays(path: Path) -> dict[str, np.ndarray] | None:
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
