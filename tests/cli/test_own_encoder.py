"""An encoder of one's own on the command line: checked, run, discovered with, loaded again."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodenova.bench.folder import GradedFolder
from nodenova.encoders import registry
from nodenova.errors import SettingError, StorageError
from tests.encoders.own import of_page
from tests.runs.tables import COLUMNS, files, nodenova, write_tables

RESTLESS = """
import numpy as np
from torch import nn
class Restless(nn.Linear):
    def forward(self, x, edge_index):
        return super().forward(x) + np.random.default_rng().random()
"""
ORDERED = """
import torch
from torch import nn
class Ordered(nn.Linear):
    def forward(self, x, edge_index):
        return super().forward(x) * torch.arange(1, len(x) + 1)[:, None]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the page's encoder."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(of_page("mine.py"))


@pytest.mark.slow
def test_check_encoder_says_what_passes_and_what_fails() -> None:
    said = nodenova("check-encoder", "mine.py:Net", "--set", "layers=2")
    assert said.count("passes ") == 9
    assert nodenova("check-encoder", "mine.py:Net", "-q") == ""
    Path("bad.py").write_text(RESTLESS + ORDERED)
    said = nodenova("check-encoder", "bad.py:Restless", code=1)
    assert "fails the same seed gives the same result: the same seed gave two different" in said
    assert "checks failed" in said
    said = nodenova("check-encoder", "bad.py:Ordered")
    assert "warns the order of the nodes changes nothing: z of a node depends on" in said


def test_check_encoder_refuses_what_it_cannot_check() -> None:
    for words, sentence in {
        ("prism",): "prism is computed",
        ("nope",): "unknown encoder 'nope'",
        ("mine.py:Net", "--set", "x=1"): "unknown setting of fit 'x'",
        ("mine.py:Nut",): "mine.py has no class Nut",
    }.items():
        with pytest.raises(SettingError, match=sentence):
            nodenova("check-encoder", *words)


def test_a_run_is_continued_by_the_same_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "run", "--dataset", "synthetic:nodes=120,classes=4", "--num-old", 2, "--method", "sword",
        "--encoder", "mine.py:Net", "--fit-set", "layers=2", "--fit-epochs", 2, "--set", "epochs=2",
        "--no-report", "--out", "r", "-q",
    )  # fmt: skip
    nodenova(*words)
    (row,) = GradedFolder.open(Path("r")).rows()
    assert (row.encoder, row.fit_settings["layers"]) == ("Net", 2)
    nodenova(*words, "--seeds", 2)
    Path("mine.py").write_text(of_page("mine.py") + "\n# changed\n")
    with pytest.raises(StorageError, match=r"r holds another run .*encoder_source"):
        nodenova(*words, "--seeds", 3)
    monkeypatch.setattr(registry, "_OWN", {})
    predict = ("predict", "r", "--dataset", "synthetic:nodes=120,classes=4", "--out", "p.csv", "-q")
    with pytest.raises(StorageError, match="class 'Net' of your own"):
        nodenova(*predict)
    nodenova("--import", "mine.py:Net", *predict)
    assert Path("p.csv").is_file()


def test_discover_and_predict_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    write_tables(Path("spring"))
    nodenova(
        "discover", *files(Path("spring")), *COLUMNS, "--encoder", "mine.py:Net", "--method",
        "frozen_kmeans", "--num-new", 1, "--no-report", "--out", "run", "-q",
    )  # fmt: skip
    monkeypatch.setattr(registry, "_OWN", {})
    predict = ("predict", "run", *files(Path("spring")), "--out", "p.csv", "-q")
    with pytest.raises(StorageError, match=r"run.model: its encoder is the class 'Net'"):
        nodenova(*predict)
    nodenova("--import", "mine.py:Net", *predict)
    assert "new-" in Path("p.csv").read_text()
