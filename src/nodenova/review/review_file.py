"""The decisions that became part of a run, in a file of its folder (decisions.json).

    {"format": "nodenova decisions", "version": 1, "revision": 3, "decisions": [...]}

The revision rises with every review that is saved and with every decision that is taken back, so
that a review made on a page that is out of date is known as such.

A review: the decisions of a person about one model, as a document (review.json).

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

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodenova.errors import SettingError, StorageError
from nodenova.files import read_json, to_json, write_atomically
from nodenova.model import decisions
from nodenova.model.decisions import Decision, Merge, Reject, Relabel, Rename, Split

REVIEW_FORMAT = "nodenova review"
REVIEW_VERSION = 1
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
        document = {"format": REVIEW_FORMAT, "version": REVIEW_VERSION, "model": self.model}
        return document | after | {"decisions": taken}

    @classmethod
    def from_json(cls, document: object) -> Review:
        """The review that a document holds.

        Raises:
            SettingError: The document is no review; the sentence says what is wrong with it.
        """
        if not isinstance(document, dict) or document.get("format") != REVIEW_FORMAT:
            raise SettingError(f'this is not a review: it does not say "format": "{REVIEW_FORMAT}"')
        if document.get("version") != REVIEW_VERSION:
            raise SettingError(
                f"version {document.get('version')!r} of another nodenova; "
                f"this one reads reviews of version {REVIEW_VERSION}"
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


NAME = "decisions.json"
HISTORY_FORMAT, HISTORY_VERSION = "nodenova decisions", 1


@dataclass(frozen=True)
class History:
    """What has been decided of a run.

    Attributes:
        revision: How often something was saved or taken back; 0 for a run as it was discovered.
        decisions: Those that are part of it now, the first one first.

    Examples:
        >>> from nodenova.model.decisions import Reject
        >>> one = History().and_then([Reject(7), Reject(8)])
        >>> one.revision, one.without_last(1)
        (1, History(revision=2, decisions=(Reject(class_id=7, name=None, after=None),)))
    """

    revision: int = 0
    decisions: tuple[Decision, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> History:
        """That of the run in a folder.

        Raises:
            StorageError: Its file is something else.
        """
        path = folder / NAME
        if not path.is_file():
            return cls()
        document = read_json(path)
        if document.get("format") != HISTORY_FORMAT or document.get("version") != HISTORY_VERSION:
            raise StorageError(f"{path}: not the decisions of a run, or of another nodenova")
        told = enumerate(document["decisions"], start=1)
        taken = (decisions.from_json(one, where=f"{path}: decision {i}") for i, one in told)
        return cls(document["revision"], tuple(taken))

    def write(self, folder: Path) -> None:
        """Keep it in the folder of its run."""
        taken = [decisions.to_json(one) for one in self.decisions]
        document = {"format": HISTORY_FORMAT, "version": HISTORY_VERSION, "revision": self.revision}
        write_atomically(folder / NAME, to_json(document | {"decisions": taken}))

    def check(self, review: Review) -> None:
        """Refuse a review that was made before another one was saved.

        Raises:
            SettingError: It was.
        """
        if review.after is not None and review.after != self.revision:
            raise SettingError(
                f"the run was reviewed since: this review is of revision {review.after}, and the "
                f"run is at {self.revision}; open the page again and decide on what is there now"
            )

    def and_then(self, taken: Sequence[Decision]) -> History:
        """With further decisions."""
        return History(self.revision + 1, (*self.decisions, *taken))

    def without_last(self, count: int) -> History:
        """Without the last decisions.

        Raises:
            SettingError: There are not so many.
        """
        if not 1 <= count <= len(self.decisions):
            have = len(self.decisions)
            said = "no saved decision" if not have else f"only {have}" if have > 1 else "only one"
            raise SettingError(f"{count} cannot be taken back: the run has {said}")
        return History(self.revision + 1, self.decisions[: len(self.decisions) - count])


def sentence(decision: Decision) -> str:
    """A decision in words.

    Examples:
        >>> sentence(Merge((5, 8), "places"))
        'Classes 5 and 8 are one, called “places”.'
    """
    match decision:
        case Rename(class_id, name):
            return f"Class {class_id} is called “{name}”."
        case Merge(class_ids, name=name):
            called = "" if name is None else f", called “{name}”"
            return f"Classes {' and '.join(map(str, class_ids))} are one{called}."
        case Reject(class_id):
            return f"Class {class_id} is rejected."
        case Split(class_id, into):
            return f"Class {class_id} is split into {into}."
        case Relabel(nodes, class_id):
            some = ", ".join(f"“{node}”" for node in nodes)
            return f"{some} {'is' if len(nodes) == 1 else 'are'} of class {class_id}."
