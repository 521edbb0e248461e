"""Help, the version and refusals do not wait for PyTorch; what takes long says so first.

No time is measured here: what costs time is what is imported.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import nodenova as nova
from nodenova import cli
from nodenova.bench.runs import OPEN_WORLD, TABLES
from nodenova.cli import progress
from nodenova.cli.bench import KNOWN_TABLES
from nodenova.encoders import ENCODER_NAMES
from nodenova.encoders.registry import ENCODERS
from nodenova.errors import SettingError, StorageError
from nodenova.runs.run_dir import check_place, run_document

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
    for name, document in {
        "other": {"format": "nodenova run", "plan": {"dataset": "citeseer", "method": "prism"}},
        "reviewed": {"format": "nodenova discovery"},
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps(document))
    (tmp_path / "reviewed" / "decisions.json").write_text("{}")
    refused = {
        "discover --nods x.csv": "No such option: --nods",
        "discover --out used": "used is not empty",
        "discover --out file": "file is a file",
        "discover --out used --overwrite": "used is not a run of `nodenova discover`",
        "discover --method swrd": "unknown method 'swrd'",
        "discover --encoder gnc": "unknown encoder 'gnc'",
        "discover --method oracle": "needs labels of the new classes",
        "discover --num-new 0": "--num-new must be at least 1",
        "discover --min-confidence 2": "--min-confidence is a probability",
        "discover --set epochs": "--set takes name=value",
        "discover": "give either --graph FILE, or --nodes FILE and --edges FILE",
        "count --all-new --new-column x": "--all-new means every unlabelled node",
        "inspect": "give either --graph FILE",
        "demo --out used": "is not a run of `nodenova discover`",
        "demo --out used --no-overwrite": "used is not empty",
        "run --seeds x": "--seeds takes whole numbers",
        "run --dataset wordnet --method swrd": "unknown method 'swrd'",
        "run --dataset wordnet --old 1 --num-old 2": "give either --old or --num-old",
        "run --dataset wordnet --out file": "file is a file",
        "run": "give either --dataset NAME or --graph FILE",
        "run --dataset citeseer --set nope=1": "unknown setting of prism 'nope'; known: n_",
        "run --dataset citeseer --method sword --set epochs=x": "epochs must be int (like 600)",
        "run --dataset citeseer --out used": "used exists and is not a run",
        "run --dataset cora --out other": "dataset: 'citeseer' there, 'cora' now",
        "run --dataset citeseer --method sword --out other": "method: 'prism' there, 'sword' now",
        "discover --set nope=1": "unknown setting of prism 'nope'",
        "report nowhere": "nowhere does not exist",
        "report used": "used holds neither a run nor a saved model",
        "bench comparison --datasets nope": "unknown dataset 'nope'",
        "bench comparison --methods nope": "unknown method 'nope'",
        "demo --out reviewed": "reviewed holds a demo that was reviewed (decisions.json)",
        "predict nowhere --only ,": "--only names no node",
        "predict nowhere --only a --max-drift 0.1": "--max-drift is about all nodes",
        "predict nowhere --max-drift 0.1": "--max-drift: give files",
        "predict nowhere --add --nodes x": "--add needs a run",
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
    made = ["file", "other", "reviewed", "used"]
    assert sorted(path.name for path in tmp_path.iterdir()) == made


def test_reading_a_graph_and_listing_datasets_does_not_load_pytorch(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id,label,size\na,x,1\nb,,2\nc,y,3\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n")
    files = ["--nodes", "n.csv", "--edges", "e.csv"]
    answers = ask(tmp_path, [["datasets"], ["inspect", *files], ["discover", *files, "--set", "x"]])
    assert [code for code, _, _ in answers] == [0, 0, 2]
    assert {name for _, heavy, _ in answers for name in heavy} == {"numpy", "scipy"}


def test_names_that_are_known_before_pytorch_are_those_of_the_registries() -> None:
    assert tuple(ENCODERS) == ENCODER_NAMES
    assert sorted(KNOWN_TABLES) == sorted([*TABLES, *OPEN_WORLD, "all"])
    shared.check_method("some/mine.py:Mine", {"x": "1"}, "some/mine.py:Net")
    with pytest.raises(SettingError, match="unknown encoder 'x'; known: gat, gcn, prism, sage"):
        shared.check_method("sword", {}, "x")


def test_a_folder_of_another_program_is_no_place_for_a_run(tmp_path: Path) -> None:
    check_place(tmp_path / "not/yet", overwrite=False)
    (tmp_path / "run.json").write_text('{"format": "other"}')
    for check in (run_document, lambda path: check_place(path, overwrite=True)):
        with pytest.raises(StorageError, match=r"run\.json has another format"):
            check(tmp_path)
    (tmp_path / "run.json").write_text('{"format": "nodenova discovery", "title": "t"}')
    with pytest.raises(StorageError, match="damaged, version is missing"):
        run_document(tmp_path)
    check_place(tmp_path, overwrite=True)  # a damaged run may be replaced


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
    with shared.loading(quiet=False), progress.Bars(show=True) as bars:
        bars("learning the known classes", 0)
        for epoch in range(1, 31):
            now[0] += 1
            bars("learning the known classes", epoch, 30, loss=1.0)
        bars("drawing the map", 1, 2)
        bars("drawing the map", 2, 2)
    said = [line.partition(" s  ")[2] for line in lines()]
    assert said == [
        "loading PyTorch",
        "learning the known classes",
        "learning the known classes, 10 of 30",
        "learning the known classes, 20 of 30",
        "learning the known classes, 30 of 30",
        "drawing the map",
    ]
    assert all("\r" not in line and "\x1b" not in line for line in lines())


def test_who_wants_quiet_gets_no_line(lines: Callable[[], list[str]]) -> None:
    with shared.loading(quiet=True), progress.Bars(show=False) as bars:
        bars("drawing the map", 1, 2)
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
    assert begun[0] == "reading files"
    assert begun[-2:] == ["loading PyTorch", "learning the known classes"]
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


def test_a_program_in_the_cache_of_a_runner_is_reached_by_the_runner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin/nodenova")])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "uv/archive-v0/x"))
    assert shared.program() != "uvx nodenova"
    monkeypatch.setenv("UV", "/bin/uv")
    assert shared.program() == "uvx nodenova"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "pipx/.cache/x"))
    assert shared.program() == "pipx run nodenova"


def test_the_table_of_datasets_reads_no_graph(tmp_path: Path) -> None:
    ((code, heavy, said),) = ask(tmp_path, [["datasets"]])
    assert (code, heavy) == (0, [])
    assert "--dataset synthetic:nodes=5000,classes=8" in said
    lines = said.splitlines()
    assert any("citeseer" in line and line.rstrip().endswith("ships") for line in lines)
    assert any("cora " in line and line.rstrip().endswith("download") for line in lines)
    assert any("photo" in line and line.rstrip().endswith("by hand") for line in lines)


def test_the_registries_list_the_settings_that_the_classes_have() -> None:
    for registry in (nova.METHODS, nova.LABELLED):
        for name, kind in registry.items():
            defaults = {field.name: field.default for field in dataclasses.fields(kind)}
            defaults |= {"reading": ""} if hasattr(kind, "READINGS") else {}
            assert registry.entries[name].settings == defaults, name


def test_help_fits_80_columns_and_cuts_no_flag(tmp_path: Path) -> None:
    for command in all_commands():
        group = typer.main.get_command(cli.app).commands[command]  # type: ignore[attr-defined]
        done = CliRunner().invoke(cli.app, [command, "--help"], env={"COLUMNS": "80"}, color=False)
        assert max(map(len, done.output.splitlines())) <= 80
        flags = [flag for option in group.params for flag in option.opts if flag.startswith("--")]
        hidden = [f for option in group.params if option.hidden for f in option.opts]
        words = set(re.findall(r"--[a-z-]+", done.output))
        assert set(flags) - set(hidden) <= words, command


def test_options_of_discover_stand_in_groups() -> None:
    said = CliRunner().invoke(cli.app, ["discover", "--help"], env={"COLUMNS": "80"}).output
    places = [said.index(f" {group} ─") for group in ("Input", "Discovery", "Output")]
    assert places == sorted(places)
