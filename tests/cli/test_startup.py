"""Help, the version and refusals do not wait for PyTorch; what takes long says so first.

No time is measured here: what costs time is what is imported.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

import nodenova as nova
from nodenova import cli
from nodenova.bench.grid import TABLES
from nodenova.bench.league.grid import LEAGUE
from nodenova.cli import progress, registered
from nodenova.cli.bench import KNOWN_TABLES
from nodenova.encoders.registry import ENCODERS
from nodenova.errors import SettingError, StorageError
from nodenova.methods.registry import OLD_METHODS
from nodenova.review.place import check_place, run_document

shared = sys.modules["nodenova.cli.app"]  # `nodenova.cli.app` is the program itself
HEAVY = ("numpy", "pandas", "scipy", "sklearn", "torch", "torch_geometric")
# Runs commands one after the other in one process, and says after each what it exited with, what is
# imported by now, and the end of what it said.
ASK = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
commands, heavy = json.loads(sys.argv[1])
said = []
for command in commands:
    output = io.StringIO()
    sys.argv = ["nodenova", *command]
    code = 0
    with redirect_stderr(output), redirect_stdout(output):
        import nodenova
        if command:
            from nodenova.cli import main
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
    said.append([code, [name for name in heavy if name in sys.modules], output.getvalue()])
print(json.dumps(said))
"""


def ask(folder: Path, commands: list[list[str]]) -> list[tuple[int, list[str], str]]:
    """Exit code, heavy modules and output of each command, in a process of their own."""
    source = str(Path(nova.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps([commands, HEAVY])],
        cwd=folder,
        env={"PYTHONPATH": source, "PATH": "", "COLUMNS": "200", "SYSTEMROOT": "C:\\Windows"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


def all_commands() -> list[str]:
    return list(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]


def test_help_and_the_version_import_nothing_heavy(tmp_path: Path) -> None:
    commands = [[], ["--help"], ["--version"], *([name, "--help"] for name in all_commands())]
    answers = ask(tmp_path, commands)
    assert len(answers) > 12
    assert [(code, heavy) for code, heavy, _ in answers] == [(0, [])] * len(commands)
    assert answers[2][2] == f"nodenova {nova.__version__}\n"
    assert all("Usage: nodenova" in said for _, _, said in (answers[1], *answers[3:]))


def test_wrong_arguments_and_used_folders_are_refused_before_anything_heavy(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used/mine.txt").write_text("work")
    (tmp_path / "file").write_text("")
    refused = {
        "discover --nods x.csv": "No such option: --nods",
        "discover --out used": "used is not empty",
        "discover --out file": "file is a file",
        "discover --out used --overwrite": "used is not a run of `nodenova discover`",
        "discover --method swrd": "unknown method 'swrd'",
        "discover --encoder gnc": "unknown encoder 'gnc'",
        "discover --method oracle": "needs labels of the new nodes",
        "discover --num-new 0": "--num-new must be at least 1",
        "discover --min-confidence 2": "--min-confidence is a probability",
        "discover --set epochs": "--set takes name=value",
        "discover": "give either --graph FILE, or --nodes FILE and --edges FILE",
        "count --all-new --new-column x": "--all-new takes every unlabelled node for new",
        "inspect": "give either --graph FILE",
        "demo --out used": "is not a run of `nodenova discover`",
        "demo --out used --no-overwrite": "used is not empty",
        "run --seeds x": "--seeds takes whole numbers",
        "run --dataset wordnet --method swrd": "unknown method 'swrd'",
        "run --dataset wordnet --old 1 --num-old 2": "give either --old or --num-old",
        "run --dataset wordnet --out file": "file is a file",
        "run": "give either --dataset NAME or --graph FILE",
        "bench nothing": "unknown table 'nothing'",
        "classes nowhere": "nowhere is not a run of `nodenova discover`: it does not exist",
        "review used": "used is not a run",
        "apply-review nowhere file": "nowhere is not a run",
        "predict nowhere": "nowhere does not exist",
        "predict used": "used holds neither a run nor a saved model",
        "export nowhere --to csv --out x": "nowhere does not exist",
        "export nowhere --to x --out x": "--to is one of",
    }
    commands = [command.split() for command in refused]
    commands += [[name, "--nosuch"] for name in all_commands()]
    answers = ask(tmp_path, commands)
    for command, (code, heavy, said) in zip(commands, answers, strict=True):
        assert (code, heavy) == (2, []), (command, said)
        expected = refused.get(" ".join(command), "No such option: --nosuch")
        assert expected in " ".join(said.split()), command
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "used"]


def test_reading_a_graph_and_listing_datasets_does_not_load_pytorch(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id,label,size\na,x,1\nb,,2\nc,y,3\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n")
    files = ["--nodes", "n.csv", "--edges", "e.csv"]
    answers = ask(tmp_path, [["datasets"], ["inspect", *files], ["discover", *files, "--set", "x"]])
    assert [code for code, _, _ in answers] == [0, 0, 2]
    assert {name for _, heavy, _ in answers for name in heavy} == {"numpy", "scipy"}


def test_names_that_are_read_from_the_source_are_those_of_the_registries() -> None:
    assert tuple(nova.METHODS) == registered.METHODS
    assert tuple(nova.LABELLED) == registered.LABELLED
    assert tuple(ENCODERS) == registered.ENCODERS
    assert tuple(OLD_METHODS) == registered.OLD_METHODS
    assert sorted(KNOWN_TABLES) == sorted([*TABLES, *LEAGUE, "all"])
    registered.check_names("some/mine.py:Mine", None)
    with pytest.raises(SettingError, match="unknown encoder 'x'; known: gat, gcn, prism, sage"):
        registered.check_names("sword", "x")


def test_a_folder_of_another_program_is_no_place_for_a_run(tmp_path: Path) -> None:
    check_place(tmp_path / "not/yet", overwrite=False)
    (tmp_path / "run.json").write_text('{"format": "other"}')
    for check in (run_document, lambda path: check_place(path, overwrite=True)):
        with pytest.raises(StorageError, match=r"run\.json is of something else"):
            check(tmp_path)
    (tmp_path / "run.json").write_text('{"format": "nodenova discovery", "title": "t"}')
    assert run_document(tmp_path)["title"] == "t"
    check_place(tmp_path, overwrite=True)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What is logged, as standard error that is a file sees it."""
    console = Console(file=io.StringIO(), force_terminal=False, width=40)
    monkeypatch.setattr(shared, "err", console)
    monkeypatch.setattr(progress, "err", console)
    return lambda: console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_without_a_terminal_a_phase_is_a_line_and_a_long_one_several(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    monkeypatch.setattr(progress, "time", Clock)
    monkeypatch.delitem(sys.modules, "torch")  # as it is when a command begins
    with shared.loading(quiet=False), progress.Bars(shared.err, show=True) as bars:
        watch = bars.watcher(0, "fit")
        assert watch is not None
        for epoch in range(1, 31):
            now[0] += 1
            watch(epoch, 30, {"loss": 1.0})
        with progress.mapping(show=True) as step:
            step(1, 2)
            step(2, 2)
    said = [line.partition(" s  ")[2] for line in lines()]
    assert said == [
        "loading PyTorch",
        "seed 0: learning the known classes",
        "seed 0: learning the known classes, 10 of 30",
        "seed 0: learning the known classes, 20 of 30",
        "seed 0: learning the known classes, 30 of 30",
        "what is in the classes",
        "drawing the map",
    ]
    assert all("\r" not in line and "\x1b" not in line for line in lines())


def test_who_wants_quiet_gets_no_line(lines: Callable[[], list[str]]) -> None:
    with shared.loading(quiet=True), progress.Bars(shared.err, show=False) as bars:
        assert bars.watcher(0, "fit") is None
        with progress.mapping(show=False) as step:
            step(1, 2)
    assert lines() == []


def test_a_pipe_gets_plain_lines_the_first_before_pytorch(tmp_path: Path, labelled: Any) -> None:
    ids = range(labelled.graph.num_nodes)
    words = labelled.graph.x.toarray().astype(int)
    rows = [
        f"{i},{labelled.y[i] if labelled.y[i] < 2 and i % 2 else ''},"
        + " ".join(f"word{w}" for w in words[i].nonzero()[0])
        for i in ids
    ]
    (tmp_path / "n.csv").write_text("id,label,text\n" + "\n".join(rows) + "\n")
    edges = [f"{a},{b}" for a, b in labelled.graph.edge_index.T.tolist()]
    (tmp_path / "e.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    command = "count --nodes n.csv --edges e.csv"
    ((code, heavy, said),) = ask(tmp_path, [command.split()])
    assert code == 0
    assert "torch" in heavy
    assert "torch_geometric" not in heavy  # Prism has no use for it, and it takes as long again
    begun = [line.partition(" s  ")[2] for line in said.splitlines() if " s  " in line]
    assert begun[0] == "reading"
    assert begun[-2:] == ["loading PyTorch", "seed 0: learning the known classes"]
    assert "\r" not in said
    assert "\x1b" not in said


def test_a_program_that_the_shell_does_not_know_is_named_by_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / ".venv/bin/nodenova"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shared.program() == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert shared.program() == "nodenova"
    monkeypatch.setattr(sys, "argv", ["/somewhere/pytest"])
    assert shared.program() == "nodenova"
