"""The folder of a discovery on a user's own graph: the model, what it says of every node and class, and the page.

runs/mine/run.json          what was asked and understood; a folder with it is whole
runs/mine/model/            the model; a review becomes part of it
runs/mine/graph.npz         the graph, with no label in it (left out with keep_graph=False)
runs/mine/features.json     names of the features, and how columns of a table become them
runs/mine/answers.npz       the answer key, if there was one: for grading and for the page alone
runs/mine/predictions.csv   every node: class, name, probability
runs/mine/classes.csv       every class: size, confidence, characteristic features, representatives
runs/mine/report.html       the page
runs/mine/review.json       the last review, if there was one
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.classes.info import ClassInfo
from nodenova.classes.review import apply_review
from nodenova.data.npz import graph_npz, load_graph
from nodenova.data.recipe import Recipe, recipe_of
from nodenova.errors import StorageError
from nodenova.experiments.predictions import Predictions, table_content
from nodenova.experiments.run import Row, versions
from nodenova.graph import Graph
from nodenova.model import Model
from nodenova.report.layout import positions
from nodenova.report.review_page import write_review_page
from nodenova.reviewing import Desk
from nodenova.storage import load_model, read_json, save_model, to_json, umask, weights_digest, write_atomically

FORMAT = "nodenova discovery"
Steps = Callable[[int, int], None]


def silent(done: int, of: int) -> None:
    """No progress."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a discovery has to keep. `answers`: (class of every node or -1, names of the classes)."""

    title: str
    model: Model
    graph: Graph
    facts: Mapping[str, object]
    recipe: Recipe | None = None
    answers: tuple[np.ndarray, Sequence[str]] | None = None
    known: np.ndarray | None = None
    rows: Sequence[Row] = field(default_factory=list)
    unsure_below: float = 0.5


def is_own_run(path: Path) -> bool:
    """Whether this folder is of a discovery on a graph of one's own, and not of a graded run or a saved model."""
    return (path / "features.json").is_file()


class OwnRun:
    """A folder that `OwnRun.write` made. It is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / "run.json").is_file():
            what = "has no run.json" if path.is_dir() else "does not exist"
            raise StorageError(f"{path} is not a run of `nodenova discover`: it {what}")
        self.document = read_json(path / "run.json")
        if self.document.get("format") != FORMAT:
            raise StorageError(f"{path} is not a run of `nodenova discover`; {path / 'run.json'} is of something else")

    @staticmethod
    def check_place(path: Path, overwrite: bool) -> None:
        """Raise, before anything is computed, if a run may not be written there."""
        if path.exists() and not path.is_dir():
            raise StorageError(f"{path} is a file, not a folder for a run")
        if path.is_dir() and any(path.iterdir()):
            if not overwrite:
                raise StorageError(f"{path} is not empty; choose another --out, or give --overwrite to replace it")
            OwnRun(path)

    @classmethod
    def write(
        cls, path: Path, found: Found, *, keep_graph: bool = True, overwrite: bool = False, steps: Steps = silent
    ) -> OwnRun:
        """Write everything beside `path` and put it there in one step."""
        cls.check_place(path, overwrite)
        path.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            os.chmod(place, 0o777 & ~umask())
            save_model(found.model, place / "model")
            if keep_graph:
                write_atomically(place / "graph.npz", graph_npz(found.graph))
            recipe = None if found.recipe is None else found.recipe.as_json()
            write_atomically(place / "features.json", to_json({"names": found.graph.feature_names, "recipe": recipe}))
            if found.answers is not None:
                content = io.BytesIO()
                np.savez_compressed(content, y=found.answers[0], names=np.array(found.answers[1]))
                write_atomically(place / "answers.npz", content.getvalue())
            document = {
                "format": FORMAT,
                "version": 1,
                "title": found.title,
                "facts": dict(found.facts),
                "unsure_below": found.unsure_below,
                "rows": list(found.rows),
                "versions": dict(versions()),
            }
            write_atomically(place / "run.json", to_json(document))
            cls(place)._tell(found.model, found.graph, known=found.known, answers=found.answers, steps=steps)
            if path.is_dir():
                shutil.rmtree(path)
            os.rename(place, path)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return cls(path)

    @property
    def model_folder(self) -> Path:
        return self.path / "model"

    def model(self) -> Model:
        return load_model(self.model_folder)

    def graph(self) -> Graph:
        """The graph that was kept."""
        if not (self.path / "graph.npz").is_file():
            raise StorageError(f"{self.path} keeps no graph: give it with --graph, or --nodes and --edges")
        return load_graph(self.path / "graph.npz").graph

    def features(self) -> tuple[tuple[str, ...] | None, Recipe | None]:
        """Names of the features the model knows, and the recipe by which a table becomes them."""
        document = read_json(self.path / "features.json")
        names, recipe = document.get("names"), document.get("recipe")
        return None if names is None else tuple(names), None if recipe is None else recipe_of(recipe)

    def apply(self, review: object, steps: Steps = silent) -> Model:
        """Make a review part of the model, and write everything that is about it anew. A wrong one changes nothing."""
        keeps_graph = (self.path / "graph.npz").is_file()
        graph = self.graph() if keeps_graph else None
        model = apply_review(self.model(), review, graph)
        write_atomically(self.path / "review.json", to_json(review))
        save_model(model, self.model_folder)
        if graph is not None:
            self._tell(model, graph, answers=self._answers(), steps=steps)
        return model

    def report(self, steps: Steps = silent) -> Path:
        """Write report.html, predictions.csv and classes.csv anew."""
        self._tell(self.model(), self.graph(), answers=self._answers(), steps=steps)
        return self.path / "report.html"

    def desk(self, steps: Steps = silent) -> Desk:
        """What the review server serves and saves to."""
        told = self._told(self._answers())
        return Desk(self.model_folder, self.graph(), self.path / "review.json", progress=steps, **told)

    def _told(self, answers: tuple[np.ndarray, Sequence[str]] | None) -> dict[str, Any]:
        d = self.document
        facts = {key: d[key] for key in ("title", "facts", "versions", "unsure_below", "rows")}
        return {**facts, "answers": answers}

    def _tell(self, model: Model, graph: Graph, *, answers: Any, known: Any = None, steps: Steps = silent) -> None:
        unsure_below = self.document["unsure_below"]
        table = self.path / "predictions.csv"
        write_atomically(table, Predictions.of(model, graph, unsure_below).content(table))
        told = self._told(answers) | {"known": known, "layout": partial(positions, progress=steps)}
        story = write_review_page(model, graph, self.path / "report.html", model_hash=weights_digest(model), **told)
        write_atomically(self.path / "classes.csv", classes_csv(story.classes))

    def _answers(self) -> tuple[np.ndarray, Sequence[str]] | None:
        path = self.path / "answers.npz"
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["y"], [str(name) for name in arrays["names"]]


def classes_csv(classes: Sequence[ClassInfo]) -> bytes:
    """A table of the classes: one line each."""
    shown = ("id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure", "cohesion", "nearest")

    def value(info: ClassInfo, name: str) -> object:
        found = getattr(info, name)
        return round(found, 4) if isinstance(found, float) else found

    columns: dict[str, list[object]] = {name: [value(info, name) for info in classes] for name in shown}
    columns["features"] = [" ".join(f.name for f in info.features) for info in classes]
    columns["representatives"] = [" | ".join(str(node) for node in info.representatives) for info in classes]
    return table_content(columns, Path("classes.csv"))
