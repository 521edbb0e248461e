"""A saved model on the desk: the page to review it on, and the review becoming part of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.classes.review import apply_review
from nodenova.graph import Graph
from nodenova.report.layout import positions
from nodenova.report.review_page import review_page
from nodenova.report.story import tell
from nodenova.storage import load_model, save_model, to_json, weights_digest, write_atomically


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

    def save(self, document: Any) -> None:
        """Check a review, keep it, and make it part of the saved model. A wrong one changes nothing."""
        model = apply_review(load_model(self._folder), document, self._graph)
        write_atomically(self._review_path, to_json(document))
        save_model(model, self._folder)
        self._page = None

    def _layout(self, z: np.ndarray) -> np.ndarray:
        """Decisions leave embeddings as they are: the map is laid out once."""
        key = hashlib.sha256(np.ascontiguousarray(z).tobytes()).hexdigest()
        if key not in self._places:
            self._places = {key: positions(z, self._progress)}
        return self._places[key]
