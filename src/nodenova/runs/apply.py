"""A review becoming part of a saved model, decisions taken back, and the desk: the page for both.

The folder of a run that was reviewed holds, beside the model, `decisions.json` (see `history`) and
`origin/`, the model and the labels as they were before the first review: a decision is taken back
by taking all others anew.

A review taken by a model: all of its decisions, or none.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodenova.errors import NodenovaError, SettingError
from nodenova.files import to_json, umask, write_atomically
from nodenova.graph import Graph
from nodenova.model.decisions import Decision, Relabel
from nodenova.model.edits import apply_decision
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import save_model, weights_digest
from nodenova.progress import Progress, no_progress
from nodenova.review.page import review_page
from nodenova.review.review_file import History, Review
from nodenova.runs.labels import LABELS, corrected, no_labels, read_labels, write_labels
from nodenova.runs.map_cache import KeptMap
from nodenova.runs.run import DiscoveryRun


def apply_review(model: Model, review: Review | object, graph: Graph | None = None) -> Model:
    """Take all decisions of a review; if one cannot be taken, none is.

    A relabel is of labels that a model does not keep: it is checked here, and taken by the run that
    holds them (`nodenova apply-review`, `nodenova review`).

    Args:
        model: The one that was reviewed. It stays as it is.
        review: The review or its document, the content of review.json.
        graph: Needed for splits only: its nodes say what the parts are.

    Returns:
        A model with the decisions taken.

    Raises:
        SettingError: The review is of another model, or a decision cannot be taken; the sentence
            says which and why.

    Examples:
        >>> import nodenova as nova
        >>> from nodenova.model.decisions import Rename
        >>> from nodenova.model.saving import weights_digest
        >>> from nodenova.runs.apply import Review
        >>> old, new, _ = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), old=[0, 1])
        >>> model = nova.discover(nova.fit(old), new)
        >>> review = Review(weights_digest(model), (Rename(class_id=2, name="plants"),))
        >>> nova.apply_review(model, review).class_names
        ('class-0', 'class-1', 'plants', 'new-3')
    """
    review = review if isinstance(review, Review) else Review.from_json(review)
    if review.model != weights_digest(model):
        raise SettingError("the review was made for another model (its sha256 is not this model's)")
    for number, decision in enumerate(review.decisions, start=1):
        try:
            model = apply_decision(model, decision, graph)
        except NodenovaError as error:
            raise SettingError(f"decision {number} ({decision.do}): {error}") from error
    return model


ORIGIN = "origin"


def apply_to_saved(
    model_folder: Path, review: Review | object, graph: Graph | None, review_path: Path
) -> Model:
    """Make a review part of the model in a folder and keep it. A wrong one changes nothing.

    Args:
        model_folder: A saved model, which is replaced.
        review: The review or its document.
        graph: What the model was made on; needed for splits and for labels only.
        review_path: Where the review is kept. The labels that it corrects, the decisions so far and
            the model before all of them are beside it.

    Returns:
        The model with the decisions taken.

    Raises:
        SettingError: The review is no review, of another model, made before another one was saved,
            or one of its decisions cannot be taken.
    """
    review = review if isinstance(review, Review) else Review.from_json(review)
    folder = review_path.parent
    history = History.read(folder)
    history.check(review)
    model = apply_review(load_model(model_folder), review, graph)
    labels = _corrected(review.decisions, graph, read_labels(folder))
    if not review.decisions:
        return model
    _keep_origin(folder, model_folder)
    write_atomically(review_path, to_json(review.to_json()))
    _write(folder, model_folder, history.and_then(review.decisions), model, labels)
    return model


def undo(model_folder: Path, graph: Graph | None, folder: Path, count: int = 1) -> History:
    """Take back the last decisions that became part of a run. If that cannot be, nothing changes.

    Args:
        model_folder: The saved model, which is replaced.
        graph: What it was made on; needed where a class was split or a node moved.
        folder: Of the run.
        count: How many decisions.

    Returns:
        What is decided now.

    Raises:
        SettingError: There are not so many, or one that stays cannot be taken anew.
    """
    before = History.read(folder)
    now = before.without_last(count)
    model = load_model(folder / ORIGIN / "model")
    for decision in now.decisions:
        model = apply_decision(model, decision, graph)
    told = read_labels(folder / ORIGIN)
    labels = _corrected(now.decisions, graph, told) or told
    if labels is None:
        (folder / LABELS).unlink(missing_ok=True)
    _write(folder, model_folder, now, model, labels)
    return now


def _write(
    folder: Path,
    model_folder: Path,
    history: History,
    model: Model,
    labels: dict[str, np.ndarray] | None,
) -> None:
    history.write(folder)
    if labels is not None:
        write_labels(folder, labels)
    save_model(model, model_folder)


def _keep_origin(folder: Path, model_folder: Path) -> None:
    """Keep the model and the labels as they were before the first review."""
    if (folder / ORIGIN).is_dir():
        return
    place = Path(tempfile.mkdtemp(prefix=f".{ORIGIN}.", dir=folder))
    try:
        os.chmod(place, 0o777 & ~umask())
        shutil.copytree(model_folder, place / "model")
        if (folder / LABELS).is_file():
            shutil.copyfile(folder / LABELS, place / LABELS)
        os.rename(place, folder / ORIGIN)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _corrected(
    decisions: tuple[Decision, ...], graph: Graph | None, kept: dict[str, np.ndarray] | None
) -> dict[str, np.ndarray] | None:
    """The labels after decisions of which some correct labels; None if none does."""
    relabels = [decision for decision in decisions if isinstance(decision, Relabel)]
    if not relabels:
        return None
    if graph is None:
        raise SettingError("relabel: the run keeps no graph and no labels that could be corrected")
    return corrected(no_labels(graph) if kept is None else kept, graph, relabels)


class ReviewSession:
    """What `ReviewServer` asks for: a page of the model in a folder, and a place for reviews of it.

    Args:
        model_folder: A saved model, read anew after each review.
        run: What the page tells beside the model: the graph, facts, grades.
        review_path: Where the last review is kept.
        progress: Function `progress(phase, done, total)`, called while the page is made.
    """

    def __init__(
        self,
        model_folder: Path,
        run: DiscoveryRun,
        review_path: Path,
        *,
        progress: Progress = no_progress,
    ) -> None:
        self._folder = model_folder
        self._run = run
        self._review_path = review_path
        self._layout = KeptMap(review_path.parent, progress)
        self._page: str | None = None
        self._now: DiscoveryRun | None = None
        self.saved = False  # whether a review has become part of the run

    @property
    def run(self) -> DiscoveryRun:
        """The run with the model and the labels as they are now."""
        if self._now is None:
            kept = read_labels(self._review_path.parent)
            given = self._run.given if kept is None else kept["y"]
            names = self._run.given_names if kept is None else kept["names"].tolist()
            model = load_model(self._folder)
            history = History.read(self._review_path.parent)
            self._now = replace(
                self._run, model=model, given=given, given_names=names, history=history
            )
        return self._now

    def page(self) -> str:
        """The page of the model as it is; made once, and again after a review."""
        if self._page is None:
            self._page = review_page(self.run.page_data(self._layout), served=True)
        return self._page

    def save(self, review: Review) -> None:
        """Make a review part of the saved model. A wrong one changes nothing."""
        apply_to_saved(self._folder, review, self._run.graph, self._review_path)
        self._changed()

    def undo(self, seen: Review) -> None:
        """Take back the last decision that is part of the saved model.

        Args:
            seen: A review without decisions that says what the reader saw.

        Raises:
            SettingError: The run was reviewed since, or nothing can be taken back.
        """
        History.read(self._review_path.parent).check(seen)
        undo(self._folder, self._run.graph, self._review_path.parent)
        self._changed()

    def _changed(self) -> None:
        self._page = self._now = None
        self.saved = True
