"""Files of a review: review.json, decisions.json and the cached page; all without PyTorch.

review.json holds a person's decisions about one model, decisions.json in the run folder those that
are part of the run; docs/reference/classes.md shows the format. Decisions are applied in order. The
revision rises with every saved review and every undone decision, so that a review made on an
outdated page is recognized.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodenova.display import plural
from nodenova.errors import SettingError, StorageError, brief
from nodenova.files.atomic import write_atomically
from nodenova.files.content import to_json
from nodenova.files.documents import (
    check,
    list_of,
    nullable,
    plain,
    read_columns,
    read_json,
    record,
    text,
    to_whole,
    whole,
)
from nodenova.model import decisions
from nodenova.model.decisions import (
    Create,
    Decision,
    Merge,
    Reject,
    Relabel,
    Rename,
    Split,
    Unlabel,
)

REVIEW_FORMAT = "nodenova review"
REVIEW_VERSION = 1
_DECISIONS = list_of(replace(plain, name="a decision", plural="decisions"))
REVIEW = record(
    {"format": text, "version": whole(), "model": text, "decisions": _DECISIONS},
    {"after": nullable(whole())},
    exact=True,
)
HISTORY = record({"revision": whole(0), "decisions": _DECISIONS})
NAME = "decisions.json"
MAX_LISTED = 5  # nodes of a decision that are listed by name
HISTORY_FORMAT, HISTORY_VERSION = "nodenova decisions", 1


@dataclass(frozen=True)
class Review:
    """Decisions of a person about one model."""

    model: str  # the sha256 of its weights
    decisions: tuple[Decision, ...] = ()  # applied in order
    after: int | None = None  # the revision of the run that the reviewer saw; None if unknown

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        entries = [decisions.to_json(decision) for decision in self.decisions]
        after = {} if self.after is None else {"after": self.after}
        document = {"format": REVIEW_FORMAT, "version": REVIEW_VERSION, "model": self.model}
        return document | after | {"decisions": entries}

    @classmethod
    def from_json(cls, document: object) -> Review:
        """Return the review in a document; raise SettingError where it is not a review."""
        if not isinstance(document, dict) or document.get("format") != REVIEW_FORMAT:
            raise SettingError(f'this is not a review: expected "format": "{REVIEW_FORMAT}"')
        if document.get("version") != REVIEW_VERSION:
            version = f"review of version {brief(document.get('version'))}"
            raise SettingError(f"{version}; this nodenova reads version {REVIEW_VERSION}")
        check(document, REVIEW, "the review", SettingError)
        numbered = enumerate(document["decisions"], start=1)
        parsed = (decisions.from_json(entry, where=f"decision {i}") for i, entry in numbered)
        return cls(document["model"], tuple(parsed), document.get("after"))


@dataclass(frozen=True)
class History:
    """The decisions that are part of a run."""

    revision: int = 0  # number of saved reviews and undone decisions; 0 for a run as discovered
    decisions: tuple[Decision, ...] = ()  # the first one first

    @property
    def moves(self) -> tuple[Relabel, ...]:
        """Decisions that gave nodes a class, as moves: relabels and created classes."""
        moves: list[Relabel] = []
        for one in self.decisions:
            match one:
                case Relabel():
                    moves.append(one)
                case Create(nodes=nodes, class_id=int(made)):
                    moves.append(Relabel(nodes, made))
        return tuple(moves)

    @classmethod
    def read(cls, folder: Path) -> History:
        """Read that of a run folder; raise StorageError if its file is something else."""
        path = folder / NAME
        if not path.is_file():
            return cls()
        document = read_json(path)
        if document.get("format") != HISTORY_FORMAT or document.get("version") != HISTORY_VERSION:
            raise StorageError(f"{path}: not the decisions of a run, or of another nodenova")
        check(document, HISTORY, str(path))
        entries = enumerate(document["decisions"], start=1)
        parsed = (decisions.from_json(entry, where=f"{path}: decision {i}") for i, entry in entries)
        return cls(document["revision"], tuple(parsed))

    def write(self, folder: Path) -> None:
        """Write it into the run folder."""
        entries = [decisions.to_json(one) for one in self.decisions]
        document = {"format": HISTORY_FORMAT, "version": HISTORY_VERSION, "revision": self.revision}
        write_atomically(folder / NAME, to_json(document | {"decisions": entries}))

    def check(self, review: Review) -> None:
        """Raise SettingError for a review that was made before another one was saved."""
        if review.after is not None and review.after != self.revision:
            raise SettingError(
                f"the run was reviewed since: this review is of revision {review.after}, and the "
                f"run is at {self.revision}; reload the page and decide again"
            )

    def and_then(self, further: Sequence[Decision]) -> History:
        """With further decisions, as the next revision."""
        return History(self.revision + 1, (*self.decisions, *further))

    def without_last(self, count: int) -> History:
        """Without the last decisions; raise SettingError where there are not that many."""
        if not 1 <= count <= len(self.decisions):
            have = plural(len(self.decisions), "saved decision")
            raise SettingError(f"cannot undo {plural(count, 'decision')}: the run has {have}")
        return History(self.revision + 1, self.decisions[: len(self.decisions) - count])


def sentence(decision: Decision) -> str:
    """A decision in words.

    Examples:
        >>> sentence(Merge((5, 8), "places"))
        'Merged classes 5 and 8 as “places”.'
    """
    match decision:
        case Rename(class_id, name):
            return f"Renamed class {class_id} to “{name}”."
        case Merge(class_ids, name=name):
            called = "" if name is None else f" as “{name}”"
            return f"Merged classes {' and '.join(map(str, class_ids))}{called}."
        case Reject(class_id):
            return f"Rejected class {class_id}."
        case Split(class_id, into):
            return f"Split class {class_id} into {into}."
        case Create(nodes, name, class_id):
            made = "a class" if class_id is None else f"class {class_id}"
            called = "" if name is None else f" “{name}”"
            return f"Made {made}{called} of {_node_list(nodes)}."
        case Relabel(nodes, class_id):
            return f"Moved {_node_list(nodes)} to class {class_id}."
        case Unlabel(nodes):
            return f"Removed the label of {_node_list(nodes)}."


def _node_list(nodes: Sequence[str | int]) -> str:
    """Nodes by their names; many by their number."""
    if len(nodes) > MAX_LISTED:
        return plural(len(nodes), "node")
    return ", ".join(f"“{node}”" for node in nodes)


def as_served(page: str) -> str:
    """Turn a saved page into one that may send a review, exactly as `review_page(served=True)`."""
    # The policy comes before any text of the user's, and no text in JSON or HTML has plain quotes.
    page = page.replace("connect-src 'none'", "connect-src 'self'", 1)
    return page.replace('"served":false', '"served":true', 1)


def is_current(page: str, model: str, edits: int, revision: int) -> bool:
    """Whether a page shows the model with this sha256 and number of edits, at this revision."""
    # As `review_page` embeds it.
    now = {"review": Review(model, after=revision).to_json(), "edits": edits}
    return json.dumps(now, separators=(",", ":"))[1:-1] + "," in page


def cached_page(folder: Path) -> str | None:
    """The page of a run folder, ready to be served; None if missing or of an earlier model."""
    page, model = folder / "report.html", folder / "model" / "model.json"
    if not page.is_file() or not model.is_file():
        return None
    document = read_json(model, record({"sha256": text}, {"edits": list_of(plain)}))
    content = page.read_text(encoding="utf-8", errors="replace")  # a damaged page is made again
    digest, edits = document["sha256"], len(document.get("edits", ()))
    revision = History.read(folder).revision
    return as_served(content) if is_current(content, digest, edits, revision) else None


def cached_names(folder: Path) -> dict[int, str]:
    """Names of the classes of a run by id, from its classes.csv."""
    table = read_columns(folder / "classes.csv", {"id": to_whole, "name": str})
    return dict(zip(table["id"], table["name"], strict=True))
