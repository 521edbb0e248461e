"""Names of methods and encoders, read from the source: neither help nor a typo waits for PyTorch."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from nodenova.errors import one_of
from nodenova.settings import from_text


def names_in(registry: str, module: str) -> tuple[str, ...]:
    """The keys of a registry of the package.

    Args:
        registry: Its name.
        module: The file that it is in, from the package on.

    Examples:
        >>> names_in("METHODS", "methods/registry.py")[0]
        'prism'
    """
    tree = _tree(module)
    typed = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    found = next(node.value for node in typed if ast.unparse(node.target) == registry)
    assert isinstance(found, ast.Dict)
    return tuple(ast.literal_eval(key) for key in found.keys if key is not None)


def settings_in(method: str) -> tuple[dict[str, object], set[str]] | None:
    """The settings of a registered method, read from the source of its class.

    Args:
        method: Its name.

    Returns:
        Settings and their defaults, None where that is not a plain value; and words that they had
        before. None where the source does not say, as of a method of the user's own.

    Examples:
        >>> settings_in("sword")[0]["epochs"]
        600
    """
    made = _class_of(method, "METHODS", "methods/registry.py")
    made = made or _class_of(method, "LABELLED", "supervised/__init__.py")
    if made is None or made.bases:
        return None
    fields: dict[str, object] = {}
    readings: set[str] = set()
    for node in made.body:
        if isinstance(node, ast.AnnAssign) and "ClassVar" in ast.unparse(node.annotation):
            readings |= {"reading"} if ast.unparse(node.target) == "READINGS" else set()
        elif isinstance(node, ast.AnnAssign):
            first = node.value.args[0] if isinstance(node.value, ast.Call) else node.value
            plain = first.value if isinstance(first, ast.Constant) else None
            fields[ast.unparse(node.target)] = plain
    words = [
        n.value for d in made.decorator_list for n in ast.walk(d) if isinstance(n, ast.Constant)
    ]
    return fields, readings | {word for word in words if isinstance(word, str)}


def check_settings(method: str, settings: Mapping[str, str]) -> None:
    """Refuse settings that a registered method does not have, and texts of another type.

    Raises:
        SettingError: The sentence that the method itself would say.
    """
    known = settings_in(method)
    if known is None:
        return
    fields, others = known
    for name, text in settings.items():
        if name not in fields and name not in others:
            raise one_of(f"setting of {method}", name, fields)
        if fields.get(name) is not None:
            from_text(name, text, fields[name])


def _class_of(method: str, registry: str, module: str) -> ast.ClassDef | None:
    """The class that a registry has for a name, as it is written."""
    tree = _tree(module)
    typed = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    listed = next(node.value for node in typed if ast.unparse(node.target) == registry)
    assert isinstance(listed, ast.Dict)
    entries = zip(listed.keys, listed.values, strict=True)
    names = {ast.literal_eval(key): ast.unparse(kind) for key, kind in entries if key is not None}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and names.get(method) in [a.name for a in node.names]:
            path = str(node.module).removeprefix("nodenova.").replace(".", "/") + ".py"
            classes = [each for each in _tree(path).body if isinstance(each, ast.ClassDef)]
            return next((each for each in classes if each.name == names[method]), None)
    return None


def _tree(module: str) -> ast.Module:
    return ast.parse((Path(__file__).parent.parent / module).read_text(encoding="utf-8"))


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
