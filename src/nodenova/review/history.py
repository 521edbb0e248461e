"""The decisions that became part of a run, in a file of its folder (decisions.json).

    {"format": "nodenova decisions", "version": 1, "revision": 3, "decisions": [...]}

The revision rises with every review that is saved and with every decision that is taken back, so
that a review made on a page that is out of date is known as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodenova.errors import SettingError, StorageError
from nodenova.files import read_json, to_json, write_atomically
from nodenova.model import decisions
from nodenova.model.decisions import Decision, Merge, Reject, Relabel, Rename, Split
from nodenova.review.document import Review

NAME = "decisions.json"
FORMAT, VERSION = "nodenova decisions", 1


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
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise StorageError(f"{path}: not the decisions of a run, or of another nodenova")
        told = enumerate(document["decisions"], start=1)
        taken = (decisions.from_json(one, where=f"{path}: decision {i}") for i, one in told)
        return cls(document["revision"], tuple(taken))

    def write(self, folder: Path) -> None:
        """Keep it in the folder of its run."""
        taken = [decisions.to_json(one) for one in self.decisions]
        document = {"format": FORMAT, "version": VERSION, "revision": self.revision}
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
