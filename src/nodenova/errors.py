"""Errors about the user's input: one sentence that names what is wrong, where, and a fix."""

from collections.abc import Iterable


class NodenovaError(ValueError):
    """Base of every error about the user's input, as opposed to a bug.

    Its message is one sentence that names the file, column, node or option that is wrong.

    Examples:
        >>> import nodenova as nova
        >>> try:
        ...     nova.Graph.of([[1.0], [2.0]], [[0], [5]])
        ... except nova.NodenovaError as error:
        ...     print(error)
        graph: 1 edges name nodes that are not there (nodes are 0..1), first: 0 -> 5
    """


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
