"""Names for classes by a function or a command of the user: class cards in, names out.

Names are suggestions, as the automatic ones are: a name that a person gave always goes first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from nodenova.display import plural
from nodenova.errors import NamerError, NodenovaError, SettingError, brief, first_line
from nodenova.files.documents import (
    check,
    check_encodable,
    map_of,
    nullable,
    parse_json,
    text,
    to_whole,
)
from nodenova.files.own_code import run_command, split_command
from nodenova.model.classes import has_own_name
from nodenova.model.info import ClassInfo
from nodenova.review.node_text import SEPARATOR, texts_of
from nodenova.runs.run import DiscoveryRun

MAX_LETTERS = 100  # of a name
MAX_EXEMPLARS = 5  # members that a card shows
MAX_KEYWORDS = 10
MAX_SIBLINGS = 20  # other classes on a card
SIBLING_KEYWORDS = 5
SECONDS = 600.0  # that a command may take
CARDS = {"format": "nodenova class cards", "version": 1}
ANSWER = map_of(nullable(text))
PROMPT = """\
Name a class of nodes that was found in a graph.
Its typical features: {keywords}
Some of its members:
{exemplars}
Other classes, which need other names:
{siblings}
Answer with the name alone: at most five words that fit its members and no other class."""


@dataclass(frozen=True)
class ClassCard:
    """What a namer is given about one class.

    Attributes:
        id: Id of the class.
        name: Automatic name that it has now.
        size: Number of its nodes.
        keywords: Its most characteristic features in words, the strongest first.
        exemplars: Texts of typical members: their shown columns, else their words, else their ids.
        siblings: Keywords of other classes by name: the most similar one first, then the largest.
        prompt: The same as a question to a language model.
    """

    id: int
    name: str
    size: int
    keywords: tuple[str, ...]
    exemplars: tuple[str, ...]
    siblings: Mapping[str, tuple[str, ...]]

    @property
    def prompt(self) -> str:
        """The card as a question to a language model."""
        others = (f"- {name}: {', '.join(words)}" for name, words in self.siblings.items())
        return PROMPT.format(
            keywords=", ".join(self.keywords) or "none",
            exemplars="\n".join(f"- {one}" for one in self.exemplars) or "- none",
            siblings="\n".join(others) or "- none",
        )


class Namer(Protocol):
    """What every `namer=` argument takes: a function from class cards to names.

    Names are a mapping from class ids, or a sequence in the order of the cards; None keeps the
    automatic name.

    Examples:
        >>> def first_keyword(cards):
        ...     return {card.id: card.keywords[0] for card in cards}
        >>> first_keyword([ClassCard(8, "genus, plant", 40, ("genus", "plant"), (), {})])
        {8: 'genus'}
    """

    def __call__(
        self, cards: Sequence[ClassCard], /
    ) -> Mapping[Any, str | None] | Sequence[str | None]: ...


def check_namer(namer: object) -> None:
    """Raise a SettingError unless a namer can be called."""
    if namer is not None and not callable(namer):
        raise SettingError(f"namer is a function from class cards to names, not {brief(namer)}")


@dataclass(frozen=True)
class CommandNamer:
    """A namer that runs a command: cards as JSON on its standard input, names on its output.

    The command is started as it is, without a shell, with the rights of the user. It reads

        {"format": "nodenova class cards", "version": 1, "classes": [{"id": 8, "prompt": …}, …]}

    with the fields of `ClassCard`, and answers {"8": "plants"}: names by the ids of the classes.
    A class that is missing or null keeps its automatic name.

    Attributes:
        command: Program and its arguments, quoted as in a shell.
        seconds: Time after which the command is stopped.

    Raises:
        SettingError: If there is no such program.

    Examples:
        >>> CommandNamer("no-such-program --fast")
        Traceback (most recent call last):
        ...
        nodenova.errors.SettingError: --namer: there is no program 'no-such-program'
    """

    command: str
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        split_command(self.command, "--namer")

    def __call__(self, cards: Sequence[ClassCard]) -> Mapping[str, str | None]:
        """Run the command and return its answer."""
        classes = [asdict(card) | {"prompt": card.prompt} for card in cards]
        question = json.dumps({**CARDS, "classes": classes}, ensure_ascii=False).encode()
        arguments = split_command(self.command, "--namer")
        answer = run_command(arguments, question, self.seconds, "--namer", NamerError)
        where = "the answer of --namer"
        names: dict[str, str | None] = parse_json(answer, where, NamerError)
        check(names, ANSWER, where, NamerError)
        return names


def class_cards(run: DiscoveryRun) -> list[ClassCard]:
    """Cards of the discovered classes that have neither a person's name nor a suggested one."""
    infos = run.classes
    decided = run.last_edits
    wanted = [
        info
        for c, info in zip(run.model.classes, infos, strict=True)
        if c.is_new and not has_own_name(c) and c.id not in run.suggested_names and info.size
        and c.id not in decided
    ]  # fmt: skip
    return [_card(run, info, infos) for info in wanted]


def _card(run: DiscoveryRun, info: ClassInfo, infos: Sequence[ClassInfo]) -> ClassCard:
    def first(one: ClassInfo) -> tuple[bool, int]:
        return one.id != info.nearest, -(one.size or 0)

    others = sorted((one for one in infos if one.id != info.id), key=first)[:MAX_SIBLINGS]
    nodes = np.array(info.representative_nodes[:MAX_EXEMPLARS], dtype=np.int64)
    shown = texts_of(run.graph, run.node_texts, nodes)
    texts = [SEPARATOR.join(filter(None, cells)) for cells in zip(*shown.values(), strict=True)]
    ids = [str(node) for node in info.representatives[:MAX_EXEMPLARS]]
    return ClassCard(
        id=info.id,
        name=info.name,
        size=info.size or 0,
        keywords=tuple(word.name for word in info.keywords[:MAX_KEYWORDS]),
        exemplars=tuple(filter(None, texts)) or tuple(ids),
        siblings={
            one.name: tuple(word.name for word in one.keywords[:SIBLING_KEYWORDS]) for one in others
        },
    )


def suggest_names(run: DiscoveryRun, namer: Namer) -> tuple[dict[int, str], list[str]]:
    """Names by class id that a namer gives, and notes on those that are not accepted.

    Raises:
        NamerError: If the namer fails, or its answer is no list of names.
    """
    check_namer(namer)
    cards = class_cards(run)
    if not cards:
        return {}, []
    try:
        answer = namer(cards)
    except NodenovaError:
        raise
    except Exception as error:
        raise NamerError(
            f"the namer failed ({type(error).__name__}: {first_line(error)})"
        ) from error
    taken = {name.casefold(): info.id for info in run.classes for name in (info.name,)}
    names: dict[int, str] = {}
    notes: list[str] = []
    for class_id, name in _answered(answer, cards).items():
        owner = taken.get(name.casefold(), class_id)
        if owner != class_id:
            fault = f"is the name of class {owner}"
        elif len(name) > MAX_LETTERS:
            fault = f"has {len(name)} characters, at most {MAX_LETTERS} are accepted"
        else:
            names[class_id] = name
            taken[name.casefold()] = class_id
            continue
        notes.append(
            f"the namer's name {brief(name)} {fault}: class {class_id} keeps its automatic name"
        )
    return names, notes


def name_after_discovery(
    run: DiscoveryRun, namer: Namer | None
) -> tuple[DiscoveryRun, tuple[str, ...]]:
    """The run with the names of a namer, and notes; where it fails, automatic names stay."""
    if namer is None:
        return run, ()
    try:
        names, notes = suggest_names(run, namer)
    except NamerError as error:  # hours of work are not lost because of a name
        return run, (f"{error}; the classes keep their automatic names",)
    return run.with_names(names), (*notes, suggested_note(names))


def suggested_note(names: Mapping[int, str]) -> str:
    """A sentence on the number of names."""
    return f"{plural(len(names), 'name is', 'names are')} suggested by the namer"


def _answered(answer: Any, cards: Sequence[ClassCard]) -> dict[int, str]:
    """Names by class id, of the classes that get one."""
    ids = [card.id for card in cards]
    if isinstance(answer, Mapping):
        pairs = [(_class_id(key, ids), name) for key, name in answer.items()]
    elif isinstance(answer, Sequence) and not isinstance(answer, str):
        if len(answer) != len(ids):
            raise NamerError(
                f"the namer gave {plural(len(answer), 'name')} for "
                f"{plural(len(ids), 'class', 'classes')}"
            )
        pairs = list(zip(ids, answer, strict=True))
    else:
        raise NamerError(f"the namer must give names by class id, not {brief(answer)}")
    names = {}
    for class_id, name in pairs:
        if name is not None and not isinstance(name, str):
            raise NamerError(f"the namer's name for class {class_id} is no text: {brief(name)}")
        check_encodable([name], "the namer's name", NamerError)
        words = " ".join("".join(c if c.isprintable() else " " for c in name or "").split())
        if words:
            names[class_id] = words
    return names


def _class_id(key: object, ids: Sequence[int]) -> int:
    """The class that a key of an answer names."""
    with suppress(ValueError, TypeError):
        class_id = to_whole(str(key))
        if class_id in ids:
            return class_id
    raise NamerError(f"the namer named class {brief(key)}, which it was not asked about")
