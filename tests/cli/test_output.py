"""What commands print: one line a class at 80 columns, steps of a computed method, bench tables."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import nodenova as nova
from nodenova.cli import bench, output, predict, progress
from nodenova.model.decisions import Rename
from nodenova.model.info import ClassInfo, Feature
from nodenova.model.model import Stage


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """80 columns, no colors."""
    said = io.StringIO()
    console = Console(file=said, width=80, color_system=None)
    for module in (output, predict, bench):
        monkeypatch.setattr(module, "out", console)
    return said


def infos() -> list[ClassInfo]:
    words = tuple(Feature(f"word-{i}", 1.0) for i in range(12))
    nodes = tuple(f"https://shop.example/products/{i}" for i in range(6))
    told: dict[str, Any] = {"share": 0.3, "confidence": 0.9, "cohesion": 0.4}
    told |= {"labelled": 0, "features": words, "keywords": words, "representatives": nodes}
    long = "maintainers, multimedia, audio, synthesizer, orchestra, philharmonic, quartet"
    return [
        ClassInfo(0, "gardening tools", "gardening tools", "known", 0, size=12_000, **told),
        ClassInfo(1, "found in spring", "x", "discovered", 1, size=900, **told),
        ClassInfo(7, long, long, "discovered", 2, size=1_234_567, **told),
    ]


def test_a_class_is_one_line_on_80_columns(terminal: io.StringIO) -> None:
    output.print_classes(infos(), [Stage("prism", {}, 0, (), found_in={7: (11, 12), 8: (9, 12)})])
    lines = terminal.getvalue().splitlines()
    assert len(lines) == 4  # a heading and the classes, discovered ones first
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith("discovered  2      7      maintainers, ")
    assert "1,234,567" in lines[2]
    assert "Holds up" in lines[2]
    assert "…" in lines[2]
    assert lines[1].startswith("discovered  1      1      found in spring")
    assert lines[3].startswith("known              0      gardening tools")


def test_a_decided_class_is_yours_on_the_terminal(terminal: io.StringIO) -> None:
    decided = {7: Rename(7, "music", was="new-7", after=2)}
    output.print_classes(infos(), [], decided)
    output.print_contents(infos(), [], decided)
    lines = terminal.getvalue().splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == ["up", "Yours"]
    assert "verdict: You named it." in terminal.getvalue()


def test_what_is_in_a_class_follows_with_words_nodes_and_reasons(terminal: io.StringIO) -> None:
    output.print_contents(infos(), [Stage("prism", {}, 0, (), found_in={7: (11, 12), 8: (9, 12)})])
    said = " ".join(terminal.getvalue().split())
    assert "word-9" in said
    assert "word-10" not in said
    assert "https://shop.example/products/4" in said
    assert "Found in 11 of 12 groupings." in said


def test_steps_of_a_computed_method_are_logged_by_what_they_are(
    monkeypatch: pytest.MonkeyPatch, labelled: nova.LabelledGraph
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "log_line", lines.append)
    monkeypatch.setattr(progress, "MAX_SILENCE", 0.0)
    y = [c if c < 2 and i % 2 else -1 for i, c in enumerate(labelled.y.tolist())]
    monkeypatch.setattr(progress, "err", Console(file=io.StringIO(), width=80))
    with progress.Bars(show=True) as bars:
        nova.NodeDiscoverer(random_state=0, progress=bars).fit(labelled.graph, y)
    assert any("discovering classes: counting, 3 of" in line for line in lines)
    assert "discovering classes: grouping, 12 of 12" in lines


def spec(name: str, encoder: str, method: object, key: str) -> Any:
    plan = SimpleNamespace(
        method_name=name, encoder=encoder, method=method, protocol="", dataset="cora", old=(0,)
    )
    return SimpleNamespace(plan=plan, key=key)


def test_the_bench_says_what_a_reader_would_wonder_about() -> None:
    specs = [
        spec("prism", "prism", nova.Prism(), "a"),
        spec("prism", "prism", nova.Prism(), "b"),
        spec("frozen_kmeans", "gcn", nova.FrozenKMeans(), "c"),
        spec("frozen_kmeans", "gcn", nova.FrozenKMeans(new_rows="untrained"), "d"),
    ]
    own = "prism ignores --encoders and runs on its own encoder (prism)"
    assert bench.own_encoder_notes(specs) == [own]
    along = "frozen_kmeans also has a line with new_rows=untrained"
    assert bench.variant_notes(specs) == [along]
    rows = [
        SimpleNamespace(key=key, is_failed=False, scores=lambda value=value: {"all": value})
        for key, value in (("a", 66.3), ("b", 66.3), ("c", 50.0), ("d", 51.0))
    ]
    (said,) = bench.equal_seed_notes(specs, rows)  # type: ignore[arg-type]
    assert said.startswith("± 0.0 of prism: ")
    rows[1].scores = lambda: {"all": 67.0}
    assert bench.equal_seed_notes(specs, rows) == []  # type: ignore[arg-type]


def test_the_bench_prints_its_tables_without_their_paragraphs(
    terminal: io.StringIO, tmp_path: Path
) -> None:
    (tmp_path / "t.md").write_text(
        "## Comparison\n\nPercent of …\n\n| Method | All |\n| Prism | 9 |\n"
    )
    (tmp_path / "t.csv").write_text("x")
    bench.print_tables([tmp_path / "t.md", tmp_path / "t.csv"])
    assert terminal.getvalue().split("\n")[:3] == [
        "## Comparison",
        "| Method | All |",
        "| Prism | 9 |",
    ]
