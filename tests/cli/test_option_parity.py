"""Every option that a command accepts has an effect, or is refused with a sentence.

`OBSERVED` has one entry per option; a new option without an entry fails. An entry is one of

    Reads     the option reaches the reader of tables
    Reaches   the option changes the call that the command makes
    Changes   the option changes what the command writes, prints or exits with
    Refused   the command names the option in an error
    Elsewhere another test file is about it
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from nodenova.cli import app
from nodenova.errors import NodenovaError
from tests.runs.tables import COLUMNS, discover_spring, files, write_tables

TESTS = Path(__file__).parent.parent
TOP = typer.main.get_command(app).commands  # type: ignore[attr-defined]
# Commands, and those of groups: "protocols export".
COMMANDS = TOP | {
    f"{name} {inner}": each
    for name, command in TOP.items()
    for inner, each in getattr(command, "commands", {}).items()
}


class StopError(Exception):
    """Raised by a spy, so that nothing is computed."""


@dataclass(frozen=True)
class Reads:
    value: object
    is_flag: bool = False


@dataclass(frozen=True)
class Reaches:
    value: object = None
    more: tuple[object, ...] = ()
    spy: str = ""


@dataclass(frozen=True)
class Changes:
    value: object
    observe: Callable[[Path], object]
    more: tuple[object, ...] = ()
    drop: tuple[object, ...] = ()


@dataclass(frozen=True)
class Refused:
    value: object
    words: str
    more: tuple[object, ...] = ()


@dataclass(frozen=True)
class Elsewhere:
    file: str
    flag: str = ""


# What a `Changes` looks at, in the folder that the command writes to.
def run_json(key: str) -> Callable[[Path], object]:
    return lambda out: json.loads((out / "run" / "run.json").read_text())[key]


def stage(key: str) -> Callable[[Path], object]:
    path = Path("run/model/model.json")
    return lambda out: json.loads((out / path).read_text())["stages"][-1].get(key)


def content(name: str) -> Callable[[Path], object]:
    return lambda out: (out / name).read_bytes() if (out / name).is_file() else None


def there(name: str) -> Callable[[Path], object]:
    return lambda out: (out / name).exists()


def output(out: Path) -> object:
    return (out / "output.txt").read_text()


TYPED = ("--edge-type-column", "kind")
READING: dict[str, Any] = {
    "--graph": Elsewhere("cli/test_discover_from.py"),
    "--nodes": Elsewhere("cli/test_predict.py"),
    "--edges": Elsewhere("cli/test_predict.py"),
    "--id-column": Reads("text"),
    "--label-column": Reads("text"),
    "--text-column": Reads("topic"),
    "--features": Reads("text"),
    "--new-nodes": Reads("new.txt"),
    "--new-column": Reads("text"),
    "--source-column": Reads("b"),
    "--target-column": Reads("a"),
    "--weight-column": Reads("kind"),
    "--min-weight": Reads(2.5),
    "--weights": Reads("filter"),
    "--edge-type-column": Reads("w"),
    "--edge-types": Reads("cites"),
    "--drop-unknown-edges": Reads(None, is_flag=True),
    "--delimiter": Reads("tab"),
    "--encoding": Reads("latin-1"),
    "--text-vectors": Reads("vectors.npy"),
}
LATER = {k: v for k, v in READING.items() if k not in
         ("--text-column", "--features", "--new-nodes", "--new-column")}  # fmt: skip
QUIET = Changes(None, output, drop=("-q",))
THREADS = Refused("x", "--threads must be auto")
WRITES: dict[str, Any] = {
    "--num-new": Changes(2, content("run/classes.csv")),
    "--all-new": Changes(None, stage("mixed")),
    "--set": Changes("n_resamples=1", stage("settings")),
    "--seed": Changes(1, stage("seed")),
    "--min-confidence": Changes(0.9, run_json("unsure_below")),
    "--labels": Changes("labels.csv", content("run/predictions.csv")),
    "--relabel": Changes(None, run_json("keep_labels")),
    "--none-share": Changes(0.2, run_json("none_share")),
    "--out": Changes("other", there("other/run.json")),
    "--overwrite": Elsewhere("cli/test_discover.py"),
    "--keep-graph": Changes("--no-keep-graph", there("run/graph.npz")),
    "--title": Changes("My graph", run_json("title")),
    "--show": Changes("topic", content("run/shown.csv")),
    "--report": Changes("--no-report", there("run/report.html")),
    "--safe-csv": Changes(None, run_json("safe_csv")),
    "--threads": THREADS,
    "--quiet": QUIET,
}
BENCH = "cli/test_bench_options.py"
SAFE_CSV = "cli/test_safe_csv.py"
OBSERVED: dict[str, dict[str, Any]] = {
    "discover": READING | WRITES | {
        "--method": Changes("never_new", stage("method"), drop=("--set", "n_resamples=0")),
        "--encoder": Changes("gcn", run_json("facts")),
        "--batch": Refused(20, "batch"),
        "--device": Refused("tpu", "tpu"),
        "--min-class-size": Refused(100, "min_class_size=100 leaves 0 of 2 known classes"),
        "--from": Elsewhere("cli/test_discover_from.py"),
        "--refresh": Refused("never", "--refresh is only for a run that continues another one"),
        "--revise": Refused(None, "--revise is only for a run that continues another one"),
        "--ray": Elsewhere("cluster/test_session.py"),
    },
    "discover --from": READING | WRITES | {
        "--text-column": Refused("topic", "--text-column cannot be changed with --from"),
        "--features": Refused("text", "--features cannot be changed with --from"),
        "--method": Refused("never_new", "never_new"),
        "--text-vectors": Elsewhere("cli/test_edges_and_vectors.py"),
        "--encoder": Refused("gcn", "--encoder cannot be changed with --from"),
        "--batch": Refused(20, "--batch cannot be changed with --from"),
        "--device": Refused("cpu", "--device cannot be changed with --from"),
        "--min-class-size": Refused(2, "--min-class-size cannot be changed with --from"),
        "--from": Changes(None, run_json("lineage"), drop=()),
        "--refresh": Changes("never", stage("refresh")),
        "--revise": Changes(None, stage("revised")),
        "--ray": Elsewhere("cli/test_option_parity.py"),
    },
    "predict": LATER | {
        "run_path": Elsewhere("cli/test_predict.py", "predict"),
        "--dataset": Refused("nope", "nope", more=("WITHOUT FILES",)),
        "--data-root": Elsewhere("bench/test_wikics.py"),
        "--only": Changes("n3", content("p.csv")),
        "--add": Refused(None, "--add needs a run", more=("--graph", "g.npz")),
        "--out": Changes("other.csv", there("other.csv")),
        "--seed": Refused(3, "--seed is for a folder of `nodenova run`"),
        "--min-confidence": Changes(0.999, content("p.csv")),
        "--relabel": Changes(None, content("p.csv")),
        "--none-share": Changes(0.3, content("p.csv")),
        "--max-unsure": Refused(2, "--max-unsure is a share from 0 to 1"),
        "--max-drift": Refused(2, "--max-drift is a share from 0 to 1"),
        "--json": Changes("p.json", there("p.json")),
        "--threads": THREADS,
        "--ray": Elsewhere("cluster/test_session.py"),
        "--safe-csv": Elsewhere(SAFE_CSV),
        "--quiet": QUIET,
    },
    "export": {
        "run_path": Elsewhere("cli/test_predict.py", "export"),
        "--to": Changes("embeddings", content("e.csv")),
        "--out": Changes("other.csv", there("other.csv")),
        "--graph": Elsewhere("cli/test_predict.py"),
        "--nodes": Elsewhere("runs/test_export_table.py"),
        "--edges": Elsewhere("cli/test_predict.py"),
        "--label-column": Reads("text"),
        "--table": Changes("spring/nodes.csv", content("e.csv"), drop=("--nodes", "NODES")),
        "--settled": Changes(0.999, content("e.csv")),
        "--dataset": Refused("nope", "nope", more=("WITHOUT FILES",)),
        "--data-root": Elsewhere("bench/test_wikics.py"),
        "--seed": Refused(3, "--seed is for a folder of `nodenova run`"),
        "--relabel": Changes(None, content("e.csv")),
        "--none-share": Changes(0.3, content("e.csv"), more=("--settled", 0.01)),
        "--safe-csv": Elsewhere(SAFE_CSV),
        "--quiet": QUIET,
    },
    "inspect": READING | {"--json": Changes("i.json", there("i.json")), "--quiet": QUIET},
    "count": READING | {
        "--all-new": Changes(None, output, drop=("-q",)),
        "--seed": Changes(1, content("c.json"), more=("--json", "c.json")),
        "--json": Changes("c.json", there("c.json")),
        "--threads": THREADS,
        "--quiet": QUIET,
    },
    "prepare": {name: Reaches(entry.value) if isinstance(entry, Reads) else entry
                for name, entry in READING.items()} | {
        "--out": Reaches("other"),
        "--dataset": Elsewhere("cli/test_prepare.py"),
        "--data-root": Elsewhere("bench/test_wikics.py"),
        "--memory": Reaches("2GB"),
        "--overwrite": Reaches(),
        "--quiet": Elsewhere("cli/test_prepare.py", "-q"),
    },
    "classes": {
        "run_path": Elsewhere("cli/test_discover.py", "classes"),
        "--num-new": Elsewhere("runs/test_numbers.py"),
        "--use": Elsewhere("runs/test_numbers.py"),
        "--json": Changes("c.json", there("c.json")),
        "--quiet": QUIET,
    },
    "review": {
        "run_path": Elsewhere("cli/test_review.py", "review"),
        "--port": Reaches(8123),
        "--open": Elsewhere("cli/test_option_parity.py", "--no-open"),
        "--quiet": Elsewhere("cli/test_option_parity.py", "-q"),
    },
    "apply-review": {
        "run_path": Elsewhere("cli/test_discover.py", "apply-review"),
        "review_path": Elsewhere("cli/test_discover.py", "apply-review"),
        "--quiet": Elsewhere("cli/test_review.py", "-q"),
    },
    "undo": {
        "run_path": Elsewhere("cli/test_review.py", "undo"),
        "--last": Elsewhere("cli/test_review.py"),
        "--quiet": Elsewhere("cli/test_review.py", "-q"),
    },
    "diff": {
        "before": Elsewhere("cli/test_discover_from.py", "diff"),
        "after": Elsewhere("cli/test_discover_from.py", "diff"),
        "--json": Changes("d.json", there("d.json")),
        "--out": Changes("moved.csv", there("moved.csv")),
        "--safe-csv": Elsewhere(SAFE_CSV),
        "--quiet": QUIET,
    },
    "run": {
        "--dataset": Reaches("synthetic:nodes=90,classes=4"),
        "--graph": Elsewhere("cli/test_cli.py"),
        "--data-root": Elsewhere("cli/test_cli.py"),
        "--split": Reaches(5, spy="nodenova.io.datasets.load_dataset"),
        "--num-old": Reaches(3),
        "--old": Reaches("1,2"),
        "--num-new": Reaches(1),
        "--method": Reaches("sword"),
        "--set": Reaches("n_resamples=3"),
        "--encoder": Reaches("sage", ("--method", "sword")),
        "--hidden": Reaches(8, ("--method", "sword")),
        "--layers": Reaches(3, ("--method", "sword")),
        "--dropout": Reaches(0.1, ("--method", "sword")),
        "--fit-epochs": Reaches(3, ("--method", "sword")),
        "--batch": Reaches(20, ("--method", "sword")),
        "--fit-set": Reaches("heads=4", ("--method", "sword", "--encoder", "gat")),
        "--setting": Reaches("inductive"),
        "--per-class": Reaches(10),
        "--seeds": Reaches("7,8"),
        "--device": Reaches("cpu"),
        "--out": Elsewhere("cli/test_cli.py"),
        "--overwrite": Elsewhere("cli/test_cli.py"),
        "--report": Elsewhere("cli/test_cli.py", "report"),
        "--json": Elsewhere("cli/test_cli.py"),
        "--quiet": Elsewhere("cli/test_cli.py", "-q"),
    },
    "bench": {
        "table": Elsewhere(BENCH, "bench"),
        "--plan": Elsewhere("cli/test_bench_plan.py"),
        "--datasets": Reaches("citeseer"),
        "--encoders": Reaches("sage"),
        "--methods": Reaches("sword,dtc"),
        "--set": Reaches("sword.epochs=3"),
        "--seeds": Reaches(2),
        "--num-old": Elsewhere(BENCH),
        "--hidden": Reaches(8),
        "--device": Reaches("cpu"),
        "--schedule": Elsewhere(BENCH),
        "--setting": Elsewhere(BENCH),
        "--fit-set": Elsewhere(BENCH),
        "--fit-epochs": Elsewhere("bench/test_sweep.py"),
        "--jobs": Reaches(2),
        "--ray": Elsewhere("bench/test_ray_sweep.py"),
        "--data-root": Reaches("nowhere"),
        "--split": Reaches(2),
        "--out": Elsewhere(BENCH),
        "--others": Elsewhere("bench/test_method_rows.py"),
        "--retry": Reaches(),
        "--write-only": Reaches(),
        "--quiet": Elsewhere(BENCH),
    },
    "tune": READING | {
        "method": Elsewhere("bench/test_tune.py", "tune"),
        "--grid": Elsewhere("bench/test_tune.py"),
        "--dataset": Elsewhere("bench/test_tune.py"),
        "--data-root": Elsewhere("bench/test_wikics.py"),
        "--split": Elsewhere("bench/test_tune.py"),
        "--num-old": Elsewhere("bench/test_tune.py"),
        "--all-new": Reaches(),
        "--encoder": Reaches("gcn"),
        "--draws": Reaches(2),
        "--seeds": Reaches("4,7"),
        "--score": Reaches("all"),
        "--json": Elsewhere("bench/test_tune.py"),
        "--threads": THREADS,
        "--quiet": Elsewhere("cli/test_option_parity.py", "-q"),
    },
    "protocols": {},
    "protocols export": {
        "name": Elsewhere("cli/test_protocols.py", "export"),
        "--dataset": Elsewhere("cli/test_protocols.py"),
        "--graph": Elsewhere("cli/test_protocols.py"),
        "--data-root": Reaches("nowhere", spy="nodenova.io.datasets.load_dataset"),
        "--split": Reaches(5, spy="nodenova.io.datasets.load_dataset"),
        "--num-old": Changes(2, content("protocol/splits/paper-seed-0/train.csv")),
        "--setting": Changes("inductive", content("protocol/protocol.json")),
        "--seeds": Changes("4,7", content("protocol/protocol.json")),
        "--out": Changes("other", there("other/README.md")),
        "--keep-graph": Changes("--no-keep-graph", there("protocol/graph.npz")),
        "--overwrite": Elsewhere("cli/test_protocols.py"),
        "--quiet": QUIET,
    },
    "export-rows": {
        "method": Elsewhere("bench/test_method_rows.py", "export-rows"),
        "--rows": Elsewhere("bench/test_method_rows.py"),
        "--graded": Elsewhere("bench/test_method_rows.py"),
        "--set": Elsewhere("bench/test_method_rows.py"),
        "--out": Elsewhere("bench/test_method_rows.py"),
        "--overwrite": Elsewhere("bench/test_method_rows.py"),
        "--quiet": Elsewhere("bench/test_method_rows.py", "-q"),
    },
    "demo": {
        "--out": Elsewhere("cli/test_discover.py"),
        "--seed": Elsewhere("cli/test_discover.py"),
        "--mixed": Elsewhere("cli/test_discover.py"),
        "--overwrite": Elsewhere("cli/test_discover.py"),
        "--quiet": Elsewhere("cli/test_discover.py"),
    },
    "datasets": {"--data-root": Elsewhere("cli/test_cli.py")},
    "report": {
        "run_path": Elsewhere("cli/test_cli.py", "report"),
        "--safe-csv": Elsewhere(SAFE_CSV),
        "--quiet": Elsewhere("cli/test_cli.py", "-q"),
    },
    "check-method": {
        "method": Elsewhere("cli/test_option_parity.py", "check-method"),
        "--set": Reaches("new_rows=untrained"),
        "--encoders": Reaches("sage"),
        "--quiet": Elsewhere("cli/test_option_parity.py", "-q"),
    },
    "check-encoder": {
        "encoder": Elsewhere("cli/test_own_encoder.py", "check-encoder"),
        "--set": Reaches("layers=3"),
        "--quiet": Elsewhere("cli/test_own_encoder.py", "-q"),
    },
    "new-method": {
        "name": Elsewhere("cli/test_new_method.py", "new-method"),
        "--folder": Elsewhere("cli/test_new_method.py"),
    },
}  # fmt: skip
SPIES = {
    "run": "nodenova.bench.run.run_one",
    "bench": "nodenova.cli.bench._run",
    "review": "nodenova.runs.server.ReviewServer",
    "check-method": "nodenova.testing.problem",
    "check-encoder": "nodenova.testing.encoder_problem",
    "prepare": "nodenova.io.graph_folder.prepare.prepare_graph",
    "tune": "nodenova.bench.tune.tune",
}


def names_of(command: str) -> list[str]:
    command = command if command in COMMANDS else command.split()[0]
    return [max(p.opts, key=len) for p in COMMANDS[command].params]


@pytest.mark.parametrize("command", [*COMMANDS, "discover --from"])
def test_every_option_has_an_entry(command: str) -> None:
    assert set(names_of(command)) == set(OBSERVED[command])


def test_tested_options_are_named_where_they_are_tested() -> None:
    for command, options in OBSERVED.items():
        for option, entry in options.items():
            if isinstance(entry, Elsewhere):
                flag = entry.flag or option
                assert flag in (TESTS / entry.file).read_text(encoding="utf-8"), (command, option)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of two seasons, a run of the first, and a graph that is ready."""
    place = tmp_path_factory.mktemp("parity")
    discover_spring(place)
    write_tables(place / "autumn")
    np.savez(place / "g.npz", x=np.eye(3), edge_index=np.array([[0], [1]]))
    (place / "labels.csv").write_text("node,label\nn0,boats\nn3,boats\nn6,birds\n")
    return place


def base(command: str, place: Path) -> list[object]:
    """A command that works, quietly."""
    later = files(place / "autumn")
    fast = ["--num-new", 1, "--set", "n_resamples=0", "--out", "run"]
    return {
        "discover": ["discover", *files(place / "spring"), *COLUMNS, *fast],
        "discover --from": ["discover", "--from", place / "run", *later, *fast],
        "predict": ["predict", place / "run", *later, "--out", "p.csv"],
        "export": ["export", place / "run", "--to", "table", "--nodes", *later[1:], "--out",
                   "e.csv"],
        "inspect": ["inspect", *files(place / "spring"), *COLUMNS],
        "count": ["count", *files(place / "spring"), *COLUMNS],
        "prepare": ["prepare", *files(place / "spring"), *COLUMNS, "--out", "folder"],
        "classes": ["classes", place / "run"],
        "diff": ["diff", place / "run", place / "run"],
        "check-method": ["check-method", "frozen_kmeans"],
        "check-encoder": ["check-encoder", "gcn"],
        "review": ["review", place / "run", "--no-open"],
        "run": ["run", "--dataset", "synthetic:nodes=100,classes=4", "--num-old", 2],
        "bench": ["bench", "comparison", "--datasets", "wordnet", "--methods", "sword",
                  "--encoders", "gcn"],
        "tune": ["tune", "prism", *files(place / "spring"), *COLUMNS,
                 "--grid", "ridge=1"],
        "protocols export": ["protocols", "export", "paper", "--dataset",
                             "synthetic:nodes=100,classes=4", "--num-old", 3],
    }[command] + ["-q"]  # fmt: skip


def cases(*kinds: type) -> list[Any]:
    return [
        pytest.param(command, option, entry, id=f"{command} {option}")
        for command, options in OBSERVED.items()
        for option, entry in options.items()
        if isinstance(entry, kinds)
    ]


def given(option: str, value: object, place: Path) -> list[object]:
    """The option on the command line; files are in `place`."""
    if isinstance(value, str) and value.startswith("--"):
        return [value]
    if isinstance(value, str) and (place / value).exists():
        value = place / value
    return [option] if value is None else [option, value]


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


@pytest.mark.parametrize(("command", "option", "entry"), cases(Reads))
def test_options_of_tables_reach_the_reader(
    command: str, option: str, entry: Reads, place: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    seen: list[Any] = []

    def read(source: Any, options: Any, **more: Any) -> None:
        seen.append(options)
        raise StopError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nodenova.io.load.read_graph", read)
    monkeypatch.setattr("nodenova.runs.new_graph.read_graph", read)
    argument = [] if entry.is_flag else [entry.value]
    typed = TYPED if option == "--edge-types" else ()
    with pytest.raises(StopError):
        invoke(*base(command, place), *typed, option, *argument)
    name = {"--text-column": "text_columns"}.get(option, option[2:].replace("-", "_"))
    value = getattr(seen[0], name)
    value = value[-1] if isinstance(value, (list, tuple)) else value
    assert str(value) == str(True if entry.is_flag else entry.value)


@pytest.mark.parametrize(("command", "option", "entry"), cases(Reaches))
def test_options_change_the_call_of_their_command(
    command: str, option: str, entry: Reaches, place: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)

    def call(*more: object) -> str:
        seen: list[str] = []

        def spy(*arguments: object, **keywords: object) -> None:
            seen.append(re.sub(r" at 0x\w+", "", f"{arguments} {keywords}"))
            raise StopError

        with monkeypatch.context() as patch:
            patch.setattr(entry.spy or SPIES[command], spy)
            try:
                invoke(*base(command, place), *entry.more, *more)
            except StopError:
                return seen[0]
            except NodenovaError as error:
                return str(error)
        raise AssertionError

    words = base(command, place)
    if option == "--old":  # instead of --num-old
        monkeypatch.setitem(globals(), "base", lambda *_: [w for w in words if w not in
                                                           ("--num-old", 2)])  # fmt: skip
    assert call(*given(option, entry.value, place)) != call()


@pytest.mark.parametrize(("command", "option", "entry"), cases(Changes))
def test_options_change_what_a_command_does(
    command: str, option: str, entry: Changes, place: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    dropped = [place / "autumn" / "nodes.csv" if one == "NODES" else one for one in entry.drop]
    seen = []
    for name, more in (("without", []), ("with", given(option, entry.value, place))):
        out = tmp_path / name
        out.mkdir()
        monkeypatch.chdir(out)
        words = [*base(command, place), *entry.more]
        if name == "with":
            words = [word for word in words if word not in dropped]
            more = [] if option in ("--quiet", "--from") or dropped == ["-q"] else more
        elif option == "--from":
            words = base("discover", place)
        result = invoke(*words, *more)
        assert result.exit_code == 0, result.output
        (out / "output.txt").write_text(result.output)
        seen.append(entry.observe(out))
    assert seen[0] != seen[1]


@pytest.mark.parametrize(("command", "option", "entry"), cases(Refused))
def test_options_that_do_not_fit_are_refused(
    command: str, option: str, entry: Refused, place: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    words, more = base(command, place), entry.more
    if more == ("WITHOUT FILES",):
        names = ("--nodes", "--edges", *files(place / "autumn"))
        words, more = [word for word in words if word not in names], ()
        words += ["--table", place / "autumn" / "nodes.csv"] if command == "export" else []
    more = tuple(place / one if one == "g.npz" else one for one in more)
    with pytest.raises(NodenovaError, match=re.escape(entry.words)):
        invoke(*words, *given(option, entry.value, place), *more)
    assert not [*tmp_path.iterdir()]


def test_ray_cannot_be_combined_with_from(place: Path) -> None:
    with pytest.raises(NodenovaError, match=r"--ray"):
        invoke(*base("discover --from", place), "--ray", "auto")


@pytest.mark.parametrize("options", [[], ["--no-open"], ["-q"]])
def test_review_opens_the_browser_and_explains_unless_told_otherwise(
    place: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("nodenova.runs.server.ReviewServer.serve_forever", lambda server: None)
    text = invoke("review", place / "run", *options).output
    assert "Review: http://127.0.0.1:" in text
    assert len(opened) == ("--no-open" not in options)
    assert ("Ctrl-C ends the review" in text) == ("-q" not in options)
