"""A review taken by a model: all of its decisions, or none."""

from __future__ import annotations

from nodenova.errors import NodenovaError, SettingError
from nodenova.graph import Graph
from nodenova.model.edits import take
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.review.document import Review as Review


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
