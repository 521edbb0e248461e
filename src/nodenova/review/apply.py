"""A review becoming part of a saved model, and the desk: the page to review it on."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodenova.drawing.layout import positions
from nodenova.errors import SettingError
from nodenova.files import to_json, write_atomically
from nodenova.graph import Graph
from nodenova.model.decisions import Relabel
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import save_model
from nodenova.review.corrections import corrected, read_labels, write_labels
from nodenova.review.decisions import Review, apply_review
from nodenova.review.page import review_page
from nodenova.review.run import DiscoveryRun, Steps, silent


def apply_to_saved(
    model_folder: Path, review: Review | object, graph: Graph | None, review_path: Path
) -> Model:
    """Make a review part of the model in a folder and keep it. A wrong one changes nothing.

    Args:
        model_folder: A saved model, which is replaced.
        review: The review or its document.
        graph: What the model was made on; needed for splits and for labels only.
        review_path: Where the review is kept. The labels that it corrects are beside it.

    Returns:
        The model with the decisions taken.

    Raises:
        SettingError: The review is no review, of another model, or one of its decisions cannot be
            taken.
    """
    review = review if isinstance(review, Review) else Review.from_json(review)
    model = apply_review(load_model(model_folder), review, graph)
    labels = _corrected(review, graph, review_path.parent)
    if labels is not None:
        write_labels(review_path.parent, labels)
    write_atomically(review_path, to_json(review.to_json()))
    save_model(model, model_folder)
    return model


def _corrected(review: Review, graph: Graph | None, folder: Path) -> dict[str, np.ndarray] | None:
    """The labels after a review that corrects some; None if it corrects none."""
    relabels = [decision for decision in review.decisions if isinstance(decision, Relabel)]
    if not relabels:
        return None
    kept = read_labels(folder)
    if graph is None or kept is None:
        raise SettingError("relabel: the run keeps no graph and no labels that could be corrected")
    return corrected(kept, graph, relabels)


class ReviewSession:
    """What `ReviewServer` asks for: a page of the model in a folder, and a place for reviews of it.

    Args:
        model_folder: A saved model, read anew after each review.
        run: What the page tells beside the model: the graph, facts, grades.
        review_path: Where the last review is kept.
        progress: Called with (steps done, steps) while the map is laid out.
    """

    def __init__(
        self,
        model_folder: Path,
        run: DiscoveryRun,
        review_path: Path,
        *,
        progress: Steps = silent,
    ) -> None:
        self._folder = model_folder
        self._run = run
        self._review_path = review_path
        self._progress = progress
        self._places: dict[str, np.ndarray] = {}
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
            self._now = replace(self._run, model=model, given=given, given_names=names)
        return self._now

    def page(self) -> str:
        """The page of the model as it is; made once, and again after a review."""
        if self._page is None:
            self._page = review_page(self.run.page_data(self._layout), served=True)
        return self._page

    def save(self, review: Review) -> None:
        """Make a review part of the saved model. A wrong one changes nothing."""
        apply_to_saved(self._folder, review, self._run.graph, self._review_path)
        self._page = self._now = None
        self.saved = True

    def _layout(self, z: np.ndarray) -> np.ndarray:
        """Decisions leave embeddings as they are: the map is laid out once."""
        key = hashlib.sha256(np.ascontiguousarray(z).tobytes()).hexdigest()
        if key not in self._places:
            self._places = {key: positions(z, self._progress)}
        return self._places[key]
