"""A review becoming part of a saved model, and the desk: the page to review it on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.drawing.layout import positions
from nodenova.files import to_json, write_atomically
from nodenova.graph import Graph
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import save_model, weights_digest
from nodenova.review.decisions import Review, apply_review
from nodenova.review.page import review_page
from nodenova.review.page_data import tell


def apply_to_saved(model_folder: Path, review: Review | object, graph: Graph | None, review_path: Path) -> Model:
    """Make a review part of the model in a folder and keep it in `review_path`. A wrong one changes nothing."""
    review = review if isinstance(review, Review) else Review.from_json(review)
    model = apply_review(load_model(model_folder), review, graph)
    write_atomically(review_path, to_json(review.to_json()))
    save_model(model, model_folder)
    return model


class Desk:
    """`page` and `save` are what `ReviewServer` asks for.

    model_folder: a saved model, read anew whenever it has changed.
    review_path:  where the last review is kept.
    told:         further arguments of `tell`.
    """

    def __init__(
        self,
        model_folder: Path,
        graph: Graph,
        review_path: Path,
        *,
        progress: Callable[[int, int], None] = lambda done, of: None,
        **told: Any,
    ) -> None:
        self._folder, self._graph, self._review_path = model_folder, graph, review_path
        self._progress, self._told = progress, told
        self._places: dict[str, np.ndarray] = {}
        self._page: str | None = None

    def page(self) -> str:
        """The page of the model as it is; made once, and again after a review."""
        if self._page is None:
            model = load_model(self._folder)
            story = tell(model, self._graph, model_hash=weights_digest(model), layout=self._layout, **self._told)
            self._page = review_page(story, served=True)
        return self._page

    def save(self, review: Review) -> None:
        """Make a review part of the saved model. A wrong one changes nothing."""
        apply_to_saved(self._folder, review, self._graph, self._review_path)
        self._page = None

    def _layout(self, z: np.ndarray) -> np.ndarray:
        """Decisions leave embeddings as they are: the map is laid out once."""
        key = hashlib.sha256(np.ascontiguousarray(z).tobytes()).hexdigest()
        if key not in self._places:
            self._places = {key: positions(z, self._progress)}
        return self._places[key]
