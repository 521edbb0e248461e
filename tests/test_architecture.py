"""Who may import whom, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "nodenova"
MODULES = sorted(SRC.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """Every module of ours that the file names in an import, wherever in the file it stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide what is imported"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "nodenova"}


def inside(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


# room: what it may not import
FORBIDDEN = {
    "nodenova.losses": ["nodenova"],
    "nodenova.evaluation.significance": ["nodenova"],
    "nodenova.evaluation.metrics": ["nodenova"],
    "nodenova.graph": ["nodenova.data", "nodenova.model"],
    "nodenova.task": ["nodenova.data", "nodenova.model"],
    "nodenova.model": ["nodenova.data", "nodenova.evaluation", "nodenova.methods"],
    "nodenova.methods": [
        "nodenova.data",
        "nodenova.evaluation",
        "nodenova.experiments",
        "nodenova.discovery",
        "nodenova.fitting",
        "nodenova.labelled",
    ],
    "nodenova.training": ["nodenova"],
    "nodenova.discovery": ["nodenova.data", "nodenova.evaluation", "nodenova.fitting", "nodenova.labelled"],
    "nodenova.labelled": ["nodenova.evaluation", "nodenova.experiments", "nodenova.discovery", "nodenova.methods"],
    "nodenova.report": ["nodenova.fitting", "nodenova.discovery", "nodenova.methods", "nodenova.training", "nodenova.data"],
}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_keep_to_their_rooms(path: Path) -> None:
    name = name_of(path)
    for room, forbidden in FORBIDDEN.items():
        if inside(name, room):
            for imported in imports_of(path):
                within = inside(imported, room)
                assert within or not any(inside(imported, other) for other in forbidden), f"{name} imports {imported}"


# Who may see a type with a label in it: those who hold answers, grade or run experiments, and the two doors for labels.
SEE_LABELS = ("data", "evaluation", "experiments", "labelled", "fitting", "cli")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_few_see_labels(path: Path) -> None:
    if path != SRC / "__init__.py" and not any(inside(name_of(path), f"nodenova.{room}") for room in SEE_LABELS):
        assert not [name for name in imports_of(path) if inside(name, "nodenova.data") or inside(name, "nodenova.labelled")]


METHOD_FILES = sorted((SRC / "methods").glob("[!_]*.py")) + [
    SRC / "labelled" / f"{name}.py"
    for name in (
        "autonovel_ncd",
        "cpca",
        "dtc_ncd",
        "er_gnn",
        "gem",
        "ncl_ncd",
        "oracle",
        "sword_as_released",
        "twp",
    )
]


@pytest.mark.parametrize("path", METHOD_FILES, ids=name_of)
def test_methods_do_not_import_each_other(path: Path) -> None:
    rooms = [name for name in imports_of(path) if inside(name, "nodenova.methods") or inside(name, "nodenova.labelled")]
    shared = ("nodenova.labelled.lesson", "nodenova.labelled.with_old_nodes")
    assert all(any(inside(name, room) for room in shared) for name in rooms)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_command_line_prints_and_imports_the_command_line(path: Path) -> None:
    if not inside(name_of(path), "nodenova.cli") and name_of(path) != "nodenova.__main__":
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert "print" not in {call.id for call in calls if isinstance(call, ast.Name)}
        assert not any(inside(name, "nodenova.cli") for name in imports_of(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_are_small_and_have_names_that_say_something(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300
    assert path.stem not in {"utils", "helpers", "common", "base", "misc"}


def test_the_rule_can_fail(tmp_path: Path) -> None:
    """The reader of imports sees all forms of one."""
    file = tmp_path / "x.py"
    file.write_text("import nodenova.data\ndef f():\n    from nodenova.data import answers\n    from nodenova import fit\n")
    assert imports_of(file) == {"nodenova.data", "nodenova.data.answers", "nodenova", "nodenova.fit"}
