"""What a run suggests to the reviewer, each with the decision that accepts it; without PyTorch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

from nodenova.display import percent, plural
from nodenova.errors import StorageError
from nodenova.files.documents import (
    check,
    check_header,
    either,
    list_of,
    number,
    read_json,
    record,
    text,
    whole,
)
from nodenova.model.decisions import Decision, Merge, Relabel, Split, find_reversed
from nodenova.settings import check_arguments

FORMAT, VERSION = "nodenova suggestions", 1
MIN_SAME = 0.5  # probability from which two classes are suggested to be one
MIN_TWO = 0.3  # and one class to be two, which is rarely much more certain
MIN_WRONG = 0.9  # probability of another class from which a label looks wrong
Node: TypeAlias = "str | int"
_NODE, _PROBABILITY, _CLASS = either(text, whole()), number(0, 1), whole(0)
SUGGESTIONS = record(
    {
        "merges": list_of(
            record({"class_ids": list_of(_CLASS, 2, 2), "probability": _PROBABILITY}, exact=True)
        ),
        "splits": list_of(record({"class_id": _CLASS, "probability": _PROBABILITY}, exact=True)),
        "labels": list_of(
            record(
                {"node": _NODE, "label": text, "class_id": _CLASS, "probability": _PROBABILITY},
                exact=True,
            )
        ),
        "none": list_of(_NODE),
        "none_share": number(0, 1),
    }
)


def likely(probability: float) -> str:
    """Format a probability in percent; nothing is shown as certain.

    Examples:
        >>> likely(0.87), likely(0.998)
        ('87%', '>99%')
    """
    return ">99%" if probability > 0.99 else percent(probability)


def _quote(names: Mapping[int, str], class_id: int) -> str:
    """The name of a class in quotes; its id where a table of the run lacks it."""
    return repr(names.get(class_id, f"class {class_id}"))


@dataclass(frozen=True)
class MergeSuggestion:
    """Two classes that look like one, at least one of them discovered.

    Attributes:
        class_ids: Ids of the classes.
        probability: Probability that two nodes, one from each class, belong together.
    """

    kind: ClassVar[str] = "merges"
    class_ids: tuple[int, int]
    probability: float

    @property
    def decision(self) -> Merge:
        """The decision that accepts it."""
        return Merge(self.class_ids)

    def sentence(self, names: Mapping[int, str]) -> str:
        """The suggestion in words, with the names of the classes by id."""
        one, other = (_quote(names, c) for c in self.class_ids)
        return f"{one} and {other} are {likely(self.probability)} likely to be the same class"


@dataclass(frozen=True)
class SplitSuggestion:
    """A class that looks like two.

    Attributes:
        class_id: Id of the class.
        probability: Probability that its two halves are mostly of different classes.
    """

    kind: ClassVar[str] = "splits"
    class_id: int
    probability: float

    @property
    def decision(self) -> Split:
        """The decision that accepts it."""
        return Split(self.class_id)

    def sentence(self, names: Mapping[int, str]) -> str:
        """The suggestion in words, with the names of the classes by id."""
        return (
            f"{_quote(names, self.class_id)} is {likely(self.probability)} likely to be two classes"
        )


@dataclass(frozen=True)
class LabelSuggestion:
    """A label of the user that looks wrong.

    Attributes:
        node: Id of the labelled node.
        label: The label.
        class_id: Id of the class that the node looks like.
        probability: Probability of that class, by a classifier that has not seen the label.
    """

    kind: ClassVar[str] = "labels"
    node: Node
    label: str
    class_id: int
    probability: float

    @property
    def decision(self) -> Relabel:
        """The decision that accepts it."""
        return Relabel((self.node,), self.class_id)

    def sentence(self, names: Mapping[int, str]) -> str:
        """The suggestion in words, with the names of the classes by id."""
        return (
            f"{str(self.node)!r} is labelled {self.label!r} but looks like "
            f"{_quote(names, self.class_id)} ({likely(self.probability)})"
        )


Suggestion: TypeAlias = MergeSuggestion | SplitSuggestion | LabelSuggestion
T = TypeVar("T", MergeSuggestion, SplitSuggestion, LabelSuggestion)


@dataclass(frozen=True)
class Suggestions:
    """All suggestions of a run, the most probable of each kind first.

    Attributes:
        merges: Pairs of classes that look like one.
        splits: Classes that look like two.
        labels: Labels that look wrong.
        none: Ids of nodes that fit none of the classes, the farthest first.
        none_share: Share of known-class nodes that are flagged by mistake; 0 flags no nodes.

    Examples:
        >>> found = Suggestions(merges=(MergeSuggestion((0, 3), 0.71),))
        >>> found.sentences({0: "oak", 3: "new-3"})
        ["'oak' and 'new-3' are 71% likely to be the same class"]
        >>> Suggestions.from_json(found.to_json()) == found
        True
    """

    merges: tuple[MergeSuggestion, ...] = ()
    splits: tuple[SplitSuggestion, ...] = ()
    labels: tuple[LabelSuggestion, ...] = ()
    none: tuple[Node, ...] = ()
    none_share: float = 0.0

    @property
    def about_classes(self) -> tuple[MergeSuggestion | SplitSuggestion, ...]:
        """Merges and splits, the most probable first."""
        return tuple(sorted((*self.merges, *self.splits), key=lambda one: -one.probability))

    @property
    def ranked(self) -> tuple[Suggestion, ...]:
        """All that can be accepted: merges and splits by probability, then labels by theirs."""
        return (*self.about_classes, *self.labels)

    def sentences(self, names: Mapping[int, str], most: int | None = None) -> list[str]:
        """Return the first suggestions in words; wrong labels share one sentence.

        Args:
            names: Names of the classes by id.
            most: Maximum number of sentences.
        """
        check_arguments(Suggestions.sentences, locals())
        lines = [one.sentence(names) for one in self.about_classes]
        if self.labels:
            first = self.labels[0].sentence(names)
            many = plural(len(self.labels), "label looks", "labels look")
            lines.append(f"{many} wrong{', the first' if len(self.labels) > 1 else ''}: {first}")
        if self.none:
            lines.append(
                f"{plural(len(self.none), 'node fits', 'nodes fit')} none of the classes (so would "
                f"{percent(self.none_share)} of known-class nodes by mistake)"
            )
        return lines[:most]

    def to_json(self) -> dict[str, Any]:
        """Return the document that a run keeps as suggestions.json."""
        return {"format": FORMAT, "version": VERSION} | asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], where: str = "suggestions") -> Suggestions:
        """Return the suggestions in a document that `to_json` made.

        Args:
            document: The document.
            where: Name of the document, which begins messages.

        Raises:
            StorageError: If the document is something else.
        """
        check_arguments(Suggestions.from_json, locals())
        check_header(document, where, FORMAT, [VERSION])
        check(document, SUGGESTIONS, where)
        merges = (
            MergeSuggestion((one["class_ids"][0], one["class_ids"][1]), one["probability"])
            for one in document["merges"]
        )
        return cls(
            tuple(merges),
            tuple(SplitSuggestion(**one) for one in document["splits"]),
            tuple(LabelSuggestion(**one) for one in document["labels"]),
            tuple(document["none"]),
            document["none_share"],
        )

    @classmethod
    def load(cls, folder: str | Path) -> Suggestions:
        """Read the suggestions of a run folder.

        Raises:
            StorageError: If the folder has none.
        """
        check_arguments(Suggestions.load, locals())
        path = Path(folder) / "suggestions.json"
        if not path.is_file():
            raise StorageError(f"{path} does not exist")
        return cls.from_json(read_json(path), str(path))


NO_SUGGESTIONS = Suggestions()


def without_reversals(
    found: Suggestions, decisions: Sequence[Decision], known: Collection[int]
) -> Suggestions:
    """The suggestions that reverse no decision of a person; arguments as of `find_reversed`."""

    def keep(some: Iterable[T]) -> tuple[T, ...]:
        return tuple(one for one in some if find_reversed(one.decision, decisions, known) is None)

    return replace(
        found, merges=keep(found.merges), splits=keep(found.splits), labels=keep(found.labels)
    )
