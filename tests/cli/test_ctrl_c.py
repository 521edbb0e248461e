"""Ctrl-C is answered by one sentence and exit code 130, wherever a command is; nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app

FILES = ["--nodes", "n.csv", "--edges", "e.csv"]
STOPPED = "error: stopped; nothing was written"
SOURCE = str(Path(nova.__file__).parent.parent)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "n.csv").write_text("id,label\na,x\nb,\nc,y\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["inspect", *FILES],
        ["count", *FILES],
        ["discover", *FILES, "--out", "run"],
        ["prepare", *FILES, "--out", "folder"],
        ["tune", "prism", "--grid", "n_resamples=2", *FILES],
        ["run", "--graph", "g.graphml", "--num-old", "1"],
    ],
    ids=lambda command: command[0],
)
def test_ctrl_c_while_files_are_read(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def stop(*arguments: object, **settings: object) -> None:
        raise KeyboardInterrupt

    before = sorted(here.iterdir())
    for reader in (
        "io.load.read_graph",
        "io.load.load_graph",
        "io.graph_folder.prepare.prepare_graph",
    ):
        monkeypatch.setattr(f"nodenova.{reader}", stop)
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.output.splitlines()[-1]) == (130, STOPPED)
    assert sorted(here.iterdir()) == before


@pytest.mark.skipif(os.name == "nt", reason="a process cannot be sent Ctrl-C there")
def test_ctrl_c_while_the_program_is_imported(here: Path) -> None:
    """A module that is imported first stands for Ctrl-C in that moment."""
    (here / "rich").mkdir()
    (here / "rich/__init__.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "nodenova", "--help"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(here), SOURCE])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.splitlines()) == (130, [STOPPED])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a process cannot be sent Ctrl-C there")
@pytest.mark.parametrize("name", ["discover", "inspect"])
def test_a_real_ctrl_c_while_a_large_table_is_read(here: Path, name: str) -> None:
    nodes = "".join(f"n{i},{'xyz'[i % 3]},word{i % 97} word{i % 89}\n" for i in range(400_000))
    (here / "n.csv").write_text(f"id,label,text\n{nodes}")
    # Tests that were started in the background ignore Ctrl-C and would hand that on.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-m", "nodenova", name, *FILES],
        env=os.environ | {"PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, ours)
    assert process.stderr is not None
    for line in process.stderr:
        if "reading n.csv" in line:
            process.send_signal(signal.SIGINT)
            break
    printed, errors = process.communicate(timeout=120)
    *steps, last = errors.splitlines()  # a step may be under way before the signal comes
    assert (process.returncode, printed, last) == (130, "", STOPPED)
    assert all("reading n.csv" in step for step in steps)
    assert sorted(path.name for path in here.iterdir()) == ["e.csv", "n.csv"]
