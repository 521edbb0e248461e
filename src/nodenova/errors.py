"""What nodenova raises when a user's input is wrong: one sentence, in the user's words."""

from collections.abc import Iterable


class NodenovaError(ValueError):
    """Base of every error that is about what the user brought, not about a bug.

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
    """Old and new classes cannot be told apart the way they were asked to be."""


class DatasetError(NodenovaError):
    """A named dataset is not on this machine, or its files cannot be read."""


class SettingError(NodenovaError):
    """An option, method, encoder or setting is unknown or has an impossible value."""


class StorageError(NodenovaError):
    """A saved model or run cannot be read, or a folder may not be written to."""


def needs_training(method: str, encoder: str) -> SettingError:
    """The error for a method that stands on a trained encoder and head, on one that is computed.

    Args:
        method: Its name.
        encoder: The name of the one it was given.
    """
    return SettingError(
        f"{method} needs an encoder that is trained: fit with gcn, gat or sage, not {encoder}"
    )


def one_of(kind: str, name: str, known: Iterable[str]) -> SettingError:
    """The error for a name that is not among the known ones; it lists them.

    Args:
        kind: Of what it is a name.
        name: The unknown one.
        known: The known ones.

    Examples:
        >>> print(one_of("encoder", "gnc", ["gat", "gcn", "sage"]))
        unknown encoder 'gnc'; known: gat, gcn, sage
    """
    return SettingError(f"unknown {kind} {name!r}; known: {', '.join(sorted(known))}")
