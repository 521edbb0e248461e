"""A review: the decisions of a person about one model, as a document (review.json).

    {"format": "nodenova review", "version": 1, "model": "<sha256 in the model's model.json>",
     "decisions": [
        {"do": "rename", "class": 7, "name": "plants"},
        {"do": "merge", "classes": [5, 8], "name": "places"},       the name may be left out
        {"do": "reject", "class": 9},
        {"do": "split", "class": 6, "into": 2},                     into 2 unless told
        {"do": "relabel", "nodes": ["p17"], "class": 3}]}           the user's labels were wrong

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
    """Decisions of a person about one model.

    Attributes:
        model: The sha256 of its weights.
        decisions: Taken in order, each on what the ones before it left.
    """

    model: str
    decisions: tuple[Decision, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document."""
        taken = [decisions.to_json(decision) for decision in self.decisions]
        return {"format": FORMAT, "version": VERSION, "model": self.model, "decisions": taken}

    @classmethod
    def from_json(cls, document: object) -> Review:
        """The review that a document holds.

        Raises:
            SettingError: The document is no review; the sentence says what is wrong with it.
        """
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise SettingError(f'this is not a review: it does not say "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise SettingError(
                f"version {document.get('version')!r} of another nodenova; "
                f"this one reads reviews of version {VERSION}"
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
        >>> from nodenova.review.decisions import Review
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
            model = take(model, decision, graph)
        except NodenovaError as error:
            raise SettingError(f"decision {number} ({decision.do}): {error}") from error
    return model
