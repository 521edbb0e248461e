"""docs/tracking.md: each class runs against a fake of its package; nothing reaches a network."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nodenova as nova

PAGE = Path(__file__).parent.parent / "docs/tracking.md"
BLOCKS = dict(re.findall(r'^```python title="(.+?)"\n(.*?)^```$', PAGE.read_text(), re.M | re.S))
MAX_LINES = 12


class Log:
    """Records what a tracker is given: (name, value, step)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, float, int]] = []

    def add(self, name: str, value: float, step: int) -> None:
        self.lines.append((name, value, step))

    def log(self, values: dict[str, float]) -> None:  # a run of wandb
        step = int(values.get("epoch", -1))
        self.lines += [(name, value, step) for name, value in values.items() if name != "epoch"]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Fakes of the three packages, which write to one log."""
    log = Log()

    def fake(name: str, **members: Any) -> None:
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            self.add_scalar = log.add

    fake("wandb", init=lambda **options: log)
    fake("mlflow", log_metric=lambda name, value, step: log.add(name, value, step))
    fake("torch.utils.tensorboard", SummaryWriter=SummaryWriter)
    return log


@pytest.mark.parametrize(
    ("file", "name", "arguments"),
    [
        ("track_wandb.py", "WandbProgress", {"project": "p"}),
        ("track_mlflow.py", "MlflowProgress", {}),
        ("track_tensorboard.py", "TensorBoardProgress", {"folder": "logs"}),
    ],
)
def test_a_tracker_logs_every_loss_and_changes_no_bit(
    file: str, name: str, arguments: dict[str, str], log: Log
) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS[file], names)
    tracker = names[name](**arguments)
    old, new, _ = nova.split(nova.synthetic(nodes=120, classes=4), old=[0, 1])
    options: dict[str, Any] = {"epochs": 4, "hidden": 8}
    results = []
    for progress in ({"progress": tracker}, {}):
        model = nova.fit(old, "gcn", **options, **progress)
        found = nova.discover(model, new, nova.Sword(epochs=3), **progress)
        results.append(found.predict_proba(old.graph))
    assert np.array_equal(*results)
    first = [line for line in log.lines if line[0].startswith("learning the known classes/")]
    assert [step for _, _, step in first[:: len(first) // 4]] == [1, 2, 3, 4]
    second = {line[0] for line in log.lines if line[0].startswith("discovering classes")}
    assert len(second) > 2  # SWORD has several losses
    assert all(np.isfinite(value) for _, value, _ in log.lines)


def test_a_tracker_has_about_ten_lines() -> None:
    for file, text in BLOCKS.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < MAX_LINES, file


def test_the_example_of_the_page_runs(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, text in BLOCKS.items():
        (tmp_path / file).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    exec(BLOCKS["track.py"], {})
    assert {"exam/h", "exam/all"} <= {name for name, _, _ in log.lines}
    monkeypatch.delitem(sys.modules, "track_wandb")


def test_prism_reports_phases_without_losses(log: Log) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS["track_mlflow.py"], names)
    old, _, _ = nova.split(nova.synthetic(nodes=120, classes=4), old=[0, 1])
    nova.fit(old, progress=names["MlflowProgress"]())
    assert log.lines == []
