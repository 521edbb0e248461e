"""A review: the decisions of a person about one model, as a document (review.json), and a model that has taken them.

    {"format": "nodenova review", "version": 1, "model": "<sha256 in the model's model.json>", "decisions": [
        {"do": "rename", "class": 7, "name": "plants"},
        {"do": "merge", "classes": [5, 8], "name": "places"},       the name may be left out
        {"do": "reject", "class": 9},
        {"do": "split", "class": 6, "into": 2}]}                    into 2 unless told

Decisions are taken in order, each on what the ones before it left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodenova.errors import NodenovaError, SettingError
from nodenova.graph import Graph
from nodenova.model import decisions
from nodenova.model.decisions import Decision
from nodenova.model.edits import take
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest

FORMAT = "nodenova review"
VERSION = 1


@dataclass(frozen=True)
class Review:
    """Decisions about the model whose weights have the sha256 `model`."""

    model: str
    decisions: tuple[Decision, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document."""
        taken = [decisions.to_json(decision) for decision in self.decisions]
        return {"format": FORMAT, "version": VERSION, "model": self.model, "decisions": taken}

    @classmethod
    def from_json(cls, document: object) -> Review:
        """The review that a document holds; what is wrong with it is said in one sentence."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise SettingError(f'this is not a review: it does not say "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise SettingError(
                f"version {document.get('version')!r} of another nodenova; this one reads reviews of version {VERSION}"
            )
        unknown = sorted(map(str, set(document) - {"format", "version", "model", "decisions"}))
        if unknown:
            raise SettingError(f"the review has {', '.join(unknown)}, which no review has")
        model, told = document.get("model"), document.get("decisions")
        if not isinstance(model, str) or not isinstance(told, list):
            raise SettingError("a review names its model (a sha256) and has a list of decisions")
        numbered = enumerate(told, start=1)
        return cls(
            model,
            tuple(decisions.from_json(one, where=f"decision {number}") for number, one in numbered),
        )


def apply_review(model: Model, review: Review | object, graph: Graph | None = None) -> Model:
    """The model with all decisions of a review taken; if one cannot be, none is, and the error says which and why.

    `review` may be its document. `graph` is needed for splits only: its nodes say what the parts are.
    """
    review = review if isinstance(review, Review) else Review.from_json(review)
    if review.model != weights_digest(model):
        raise SettingError("the review was made for another model (its sha256 is not this model's)")
    for number, decision in enumerate(review.decisions, start=1):
        try:
            model = take(model, decision, graph)
        except NodenovaError as error:
            raise SettingError(f"decision {number} ({decision.do}): {error}") from error
    return model
