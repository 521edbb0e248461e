"""The mutation tester itself: it finds the changes, kills a wrong line and reports a weak test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.attack import mutants
from tools.attack.mutants import Result, draw, summarize
from tools.attack.mutators import MODULE, find_mutants

SOURCE = '''"""A module."""

LIMIT = 3


def largest(values: list[int], default: int = 0) -> int:
    """Return the largest of values below LIMIT; 1 - 1 in a text stays."""
    if not values:
        return default
    return max(value for value in values if value < LIMIT)


def unused(a: float) -> float:
    return -a


def started() -> int:
    return 1
'''
TESTS = """import subprocess
import sys

from nodenova import small
from nodenova.small import largest


def test_the_largest_is_found() -> None:
    assert largest([1, 2, 5]) == 2


def test_nothing_is_asserted() -> None:
    largest([])


def test_a_constant_is_read() -> None:
    assert small.LIMIT == 3


def test_a_process_finds_it() -> None:
    code = "from nodenova.small import started; assert started() == 1"
    assert not subprocess.run([sys.executable, "-c", code]).returncode
"""
NAMES = (
    "test_a_constant_is_read",
    "test_a_process_finds_it",
    "test_nothing_is_asserted",
    "test_the_largest_is_found",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package with one module, a weak test of it, and settings that need no plug-in."""
    root = tmp_path / "checkout"
    for path, text in {
        "src/nodenova/__init__.py": "",
        "src/nodenova/small.py": SOURCE,
        "tests/test_small.py": TESTS,
        "tests/test_doctests.py": "def test_examples_run() -> None:\n    pass\n",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def changes(source: str) -> set[str]:
    return {mutant.after for mutant in find_mutants(source, "a.py")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a < b", {"(a <= b)", "(a >= b)"}),
        ("a == b", {"(a != b)"}),
        ("a + b", {"(a - b)"}),
        ("a // b", {"(a * b)"}),
        ("a and b", {"(a or b)"}),
        ("not a", {"(a)"}),
        ("-a", {"(a)"}),
        ("0", {"1"}),
        ("1", {"0", "2"}),
        ("7", {"8"}),
        ("0.5", {"1.0"}),
        ("True", {"False"}),
        ("a[b:c]", {"a[:c]", "a[b:]"}),
        ("min(a, b)", {"max(a, b)"}),
        ("(a @ b).argmin()", {"(a @ b).argmax()"}),
        ("a.sum(axis=1)", {"a.sum(axis=0)"}),
        ("b if a else c", {"b if (not (a)) else c"}),
        ("[a for a in b if a]", {"[a for a in b if (not (a))]"}),
        ("zip(a, b, strict=True)", set()),
        ("zip(a, b, strict=False)", {"zip(a, b, strict=True)"}),
        ('"text"', set()),
        ('f"{a + 1}"', set()),
        ('"a" + b', set()),
    ],
)
def test_an_expression_is_changed_in_every_way(before: str, after: set[str]) -> None:
    assert changes(f"x = {before}\n") == {f"x = {text}" for text in after}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a:\n    pass", {"if (not (a)):"}),
        ("f(a)", {"pass"}),
        ("a.b = c", {"pass"}),
        ("a -= b", {"pass", "a += b"}),
        ("def f():\n    return a", {"return None"}),
        ("def f(a=0):\n    pass", {"def f(a=1):"}),
        ("for a in b:\n    continue", {"break"}),
        ("raise ValueError(1 + 1)", set()),
        ("assert a > 1", set()),
        ("import a", set()),
        ("a: f(1) = b", set()),
        ("@f(1)\ndef g():\n    pass", set()),
        ("def __repr__(self):\n    return a", set()),
        ("if TYPE_CHECKING:\n    f(1)", set()),
        ('warnings.warn("text", stacklevel=2)', set()),
    ],
)
def test_a_statement_is_changed_or_left_alone(before: str, after: set[str]) -> None:
    assert changes(before + "\n") == after


def test_a_mutant_knows_its_place_and_changes_nothing_else() -> None:
    found = find_mutants(SOURCE, "small.py")
    assert {mutant.function for mutant in found} == {MODULE, "largest", "unused", "started"}
    for mutant in found:
        changed = mutant.apply(SOURCE)
        assert changed != SOURCE
        assert changed.splitlines()[: mutant.line - 1] == SOURCE.splitlines()[: mutant.line - 1]
    lines = {mutant.line: mutant.lines for mutant in found}
    assert lines[3] == {10}  # where the constant is used
    assert lines[6] == {7, 8, 9, 10}  # the body of the function, for a default value
    assert lines[8] == {8}


def test_text_beyond_ascii_moves_no_change() -> None:
    (mutant,) = find_mutants('x = f("größer", a, b + c)\n', "a.py")
    assert mutant.after == 'x = f("größer", a, (b - c))'


def test_the_draw_is_by_seed_and_from_every_module(checkout: Path) -> None:
    (checkout / "src/nodenova/other.py").write_text("x = 1\n")
    first, again, other = (
        draw(checkout, "group", ["small.py", "other.py"], seed, 5) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert {mutant.module for mutant in first} == {
        "src/nodenova/small.py",
        "src/nodenova/other.py",
    }


# A process of its own: the laboratory forks, and runs pytest within.
DRIVER = """
import sys
from pathlib import Path
from tools.attack import mutants
from tools.attack.mutators import Mutant, find_mutants

mutants.GRACE = 1.0
module, root, *wanted = "src/nodenova/small.py", Path(sys.argv[1]), *sys.argv[3:]
source = (root / module).read_text()
laboratory = mutants.Laboratory(root, Path(sys.argv[2]))
tests = laboratory.observe([module], ["test_small.py"], [])
print(sorted(test.id for test in tests))
for mutant in [one for one in find_mutants(source, module) if one.after in wanted]:
    print(mutant.after, "=>", laboratory.judge(mutant, tests))
end = source.index("if not values")
for text in ("while True: pass", "import os; os.abort()", "import nowhere"):
    at = 0 if text == "import nowhere" else end
    lines = frozenset({8, 10})
    changed = text + chr(10) + " " * 4 * (at > 0)
    mutant = Mutant(module, "largest", "test", 8, lines, at, at, changed, False, "", "")
    print(text, "=>", laboratory.judge(mutant, tests))
assert (laboratory.copy / module).read_text() == source
"""


def test_a_wrong_line_is_killed_and_a_weak_test_is_found(checkout: Path, tmp_path: Path) -> None:
    folder = tmp_path / "laboratory"
    folder.mkdir()
    wrong = "return min(value for value in values if value < LIMIT)"
    # No test has a value of 3, and the one of the default asserts nothing.
    kept = "return max(value for value in values if (value <= LIMIT))"
    default = "def largest(values: list[int], default: int = 1) -> int:"
    wanted = (wrong, kept, default, "return 0", "LIMIT = 4")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, checkout, folder, *wanted],
        cwd=mutants.ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert not done.returncode, done.stderr
    tests, *lines = done.stdout.splitlines()
    assert tests == str([f"tests/test_small.py::{name}" for name in NAMES])
    verdicts = dict(line.split(" => ") for line in lines)
    assert verdicts == {
        wrong: "failed test",
        kept: "survived",
        default: "survived",
        "return 0": "failed test",  # in another process
        "LIMIT = 4": "failed test",  # in a test that runs no function
        "while True: pass": "time",
        "import os; os.abort()": "crash",
        "import nowhere": "error on import",
    }


def test_equivalent_mutants_are_survivors_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = find_mutants(SOURCE, "small.py")[:3]
    monkeypatch.setattr(mutants, "known_equivalents", lambda: {second.key: "for a reason"})
    results = [
        Result("a", first, "failed test"),
        Result("a", second, "survived"),
        Result("b", third, "not covered"),
    ]
    report = summarize(7, results)
    assert report["all"] == {
        "mutants": 3,
        "killed": 1,
        "equivalent": 1,
        "open": 1,
        "share": 33.3,
        "share_without_equivalents": 50.0,
    }
    assert [one["status"] for one in report["survivors"]] == ["equivalent: for a reason", "open"]  # type: ignore[attr-defined]
    assert json.loads(json.dumps(report)) == report


def test_every_group_has_its_modules_and_tests() -> None:
    for group in mutants.GROUPS.values():
        assert all((mutants.ROOT / "src/nodenova" / module).exists() for module in group.modules)
        assert all((mutants.ROOT / "tests" / test).exists() for test in group.tests)
    for module, function, before, after in mutants.known_equivalents():
        assert (mutants.ROOT / module).exists()
        assert function
        assert before != after
