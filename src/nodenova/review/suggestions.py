"""What a run suggests to the person who decides: values, each with the decision that accepts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from nodenova.display import percent
from nodenova.errors import StorageError
from nodenova.files import read_json
from nodenova.model.decisions import Merge, Relabel, Split

FORMAT, VERSION = "nodenova suggestions", 1
Node: TypeAlias = "str | int"


def likely(probability: float) -> str:
    """A probability in percent; what is not certain is not called so.

    Examples:
        >>> likely(0.87), likely(0.998)
        ('87%', '>99%')
    """
    return ">99%" if probability > 0.99 else percent(probability)


@dataclass(frozen=True)
class MergeSuggestion:
    """Two classes that look like one.

    Attributes:
        class_ids: Which, at least one of them discovered.
        probability: That two of their nodes, one of either, belong together.
    """

    kind: ClassVar[str] = "merges"
    class_ids: tuple[int, int]
    probability: float

    @property
    def decision(self) -> Merge:
        """What accepts it."""
        return Merge(self.class_ids)

    def sentence(self, names: Mapping[int, str]) -> str:
        """It in words, by the names of the classes."""
        one, other = (repr(names[c]) for c in self.class_ids)
        return (
            f"{one} and {other} look like one class: two of their nodes belong together with a "
            f"probability of {likely(self.probability)}"
        )


@dataclass(frozen=True)
class SplitSuggestion:
    """A class that looks like two.

    Attributes:
        class_id: Which.
        probability: That most of one half of it is of another class than most of the other half.
    """

    kind: ClassVar[str] = "splits"
    class_id: int
    probability: float

    @property
    def decision(self) -> Split:
        """What accepts it."""
        return Split(self.class_id)

    def sentence(self, names: Mapping[int, str]) -> str:
        """It in words, by the names of the classes."""
        return (
            f"{names[self.class_id]!r} looks like two classes, with a probability of "
            f"{likely(self.probability)}"
        )


@dataclass(frozen=True)
class LabelSuggestion:
    """A label of the user's that looks wrong.

    Attributes:
        node: Its node.
        label: What the label says.
        class_id: The class that the node looks like.
        probability: Of that class, by a classifier that has not seen the label.
    """

    kind: ClassVar[str] = "labels"
    node: Node
    label: str
    class_id: int
    probability: float

    @property
    def decision(self) -> Relabel:
        """What accepts it."""
        return Relabel((self.node,), self.class_id)

    def sentence(self, names: Mapping[int, str]) -> str:
        """It in words, by the names of the classes."""
        return (
            f"{str(self.node)!r} is labelled {self.label!r} and looks like "
            f"{names[self.class_id]!r} ({likely(self.probability)})"
        )


Suggestion: TypeAlias = MergeSuggestion | SplitSuggestion | LabelSuggestion


@dataclass(frozen=True)
class Suggestions:
    """All that a run suggests, each kind the likeliest first.

    Attributes:
        merges: Pairs of classes that look like one.
        splits: Classes that look like two.
        labels: Labels that look wrong.
        none: Nodes that fit none of the classes, the farthest first; empty unless asked for.
        none_share: About so many nodes of the known classes are called so; 0 asks for none.

    Examples:
        >>> found = Suggestions(merges=(MergeSuggestion((0, 3), 0.71),))
        >>> found.sentences({0: "oak", 3: "new-3"})[0].split(":")[0]
        "'oak' and 'new-3' look like one class"
        >>> Suggestions.from_json(found.to_json()) == found
        True
    """

    merges: tuple[MergeSuggestion, ...] = ()
    splits: tuple[SplitSuggestion, ...] = ()
    labels: tuple[LabelSuggestion, ...] = ()
    none: tuple[Node, ...] = ()
    none_share: float = 0.0

    @property
    def ranked(self) -> tuple[Suggestion, ...]:
        """Those that can be accepted: of classes by their probability, then labels by theirs."""
        of_classes: list[Suggestion] = [*self.merges, *self.splits]
        of_classes.sort(key=lambda one: -one.probability)
        return (*of_classes, *self.labels)

    def sentences(self, names: Mapping[int, str], most: int | None = None) -> list[str]:
        """The first of them in words; labels that look wrong together in one sentence.

        Args:
            names: What the classes are called, by id.
            most: How many sentences at the most.
        """
        said = [one.sentence(names) for one in self.ranked if not isinstance(one, LabelSuggestion)]
        if self.labels:
            first = self.labels[0].sentence(names)
            count = len(self.labels)
            said.append(
                f"1 label looks wrong: {first}"
                if count == 1
                else f"{count:,} labels look wrong, the first: {first}"
            )
        if self.none:
            count = len(self.none)
            many = "1 node fits" if count == 1 else f"{count:,} nodes fit"
            said.append(
                f"{many} none of the classes (so would {percent(self.none_share)} of the nodes of "
                "known classes)"
            )
        return said[:most]

    def to_json(self) -> dict[str, Any]:
        """The document that a run keeps as suggestions.json."""
        return {"format": FORMAT, "version": VERSION} | asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Suggestions:
        """What `to_json` gave.

        Raises:
            StorageError: The document is something else.
        """
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise StorageError(f"not suggestions: they say format {FORMAT!r}, version {VERSION}")
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
        """Those in the folder of a run.

        Raises:
            StorageError: There are none.
        """
        path = Path(folder) / "suggestions.json"
        if not path.is_file():
            raise StorageError(f"{path} does not exist")
        return cls.from_json(read_json(path))


NO_SUGGESTIONS = Suggestions()
