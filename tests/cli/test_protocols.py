"""nodenova protocols: the list, and what the export refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.bench import grader
from nodenova.bench.protocol_files import NAMES
from nodenova.cli import app
from nodenova.errors import NodenovaError, SettingError, StorageError
from nodenova.testing import small

DATA = "synthetic:nodes=200,classes=4"


def cli(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_has_every_protocol() -> None:
    text = cli("protocols")
    assert [name for name in NAMES if name not in text] == []


def test_an_export_is_graded_by_the_command_that_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p"
    text = cli("protocols", "export", "mixed", "--dataset", DATA, "--seeds", "2", "--out", out)
    assert "Written: 8 splits" in text
    (command,) = [line for line in text.splitlines() if line.startswith("Grade: ")]
    split = command.split()[3]
    answers = (out / "answers" / split / "session-1.csv").read_text()
    (tmp_path / "predictions.csv").write_text(answers)
    assert grader.grade(out, split, tmp_path / "predictions.csv")["sessions"][0]["scores"]["block"][
        "h"
    ] == pytest.approx(100.0)


def test_a_graph_of_your_own_can_be_exported(tmp_path: Path) -> None:
    labelled = small()
    path = tmp_path / "mine.npz"
    import numpy as np

    x = labelled.graph.x.toarray()  # type: ignore[union-attr]
    np.savez(path, x=x, edge_index=labelled.graph.edge_index, y=labelled.y)
    cli("protocols", "export", "paper", "--graph", path, "--out", tmp_path / "p", "-q")
    index = json.loads((tmp_path / "p/protocol.json").read_text())
    assert index["data"] == nova.load_graph(path).fingerprint() == index["data_sha256"][:16]
    stated = json.loads((tmp_path / "p/splits/paper-seed-0/split.json").read_text())
    assert len(stated["old_classes"]) == 3


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "p"
    for options, words in (
        (["papr", "--dataset", DATA], "unknown protocol 'papr'"),
        (["paper"], "give either --dataset NAME or --graph FILE"),
        (["mixed", "--dataset", DATA, "--num-old", "2"], "--num-old cannot be changed for mixed"),
        (["paper", "--dataset", DATA, "--num-old", "9"], "--num-old is 9"),
        (["pown", "--dataset", DATA], "POWN's graphs are"),
        (["gnnsafe", "--dataset", DATA], "GNNSafe's splits by label are of cora"),
        (["pown", "--dataset", "citeseer", "--setting", "inductive"], "cannot be inductive"),
    ):
        with pytest.raises((SettingError, NodenovaError), match=words):
            cli("protocols", "export", *options, "--out", out, "-q")
    assert not out.exists()
    cli("protocols", "export", "paper", "--dataset", DATA, "--out", out, "-q")
    with pytest.raises(StorageError, match="holds an exported protocol"):
        cli("protocols", "export", "paper", "--dataset", DATA, "--out", out, "-q")
    cli("protocols", "export", "paper", "--dataset", DATA, "--out", out, "--overwrite", "-q")
