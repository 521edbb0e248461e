"""Errors about the user's input: one sentence that names what is wrong, where, and a fix."""

from collections.abc import Iterable
from numbers import Integral


class NodenovaError(ValueError):
    """Base of every error about the user's input, as opposed to a bug.

    Its message is one sentence that names the file, column, node or option that is wrong.

    Examples:
        >>> import nodenova as nova
        >>> try:
        ...     nova.Graph.of([[1.0], [2.0]], [[0], [5]])
        ... except nova.NodenovaError as error:
        ...     print(error)
        graph: 1 edge names a node not in the graph (nodes are 0..1), first: 0 -> 5
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_sentence(str(message)))


MAX_SENTENCE = 400  # characters


def one_sentence(text: str) -> str:
    """Return a message in one line; names that make it very long are cut in the middle.

    Examples:
        >>> one_sentence("a folder\\nof two lines"), len(one_sentence("x" * 100_000))
        ('a folder of two lines', 400)
    """
    if len(text.splitlines()) > 1 or text != text.strip():
        text = " ".join(text.split())
    if len(text) > MAX_SENTENCE:
        text = f"{text[: MAX_SENTENCE - 105]} ... {text[-100:]}"
    return text


class GraphError(NodenovaError):
    """A graph, or the file it came from, cannot be used."""


class MissingColumnError(GraphError):
    """A table does not have the column that an option names."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class SplitError(NodenovaError):
    """A graph cannot be split into old and new classes as requested."""


class DatasetError(NodenovaError):
    """A named dataset is not on this machine, or its files cannot be read."""


class SettingError(NodenovaError):
    """An option, method, encoder or setting is unknown or has an impossible value."""


class StorageError(NodenovaError):
    """A saved model or run cannot be read, or a folder may not be written to."""


class NamerError(NodenovaError):
    """A namer failed, took too long, or its answer holds no names."""


class NumericsError(NodenovaError):
    """A computation gave NaN or infinity, or a matrix cannot be decomposed.

    The message names the phase, and what became NaN: a term of the loss with its epoch, a matrix,
    or a part of the model.
    """


def needs_training(method: str, encoder: str) -> SettingError:
    """Return the error for a method that trains its encoder, on an encoder without training."""
    return SettingError(
        f"{method} needs an encoder that can be trained: fit with gcn, gat or sage, not {encoder}"
    )


def one_of(kind: str, name: str, known: Iterable[str]) -> SettingError:
    """Return the error for an unknown name; it lists the known ones.

    Examples:
        >>> print(one_of("encoder", "gnc", ["gat", "gcn", "sage"]))
        unknown encoder 'gnc'; known: gat, gcn, sage
    """
    return SettingError(f"unknown {kind} {name!r}; known: {', '.join(sorted(known))}")


def first_line(error: BaseException) -> str:
    """Return the first line of another library's message, at most 120 characters, or its type."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return text if len(text) <= 120 else text[:117] + "..."


def brief(value: object, most: int = 60) -> str:
    """Return a wrong value for a message: a short one as it is, a long one cut, a list by its type.

    Examples:
        >>> brief("oak"), brief(1.5), brief(None), brief({"a": 1}), brief("x" * 99, most=10)
        ("'oak'", '1.5', 'null', 'an object', "'xxxxxxx...'")
        >>> brief([1, "a"]), brief([0] * 99)
        ("[1, 'a']", 'a list')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value if len(value) <= most else value[: most - 3] + "...")
    if isinstance(value, int | float):  # the digits of a huge number cannot even be printed
        return repr(value) if abs(value) < 1e30 or value != value else "a huge number"
    if isinstance(value, list | tuple) and len(value) <= 8:
        parts = ", ".join(brief(part, 20) for part in value)
        if len(parts) < most - 2:
            return f"[{parts}]"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kinds: dict[type, str] = {list: "a list", tuple: "a list", dict: "an object"}
    return kinds.get(type(value), f"a value of type {type(value).__name__}")


def check_seed(seed: object, low: int | None = None) -> None:
    """Raise a SettingError unless a seed is a whole number, from `low` on."""
    if isinstance(seed, Integral) and (low is None or int(seed) >= low):
        return
    from_on = "" if low is None else f" from {low} on"
    raise SettingError(f"seed must be a whole number{from_on}, it is {brief(seed)}")
