"""What import-linter does not hold (its layers are in pyproject.toml).

Each test lists every violation at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parent.parent / "src" / "nodenova"
MODULES = sorted(SRC.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
MAX_LOOSE = 13  # modules outside a room, __init__ and __main__ aside
# PyTorch and PyTorch Geometric take seconds to import: tables and names of methods need neither.
LATE = {
    ("methods/registry.py", "nodenova.encoders.registry"),
    ("__main__.py", "nodenova.cli"),  # Ctrl-C is answered while it is imported
}
MAX_LINES = 60  # of a function, its docstring not counted; ruff limits parameters and statements
# Functions that are longer, so that the list can only become shorter.
LONG = {
    ("cli/discover.py", "discover"),
    ("cli/run.py", "run"),
    ("review/page_data.py", "collect"),
    ("runs/continue_run.py", "continue_run"),
}


def name_of(path: Path) -> str:
    return str(path.relative_to(SRC))


def local_imports(tree: ast.AST) -> Iterator[str]:
    """Modules of ours that are imported inside a function, where a cycle can hide."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                )
                yield from (name for name in names if name.split(".")[0] == "nodenova")


def calls(tree: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name
        for n in ast.walk(tree)
    )


def test_only_the_command_line_prints() -> None:
    assert not [
        name_of(path)
        for path, tree in TREES.items()
        if path.parent.name != "cli" and calls(tree, "print")
    ]


def test_no_import_hides_in_a_function() -> None:
    """The command line may: `nodenova --help` need not wait for PyTorch."""
    outside = {path: tree for path, tree in TREES.items() if path.parent.name != "cli"}
    assert {
        (name_of(path), name) for path, tree in outside.items() for name in local_imports(tree)
    } == LATE


def test_no_import_is_relative() -> None:
    froms = [
        (path, node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    ]
    assert not [name_of(path) for path, node in froms if node.level]


def test_names_of_files_say_something() -> None:
    assert not [
        name_of(path)
        for path in MODULES
        if path.stem in {"utils", "helpers", "common", "base", "misc"}
    ]


def test_there_are_few_loose_modules() -> None:
    assert len([path for path in SRC.glob("*.py") if not path.stem.startswith("__")]) < MAX_LOOSE


def test_every_room_says_what_it_is() -> None:
    rooms = [path for path in MODULES if path.name == "__init__.py"]
    assert not [name_of(path) for path in rooms if not ast.get_docstring(TREES[path])]


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Number of lines of a function without its docstring."""
    first = function.body[0]
    docstring = 0 if ast.get_docstring(function) is None else first.end_lineno - first.lineno + 1
    return function.end_lineno - function.lineno + 1 - docstring


def test_functions_are_short() -> None:
    functions = [
        (name_of(path), node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {(path, node.name) for path, node in functions if lines_of(node) > MAX_LINES}
    assert long == LONG, f"{len(long)} of {len(functions)} functions: more than {MAX_LINES} lines"


def test_the_readers_see_what_they_look_for() -> None:
    tree = ast.parse(
        "def f():\n    from nodenova.data import labels\n    import nodenova.io\n    print(1)\n"
    )
    assert list(local_imports(tree)) == ["nodenova.data", "nodenova.io"]
    assert calls(tree, "print")
    assert not list(local_imports(ast.parse("from nodenova.data import labels")))
