"""A review: the decisions of a person about one model, as a document (review.json).

    {"format": "nodenova review", "version": 1, "model": "<sha256 in the model's model.json>",
     "after": 2,                                     revision of the run; may be missing
     "decisions": [
        {"do": "rename", "class": 7, "name": "plants"},
        {"do": "merge", "classes": [5, 8], "name": "places"},       the name may be left out
        {"do": "reject", "class": 9},
        {"do": "split", "class": 6, "into": 2},                     into 2 unless told
        {"do": "relabel", "nodes": ["p17"], "class": 3}]}           a node moved by hand

Decisions are taken in order, each on what the ones before it left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodenova.errors import SettingError
from nodenova.model import decisions
from nodenova.model.decisions import Decision

FORMAT = "nodenova review"
VERSION = 1
KEYS = {"format", "version", "model", "after", "decisions"}


@dataclass(frozen=True)
class Review:
    """Decisions of a person about one model.

    Attributes:
        model: The sha256 of its weights.
        decisions: Taken in order, each on what the ones before it left.
        after: The revision of the run that the reader saw; None where that is not known.
    """

    model: str
    decisions: tuple[Decision, ...] = ()
    after: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The document."""
        taken = [decisions.to_json(decision) for decision in self.decisions]
        after = {} if self.after is None else {"after": self.after}
        document = {"format": FORMAT, "version": VERSION, "model": self.model}
        return document | after | {"decisions": taken}

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
        unknown = sorted(map(str, set(document) - KEYS))
        if unknown:
            raise SettingError(f"the review has {', '.join(unknown)}, which no review has")
        model, told = document.get("model"), document.get("decisions")
        if not isinstance(model, str) or not isinstance(told, list):
            raise SettingError("a review names its model (a sha256) and has a list of decisions")
        after = document.get("after")
        if after is not None and (not isinstance(after, int) or isinstance(after, bool)):
            raise SettingError(f"after is the number of a revision, not {after!r}")
        numbered = enumerate(told, start=1)
        taken = [decisions.from_json(one, where=f"decision {number}") for number, one in numbered]
        return cls(model, tuple(taken), after)
