"""The prose of the source and the documentation is plain; tools/prose.py counts what is not."""

from __future__ import annotations

from pathlib import Path

from tools.prose import ALLOWED, ROOT, counts, hits


def test_no_pattern_occurs_more_often_than_allowed() -> None:
    found = counts(ROOT)
    assert {name: found[name] for name in ALLOWED if found[name] > ALLOWED[name]} == {}


def test_every_pattern_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("5 % of the neighbours, one a line, 1 edges, labelled\n")
    (tmp_path / "src/nodenova").mkdir(parents=True)
    (tmp_path / "src/nodenova/a.py").write_text('''
def _shown(said, seed):
    """Nobody is told: nobody, so many.

    Args:
        said: Of the run.
        seed: Seed of the generator.

    Raises:
        SettingError: It is so.
    """
    return f"{said} %"
''')
    found = hits(tmp_path)
    assert {hit.pattern for hit in found} == set(ALLOWED)
    assert [hit.text for hit in found if hit.pattern == "participle as a name"] == ["said", "shown"]
