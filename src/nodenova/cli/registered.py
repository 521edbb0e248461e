"""Names of methods and encoders, read from the source: neither help nor a typo waits for PyTorch."""

from __future__ import annotations

import ast
from pathlib import Path

from nodenova.errors import one_of


def names_in(registry: str, module: str) -> tuple[str, ...]:
    """The keys of a registry of the package.

    Args:
        registry: Its name.
        module: The file that it is in, from the package on.

    Examples:
        >>> names_in("METHODS", "methods/registry.py")[0]
        'prism'
    """
    tree = ast.parse((Path(__file__).parent.parent / module).read_text(encoding="utf-8"))
    typed = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    found = next(node.value for node in typed if ast.unparse(node.target) == registry)
    assert isinstance(found, ast.Dict)
    return tuple(ast.literal_eval(key) for key in found.keys if key is not None)


METHODS = names_in("METHODS", "methods/registry.py")
LABELLED = names_in("LABELLED", "supervised/__init__.py")
ENCODERS = ("prism", "gcn", "gat", "sage")
OLD_METHODS = ("taught",)  # known by another name, which is said where it is looked up


def check_names(method: str, encoder: str | None) -> None:
    """Refuse a method or an encoder that nobody has registered.

    Args:
        method: Its name, or a file of the user's own and a class in it, which is not looked into.
        encoder: Its name; None if the method is to say it.

    Raises:
        SettingError: There is none of this name.

    Examples:
        >>> check_names("mine.py:Mine", "gcn")
    """
    if ".py" not in method and method not in (*METHODS, *LABELLED, *OLD_METHODS):
        raise one_of("method", method, (*METHODS, *LABELLED))
    if encoder is not None and encoder not in ENCODERS:
        raise one_of("encoder", encoder, ENCODERS)
