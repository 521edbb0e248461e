"""Small changes of a Python source, one at a time, as a careless edit would make them.

Operators, constants, conditions, bounds of slices and returned values are changed, and calls and
assignments are removed. Text, annotations, decorators, assertions and messages stay as they are.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MODULE = "<module>"  # the place of statements outside functions and classes
# Functions for people who debug or read: their text is no result.
DISPLAY = {"__repr__", "__str__", "_repr_html_", "_repr_mimebundle_"}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("amin", "amax"),
    ("argmin", "argmax"),
    ("clamp_min", "clamp_max"),
    ("any", "all"),
    ("floor", "ceil"),
)
OTHER_NAME = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
AXES = ("axis", "dim")  # an axis is 0 or 1: any other number fails at once and shows nothing
Change: TypeAlias = tuple[ast.AST, str, str]  # the node to replace, the new text, the kind


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        module: Path of the file, below the root of the checkout.
        function: Qualified name of the function or class; `MODULE` outside of both.
        kind: Kind of the change.
        line: First line of the change.
        lines: Lines whose execution can reveal the change; for a default value those of its
            function, for a constant those that use it. Empty if they are not known.
        start: First byte of the replaced text.
        end: Byte behind the replaced text.
        text: Replacement.
        on_import: Whether the change acts when the module is imported.
        before: The changed statement's lines, on one line.
        after: The same with the change.
    """

    module: str
    function: str
    kind: str
    line: int
    lines: frozenset[int]
    start: int
    end: int
    text: str
    on_import: bool
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The identity of a mutant, which survives edits elsewhere in the file."""
        return self.module, self.function, self.before, self.after

    def apply(self, source: str) -> str:
        """Return the source with the change."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def find_mutants(source: str, module: str) -> list[Mutant]:
    """Return every mutant of a source, in the order of the text."""
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def position(line: int, column: int) -> int:
        return starts[line - 1] + column

    tree = ast.parse(source)
    uses = _uses(tree)
    found = []
    for place, statement, (node, text, kind) in _walk(tree):
        start = position(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        first, last = starts[node.lineno - 1], starts[node.end_lineno]  # type: ignore[attr-defined]
        after = (data[first:start] + text.encode() + data[end:last]).decode()
        own = range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
        lines = {statement.lineno, *own} if place.runs else _later_lines(statement, uses)
        mutant = Mutant(
            module,
            place.name or MODULE,
            kind,
            node.lineno,  # type: ignore[attr-defined]
            frozenset(lines),
            start,
            end,
            text,
            not place.runs,
            _one_line(data[first:last].decode()),
            _one_line(after),
        )
        if _compiles(mutant.apply(source)):
            found.append(mutant)
    return sorted(found, key=lambda one: (one.start, one.end, one.text))


def _uses(tree: ast.Module) -> dict[str, set[int]]:
    """Return the lines of functions in which each name is read."""
    uses: dict[str, set[int]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Name):
                    uses.setdefault(node.id, set()).add(node.lineno)
    return uses


def _later_lines(statement: ast.stmt, uses: dict[str, set[int]]) -> set[int]:
    """Return the lines that depend on a statement which runs on import."""
    if isinstance(statement, ast.FunctionDef):
        return set(range(statement.body[0].lineno, (statement.end_lineno or 0) + 1))
    if isinstance(statement, ast.Assign):
        names = [node for target in statement.targets for node in ast.walk(target)]
        return set().union(*(uses.get(n.id, set()) for n in names if isinstance(n, ast.Name)))
    return set()


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


@dataclass(frozen=True)
class _Place:
    """Where a statement is; `runs` if it is in the body of a function."""

    name: str = ""
    runs: bool = False

    def inside(self, name: str, runs: bool) -> _Place:
        return _Place(f"{self.name}.{name}" if self.name else name, runs)


def _walk(tree: ast.Module) -> Iterator[tuple[_Place, ast.stmt, Change]]:
    """Yield place, statement and change."""
    todo: list[tuple[_Place, ast.stmt]] = [(_Place(), statement) for statement in tree.body]
    while todo:
        place, statement = todo.pop()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if statement.name not in DISPLAY:
                inner = place.inside(statement.name, True)
                todo += [(inner, one) for one in statement.body]
                defaults = (*statement.args.defaults, *statement.args.kw_defaults)
                outer = _Place(inner.name, place.runs)  # defaults are evaluated outside
                for value in filter(None, defaults):
                    yield from ((outer, statement, change) for change in _expressions(value))
        elif isinstance(statement, ast.ClassDef):
            todo += [(place.inside(statement.name, False), one) for one in statement.body]
        elif not _is_skipped(statement):
            yield from ((place, statement, change) for change in _changes(statement))
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                for one in getattr(statement, name, ()):
                    parts = [one] if isinstance(one, ast.stmt) else one.body
                    todo += [(place, part) for part in parts]


def _is_skipped(statement: ast.stmt) -> bool:
    """Whether a statement has no result: an import, a message, a docstring, an assertion."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Raise | ast.Assert):
        return True
    if isinstance(statement, ast.Expr):
        value = statement.value
        is_warning = isinstance(value, ast.Call) and ast.unparse(value.func) == "warnings.warn"
        return isinstance(value, ast.Constant) or is_warning
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"


def _changes(statement: ast.stmt) -> Iterator[Change]:
    """Yield the changes of a statement, without those of statements inside it."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield statement, "pass", "removed call"
    elif isinstance(statement, ast.AugAssign):
        yield statement, "pass", "removed assignment"
        new = OPERATORS.get(type(statement.op))
        if new is not None and not _is_text(statement.value):
            yield _copied(statement, "op", new(), "operator")
    elif isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets
    ):
        yield statement, "pass", "removed assignment"
    elif isinstance(statement, ast.If | ast.While):
        yield statement.test, f"(not ({ast.unparse(statement.test)}))", "negated condition"
    elif isinstance(statement, ast.Return) and statement.value is not None:
        if not isinstance(statement.value, ast.Constant):
            yield statement, "return None", "returned value"
    elif isinstance(statement, ast.Continue):
        yield statement, "break", "left loop"
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "body", "orelse", "finalbody", "handlers", "cases"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                yield from _expressions(one)


def _expressions(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of an expression and of those in it; texts with values are messages."""
    if isinstance(node, ast.JoinedStr) or _is_strict(node):
        return
    yield from _of_expression(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return  # a negative number is one constant
    if isinstance(node, ast.keyword) and node.arg in AXES:
        return
    for child in ast.iter_child_nodes(node):
        yield from _expressions(child)


def _is_strict(node: ast.AST) -> bool:
    """Whether it is strict=True of zip: an assertion."""
    if not isinstance(node, ast.keyword) or node.arg != "strict":
        return False
    return isinstance(node.value, ast.Constant) and node.value.value is True


def _of_expression(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for new in COMPARISONS[type(node.ops[0])]:
            yield _copied(node, "ops", [new(), *node.ops[1:]], "comparison")
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        operator = OPERATORS[type(node.op)]
        if not _is_text(node.left) and not _is_text(node.right):
            yield _copied(node, "op", operator(), "operator")
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield _copied(node, "op", other(), "and/or")
    elif isinstance(node, ast.UnaryOp):
        yield node, f"({ast.unparse(node.operand)})", "removed sign"
    elif isinstance(node, ast.IfExp):
        yield node.test, f"(not ({ast.unparse(node.test)}))", "negated condition"
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield test, f"(not ({ast.unparse(test)}))", "negated condition"
    elif isinstance(node, ast.keyword) and node.arg in AXES and _is_zero_or_one(node.value):
        yield node.value, str(1 - ast.literal_eval(node.value)), "axis"
    elif isinstance(node, ast.Constant):
        yield from ((node, text, "constant") for text in _other_constants(node.value))
    elif isinstance(node, ast.Slice):
        for name in ("lower", "upper"):
            if getattr(node, name) is not None:
                yield _copied(node, name, None, "slice", "{}")
    elif isinstance(node, ast.Call):
        yield from _other_function(node.func)


def _other_constants(value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (str(not value),)
    if isinstance(value, int):
        return ("1",) if value == 0 else ("0", "2") if value == 1 else (str(value + 1),)
    if isinstance(value, float):
        return ("1.0",) if value == 0 else (repr(value * 2),)
    return ()


def _other_function(function: ast.expr) -> Iterator[Change]:
    """Yield min for max, any for all, and the like."""
    if isinstance(function, ast.Name) and function.id in OTHER_NAME:
        yield function, OTHER_NAME[function.id], "min/max"
    elif isinstance(function, ast.Attribute) and function.attr in OTHER_NAME:
        name = OTHER_NAME[function.attr]
        yield _copied(function, "attr", name, "min/max", "{}")


def _is_zero_or_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (0, 1)


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is a text, so that + joins, % fills in and / is a path."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _copied(node: ast.AST, field: str, value: object, kind: str, form: str = "") -> Change:
    """Return the change of one field of a node."""
    new = copy.deepcopy(node)
    setattr(new, field, value)
    shape = form or ("{}" if isinstance(node, ast.stmt) else "({})")
    return node, shape.format(ast.unparse(new)), kind
