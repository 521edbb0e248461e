"""The rows of `make bench`, and the page that is made of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CASE = {"benchmark": "costs", "name": "one thing", "work": "start", "given": {"size": 3}}


def imported(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / folder))
    sys.modules.pop(name, None)
    return __import__(name)


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return imported("tools", "performance", monkeypatch)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    module = imported("benchmarks", "rows", monkeypatch)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "rows")
    return module


def row(**changes: Any) -> dict[str, Any]:
    made = {"run": "2026-01-01T00:00:00", "commit": "abc", "benchmark": "costs", "case": "a"}
    made |= {"given": {}, "against": "", "threads": 1, "repeated": 1, "load": 0.5, "cores": 2}
    return made | {"versions": {}, "quantity": "seconds", "value": 1.0, "unit": "s"} | changes


def test_page_and_readme_show_the_committed_rows(tool: ModuleType, tmp_path: Path) -> None:
    assert tool.read()
    page, readme = tmp_path / "performance.md", tmp_path / "README.md"
    shutil.copy(tool.PAGE, page)
    shutil.copy(tool.README, readme)
    for name in tool.TABLES:
        tool.put(page, name, "nothing")
    tool.put(readme, "results", "nothing")
    assert page.read_text() != tool.PAGE.read_text()
    assert readme.read_text() != tool.README.read_text()
    image = tmp_path / "figure.svg"
    tool.write(page, readme, image)
    assert image.read_text() == tool.FIGURE.read_text()
    assert page.read_text() == tool.PAGE.read_text()
    assert readme.read_text() == tool.README.read_text()


def test_every_table_of_the_page_has_lines(tool: ModuleType) -> None:
    text = tool.PAGE.read_text()
    for name in ("sizes", "costs", "rivals", "layers", "curves"):
        between = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]
        assert len(re.findall(r"^\| .*\d", between, re.M)) > 3


def test_a_case_that_was_measured_twice_counts_as_it_was_last(tool: ModuleType) -> None:
    early, late = row(value=1.0), row(value=2.0, run="2026-01-02T00:00:00")
    gone = row(quantity="no longer measured")
    other = row(case="b")
    assert tool.latest([late, early, gone, other]) == [late, other]


def test_ratios_are_to_the_case_that_a_case_is_compared_with(tool: ModuleType) -> None:
    given = {"graph": "g", "seeds": 1}
    quantities = {"seconds": 2.0, "peak_mib": 100.0, "all_percent": 70.0, "h_percent": 60.0}
    made = [
        row(benchmark="rivals", case=case, given=given, against="Prism, g", quantity=q, value=v * k)
        for case, k in (("Prism, g", 1), ("other, g", 3))
        for q, v in quantities.items()
    ]
    lines = tool.rivals_table(made).splitlines()
    assert lines[2] == "| Prism | 70.0 | 60.0 | 2.0 | 1.0× | 100 | 1.0× | 1 |"
    assert lines[3] == "| other | 210.0 | 180.0 | 6.0 | 3.0× | 300 | 3.0× | 1 |"


@pytest.mark.parametrize(("threads", "said"), [(1, "3.0×"), (2, "0.50×")])
def test_threads_are_compared_by_the_clock_and_all_else_by_processor_time(
    tool: ModuleType, threads: int, said: str
) -> None:
    values = {"ours": (1.0, 4.0), "other": (3.0, 2.0)}
    made = []
    for case, taken in values.items():
        of = dict(zip(("seconds", "clock"), taken, strict=True)) | {"peak_mib": 9, "before_mib": 4}
        how = {"threads": threads, "against": "ours"} if case == "other" else {}
        made += [
            row(benchmark="layers", case=case, quantity=q, value=v, **how) for q, v in of.items()
        ]
    assert tool.layers_table(made).splitlines()[3].split(" | ")[3] == said


def test_a_curve_has_the_exponent_of_its_points(tool: ModuleType) -> None:
    made = []
    for size in (100, 200, 400):
        values = {f"{phase}_seconds": (size / 100) ** 1.5 for phase in tool.PHASES}
        values |= {f"{phase}_peak_mib": 50.0 + size for phase in tool.PHASES}
        values |= {"fit_before_mib": 50.0, "edges": 7.0}
        given = {"what": "nodes", "size": size}
        made += [
            row(benchmark="scaling", case=f"nodes: {size}", given=given, quantity=q, value=v)
            for q, v in values.items()
        ]
    lines = tool.curves_table(made[::-1]).splitlines()
    assert lines[2] == "| nodes | 100 to 400 | 1.50 | 1.50 | 1.50 | 1.50 | 1.00 |"
    assert "| nodes | 100 | 200 | 400 |" in lines


def test_the_larger_half_of_a_long_curve_has_an_exponent_of_its_own(tool: ModuleType) -> None:
    made = []
    for size in (1, 2, 4, 8, 16, 32):
        values = {f"{phase}_seconds": 8.0 if size < 8 else size for phase in tool.PHASES}
        values |= {f"{phase}_peak_mib": 50.0 + size for phase in tool.PHASES}
        values |= {"fit_before_mib": 50.0, "edges": 7.0}
        given = {"what": "words", "size": size}
        made += [
            row(benchmark="scaling", case=f"words: {size}", given=given, quantity=q, value=v)
            for q, v in values.items()
        ]
    whole, half = tool.curves_table(made).splitlines()[2:4]
    assert whole.startswith("| words | 1 to 32 | 0.3")
    assert half == "| words | 8 to 32 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 |"


def test_threads_of_a_large_graph_are_compared_by_the_clock(tool: ModuleType) -> None:
    made = []
    for case, threads, clock in (("one", 1, 9.0), ("two", 2, 6.0)):
        values = {f"{phase}_seconds": 7.0 for phase in tool.PHASES}
        values |= {f"{phase}_clock": clock / 3 for phase in tool.PHASES}
        values |= {f"{phase}_peak_mib": 2048.0 for phase in tool.PHASES}
        values |= {f"{phase}_anonymous_mib": 1024.0 for phase in tool.PHASES}
        values |= {"found_percent": 99.5}
        how = {"threads": threads, "against": "one" if threads > 1 else ""}
        made += [
            row(benchmark="large", case=case, quantity=q, value=v, **how) for q, v in values.items()
        ]
    lines = tool.large_table(made).splitlines()
    assert lines[2] == "| one | 7.00 | 7.00 | 7.00 | 9.00 |  | 2.00 | 1.00 | 99.50 |"
    assert lines[3] == "| two | 7.00 | 7.00 | 7.00 | 6.00 | 1.50 | 2.00 | 1.00 | 99.50 |"


def test_what_is_measured_now_goes_over_what_is_committed(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "ROWS", tmp_path / "rows.gz")
    monkeypatch.setattr(tool, "MEASURED", tmp_path)
    (tmp_path / "costs.jsonl").write_text(json.dumps(row()) + "\n" + json.dumps(row(case="b")))
    tool.pack()
    later = row(value=5.0, run="2026-01-02T00:00:00")
    (tmp_path / "costs.jsonl").write_text(json.dumps(later))
    tool.pack()
    assert {line["case"]: line["value"] for line in tool.read()} == {"a": 5.0, "b": 1.0}


class Process:
    """Stands in for subprocess.run: counts calls, and says what a case has measured."""

    def __init__(self, code: int = 0) -> None:
        self.code, self.calls = code, 0

    def __call__(self, command: list[str], **kwargs: Any) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        assert command[2:] == ["costs", "start", '{"size": 3}']
        assert kwargs["env"]["OMP_NUM_THREADS"] == "1"
        said = '{"seconds": 2.5, "repeated": 4}'
        return subprocess.CompletedProcess(command, self.code, f"a warning\n{said}\n", "it broke")


def test_a_case_leaves_a_row_for_every_number_and_is_not_measured_again(
    rows: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process()
    monkeypatch.setattr(rows.subprocess, "run", process)
    case = rows.Case(**CASE)
    (first,) = rows.run(case, "abc", "now")
    assert (first["quantity"], first["value"], first["unit"]) == ("seconds", 2.5, "s of processor")
    assert (first["repeated"], first["given"], first["commit"]) == (4, {"size": 3}, "abc")
    assert first["versions"]["torch"]
    assert rows.run(case, "abc", "later") == [first]
    assert process.calls == 1
    assert rows.run(case, "abc", "later", again=True)[0]["run"] == "later"
    rows.run(case, "def", "later")  # another commit
    rows.run(case, "def+", "later")  # changed since: nobody knows what earlier rows are of
    rows.run(case, "def+", "later")
    assert process.calls == 5


def test_a_case_that_fails_is_named_and_leaves_no_row(
    rows: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows.subprocess, "run", Process(code=1))
    with pytest.raises(SystemExit, match="costs, one thing: it broke"):
        rows.run(rows.Case(**CASE), "abc", "now")
    assert not rows.read(rows.FOLDER / "costs.jsonl")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux")
def test_the_peak_is_of_what_is_measured_and_of_nothing_before(rows: ModuleType) -> None:
    bytearray(300 * 2**20)
    small = rows.timed(lambda: bytearray(2**20))
    large = rows.timed(lambda: bytearray(100 * 2**20), name="large")
    assert small["peak_mib"] - small["before_mib"] < 50
    assert 90 < large["large_peak_mib"] - large["large_before_mib"] < 150


def test_every_case_has_a_function_and_is_compared_with_one_that_there_is(
    rows: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = imported("benchmarks", "run", monkeypatch)
    for name, cases in (run.PARTS | run.OPTIONAL).items():
        name = {"largest": "large"}.get(name, name)
        module = sys.modules[name]
        names = [case.name for case in cases]
        assert len(set(names)) == len(names)
        for case in cases:
            assert case.benchmark == name
            assert callable(getattr(module, case.work))
            assert not case.against or case.against in names


def test_the_figure_has_every_way_once_and_no_labels_on_each_other(tool: ModuleType) -> None:
    from xml.etree import ElementTree

    rows = tool.read()
    root = ElementTree.fromstring(tool.rivals_figure(rows))
    found = tool.cases(rows, "rivals")
    space = "{http://www.w3.org/2000/svg}"
    panels = root.findall(f"{space}g")
    assert len(panels) == len(tool.GRAPHS)
    assert sum(len(panel.findall(f"{space}circle")) for panel in panels) == len(found)
    ways = {name.rpartition(", ")[0] for name in found}
    for panel in panels:
        texts = panel.findall(f"{space}text")
        names = {tool.SHORT.get(way, way) for way in ways}
        labels = [text for text in texts if text.text in names]
        assert sorted(text.text or "" for text in labels) == sorted(names)
        boxes = [
            (float(t.attrib["x"]), float(t.attrib["y"]), tool.CHARACTER * len(t.text or ""))
            for t in labels
        ]
        for i, (x, y, width) in enumerate(boxes):
            assert tool.LEFT - 5 <= x <= x + width <= tool.PANEL_WIDTH
            for x2, y2, width2 in boxes[:i]:
                assert abs(y - y2) >= 10 or x + width <= x2 or x2 + width2 <= x
