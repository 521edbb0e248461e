"""Every command that writes: the folder it starts in, the command, and how its result is read.

All work in the current folder with relative paths, on a graph of 60 nodes.
"""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

import nodenova as nova
from nodenova import cli
from nodenova.bench import grader, method_rows, sweep
from nodenova.bench.folder import GradedFolder
from nodenova.bench.rowfile import RowFile
from nodenova.cli import demo
from nodenova.data.labels import LabelledGraph
from nodenova.errors import NodenovaError
from nodenova.io import datasets
from nodenova.model.decisions import Create, Merge, Relabel, Rename, Unlabel
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import History, Review, is_current

TABLES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label-column", "topic")
LATER = ("--nodes", "later.csv", "--edges", "later-edges.csv")
DISCOVER = ("discover", *TABLES, "--num-new", "2", "-q", "--out", "mine")
GRAPH = "synthetic:nodes=60,classes=4,words=30"
RUN = ("run", "--dataset", GRAPH, "--num-old", "2", "--encoder", "gcn", "--fit-epochs", "3",
       "--per-class", "4", "-q", "--out", "graded")  # fmt: skip
BENCH = ("bench", "comparison", "--datasets", GRAPH, "--encoders", "gcn", "--num-old", "2",
         "--fit-epochs", "3", "-q", "--out", "rows")  # fmt: skip
PROTOCOL = ("protocols", "export", "mixed-50", "--dataset", GRAPH, "-q", "--out", "protocol")
RAY = "bench on Ray"
MEASURED = {"seconds", "commit"}  # fields of rows that may differ from run to run
SECONDS = re.compile(rb"(?:<td>[^<]*</td>){2}</tr>")  # the last columns of scores in a report
Reading = dict[str, str]


class DisagreementError(Exception):
    """Parts of a folder that belong together are of two different states."""


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        name: Name in the report.
        start: Makes the folder that the command starts in.
        work: The command.
        read: What a reader finds, by name; raises NodenovaError where there is nothing to read.
        by_file: Whether its files, or rows, are finished one by one; otherwise all at once.
        weight: Share of the kills.
        repeats: Whether the command, given again after it was done, must do the same again.
    """

    name: str
    start: Callable[[], None]
    work: Callable[[], None]
    read: Callable[[], Reading]
    by_file: bool = False
    weight: int = 1
    repeats: bool = True


def nodenova(*arguments: str) -> None:
    """Run a command of nodenova in this process; raise SystemExit if it fails."""
    sys.argv = ["nodenova", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise


def digest(content: bytes | str) -> str:
    """A short hash."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


# The folders that commands start in


def write_tables() -> None:
    """Write a graph of 60 nodes as tables, and the same graph after it has grown."""
    data = nova.synthetic(nodes=75, classes=4, words=30, words_per_node=6, seed=3)
    x = sp.csr_array(data.graph.x).toarray()
    for nodes, edges, count in (
        ("nodes.csv", "edges.csv", 60),
        ("later.csv", "later-edges.csv", 75),
    ):
        with open(nodes, "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["id", "topic", "text"])
            for i in range(count):
                words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
                label = f"t{data.y[i]}" if data.y[i] < 2 and i % 3 else ""
                lines.writerow([f"n{i}", label, words])
        with open(edges, "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["source", "target"])
            pairs = data.graph.edge_index.T.tolist()
            lines.writerows((f"n{a}", f"n{b}") for a, b in pairs if max(a, b) < count)


def discovered() -> None:
    """A finished run in `mine`, and a review of it in `review.json`."""
    write_tables()
    nodenova(*DISCOVER)
    write_review("review.json", Rename(2, "plants"), Relabel(("n5",), 0), Merge((2, 3), "living"),
                 Create(("n6", "n7", "n8", "n9"), "chosen"), Unlabel(("n4",)))  # fmt: skip


def write_review(path: str, *decisions: Any, run: str = "mine") -> None:
    """Write decisions on a run as it is now."""
    after = History.read(Path(run)).revision
    review = Review(weights_digest(nova.open_run(run).model), decisions, after)
    Path(path).write_text(json.dumps(review.to_json()))


def discovered_otherwise() -> None:
    """A finished and reviewed run in `mine` that another seed and number of classes made."""
    write_tables()
    nodenova(*DISCOVER, "--num-new", "3", "--seed", "5")
    write_review("first.json", Rename(2, "stones"))
    nodenova("apply-review", "mine", "first.json", "-q")


def reviewed() -> None:
    """A run with two reviews; the second one has a relabel."""
    write_tables()
    nodenova(*DISCOVER)
    write_review("first.json", Rename(2, "plants"))
    nodenova("apply-review", "mine", "first.json", "-q")
    write_review("second.json", Relabel(("n5",), 0))
    nodenova("apply-review", "mine", "second.json", "-q")


def reviewed_once() -> None:
    """A run with one decision, and the document that takes it back on the page."""
    unreviewed()
    write_review("first.json", Relabel(("n5",), 0))
    nodenova("apply-review", "mine", "first.json", "-q")
    write_review("undo.json")


def counted() -> None:
    """A run with an estimated number of new classes."""
    write_tables()
    nodenova(*DISCOVER, "--num-new", "auto")


def nothing() -> None:
    """An empty folder."""


def unreviewed() -> None:
    """An earlier run that was not reviewed."""
    write_tables()
    nodenova(*DISCOVER)


def without_page() -> None:
    """A run whose page was not made."""
    write_tables()
    nodenova(*DISCOVER, "--no-report")


def exported(to: str, path: str) -> Callable[[], None]:
    """A start with a reviewed run, and an export that was made before the review."""

    def start() -> None:
        discovered()
        nodenova(*export(to, path))
        nodenova("apply-review", "mine", "review.json", "-q")

    return start


def export(to: str, path: str) -> tuple[str, ...]:
    """The command that exports the run in `mine`."""
    table = ("--table", "nodes.csv") if to == "table" else ()
    return ("export", "mine", "--to", to, *table, "--out", path, "-q")


def predicted() -> None:
    """A reviewed run, and predictions that were made before the review."""
    discovered()
    nodenova("predict", "mine", *LATER, "--out", "found.csv", "--json", "found.json", "-q")
    nodenova("apply-review", "mine", "review.json", "-q")


def prepared() -> None:
    """A graph folder in `graph`, made of the earlier tables."""
    write_tables()
    nodenova("prepare", *TABLES, "--out", "graph", "-q")


def saved_model() -> None:
    """A saved model in `model`."""
    make_model(0).save("model")


def make_model(seed: int) -> nova.Model:
    """A model of a synthetic graph."""
    old, new, _ = nova.split(nova.synthetic(nodes=60, classes=4, words=30, seed=seed), old=[0, 1])
    return nova.discover(nova.fit(old), new)


def graded() -> None:
    """A finished run of two seeds in `graded`."""
    nodenova(*RUN, "--method", "never_new", "--seeds", "2")


def another_protocol() -> None:
    """A protocol of other splits in `protocol`, and a user's file beside an answer of it."""
    nodenova(*PROTOCOL, "--seeds", "3,4", "--no-keep-graph")
    next(Path("protocol/splits").iterdir()).joinpath("mine.csv").write_text("node,class")


def first_rows() -> None:
    """The rows of one seed in `rows`."""
    bench("--methods", "never_new", "--seeds", "1")


# The commands


def in_python(work: Callable[[], None]) -> Callable[[], None]:
    """A call of the library, whose errors are printed as the command line prints them."""

    def run() -> None:
        try:
            work()
        except (NodenovaError, OSError) as error:
            sys.exit(fail(str(error)))

    return run


@in_python
def run_python_report() -> None:
    """Fit a NodeDiscoverer and report over an earlier run."""
    loaded = nova.load_graph(nodes="nodes.csv", edges="edges.csv", label_column="topic")
    nova.NodeDiscoverer(num_new=2).fit(loaded).report("mine", overwrite=True)


def bench(*arguments: str) -> None:
    """Run a bench whose workers are forked: importing PyTorch takes seconds."""
    setattr(sweep, "get_context", lambda method: multiprocessing.get_context("fork"))  # noqa: B010
    nodenova(*BENCH, *arguments)


def export_method_rows() -> None:
    """Export the rows of a method; its checks, which train for half a minute, are left out."""
    setattr(method_rows, "CHECKS", {})  # noqa: B010
    nodenova("export-rows", "never_new", "--rows", "rows", "--out", "theirs.json", "-q",
             "--overwrite")  # fmt: skip


@in_python
def save_model() -> None:
    """Save another model."""
    make_model(1).save("model")


def run_demo() -> None:
    """The demo, on every twentieth noun."""
    whole = datasets.load_dataset("wordnet")
    kept = np.arange(0, whole.graph.num_nodes, 20)
    small = LabelledGraph(
        whole.graph.subgraph(kept), whole.y[kept], whole.class_names, name="wordnet"
    )
    setattr(datasets, "load_dataset", lambda *names, **options: small)  # noqa: B010
    demo.PER_CLASS = 5
    nodenova("demo", "--out", "mine", "-q")


def review_in_browser(path: str, body: str) -> Callable[[], None]:
    """Serve the review of `mine`; a browser posts a document, and then Ctrl-C ends the server."""
    refused: list[str] = []

    def post(url: str) -> None:
        parts = urlsplit(url)
        host = f"127.0.0.1:{parts.port}"
        first = HTTPConnection(host, timeout=60)
        first.request("GET", f"/?{parts.query}")
        cookie = (first.getresponse().getheader("Set-Cookie") or "").split(";")[0]
        headers = {"Cookie": cookie, "Origin": f"http://{host}", "Content-Type": "application/json"}
        second = HTTPConnection(host, timeout=60)
        second.request("POST", path, Path(body).read_text(), headers)
        answer = second.getresponse()
        if answer.status != 200:
            refused.append(answer.read().decode())
        os.kill(os.getpid(), signal.SIGINT)

    def browser(url: str, *options: object) -> bool:
        threading.Thread(target=post, args=(url,), daemon=True).start()
        return True

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        setattr(webbrowser, "open", browser)  # noqa: B010
        nodenova("review", "mine", "-q")
        if refused:
            sys.exit(fail(refused[0]))

    return work


def fail(sentence: str) -> int:
    """Print an error as the command line does; return the exit code."""
    print(f"error: {sentence}", file=sys.stderr)
    return 2


def call(*arguments: str) -> Callable[[], None]:
    """A function that runs a command."""
    return lambda: nodenova(*arguments)


# What a reader finds


def read_run(path: str = "mine") -> Reading:
    """Open a run and read all of it; raise DisagreementError if its parts do not fit together."""
    run = nova.open_run(path)
    folder, model, history = Path(path), run.model, run.history
    changes = [one for one in history.decisions if not isinstance(one, Relabel | Unlabel)]
    earlier = len(model.edits) - len(changes)
    if not run.document.get("lineage") and earlier:
        raise DisagreementError(f"{len(changes)} decisions on classes, {len(model.edits)} edits")
    table = folder / "predictions.csv"
    if table.read_bytes() != run.run.predictions.content(table):
        raise DisagreementError("predictions.csv is not of the model")
    page = folder / "report.html"
    code = weights_digest(model)
    if page.is_file() and not is_current(
        page.read_text(), code, len(model.edits), history.revision
    ):
        raise DisagreementError("report.html is not of the model")
    names = [info.name for info in run.classes]
    with (folder / "classes.csv").open(newline="") as file:
        if [line["name"] for line in csv.DictReader(file)] != names:
            raise DisagreementError("classes.csv is not of the model")
    if run.run.evidence != {name: run.document.get(name) for name in run.run.evidence}:
        raise DisagreementError("run.json has the calibration of another model")
    labels = json.dumps({str(key): label for key, label in run.labels.items()})
    return {
        "model": code,
        "edits": str(model.edits),
        "decisions": str(history),
        "labels": digest(labels),
        "predictions": digest(table.read_bytes()),
        "page": str(page.is_file()),
    }


def read_graph() -> Reading:
    """Load the graph folder `graph`."""
    loaded = nova.load_graph("graph")
    graph = loaded.graph
    x = sp.csr_array(graph.x)
    arrays = (x.indptr, x.indices, x.data, graph.edge_index, graph.node_ids, loaded.y)
    parts = [np.asarray(array).tobytes() for array in arrays]
    return {"graph": digest(b"".join(parts)), "names": str(loaded.class_names)}


def read_model() -> Reading:
    """Load the model in `model`."""
    return {"model": weights_digest(nova.load_model("model"))}


def read_protocol() -> Reading:
    """Read an exported protocol; raise DisagreementError unless all files are those of its index.

    A graph.npz from before that the index does not name would be read, too.
    """
    folder = Path("protocol")
    if not (folder / "protocol.json").is_file() and not (folder / grader.COMMIT).is_dir():
        return {}
    try:
        index = grader.read_index(folder)
    except grader.WrongFileError as error:
        raise NodenovaError(str(error)) from None
    named = dict(index["files"])
    for split in index["splits"]:
        named |= {f"answers/{split['name']}/{k}": code for k, code in split["answers"].items()}
    found = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in (path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
        if (folder / name).is_file() and not is_hidden(name)
        and name not in ("protocol.json",) and not name.endswith("mine.csv")
    }  # fmt: skip
    if found != named:
        raise DisagreementError("the files are not those of protocol.json")
    return {"index": digest(json.dumps(index))}


def files_of(*patterns: str) -> Callable[[], Reading]:
    """A reader of whole files, as other programs read them: those that are not hidden."""

    def read() -> Reading:
        found = (path for pattern in patterns for path in Path().glob(pattern))
        paths = [path for path in found if path.is_file() and not path.name.startswith(".")]
        return {str(path): digest(path.read_bytes()) for path in sorted(paths)}

    return read


def read_graded() -> Reading:
    """Open a graded run and load its finished seeds."""
    if not Path("graded").exists():
        return {}
    run = GradedFolder.open(Path("graded"))
    found = {"plan": digest(Path("graded/run.json").read_bytes())}
    for row in run.rows():
        found[f"row {row.seed}"] = digest(json.dumps(stable(row.to_json()), sort_keys=True))
        found[f"model {row.seed}"] = weights_digest(run.model(row.seed))
    return found


def read_rows() -> Reading:
    """Read the rows of a bench."""
    rows = RowFile(Path("rows/rows.jsonl")).read()
    return {row.key: digest(json.dumps(stable(row.to_json()), sort_keys=True)) for row in rows}


def stable(value: Any) -> Any:
    """A document without the fields that measure time."""
    if isinstance(value, dict):
        return {key: stable(part) for key, part in value.items() if key not in MEASURED}
    return [stable(part) for part in value] if isinstance(value, list) else value


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below a folder, hidden ones too, by a hash of its content; folders end with /."""
    found = {}
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in sorted([*folders, *files])):
            name = os.path.relpath(path, folder)
            if path.is_symlink():
                found[name] = f"-> {os.readlink(path)}"
            elif path.is_dir():
                found[name + "/"] = ""
            else:
                found[name] = digest(_stable_content(path))
    return found


def _stable_content(path: Path) -> bytes:
    if path.name.endswith("lock"):  # it may name a process
        return b""
    content = path.read_bytes()
    if path.name == "report.html":
        return SECONDS.sub(b"", content)
    try:
        if path.suffix == ".json":
            return json.dumps(stable(json.loads(content)), sort_keys=True).encode()
        if path.suffix == ".jsonl":
            lines = [json.loads(line) for line in content.splitlines()]
            return json.dumps([stable(line) for line in lines], sort_keys=True).encode()
    except ValueError:
        pass
    return content


def is_hidden(path: str) -> bool:
    """Whether a part of a path begins with a dot."""
    return any(part.startswith(".") for part in path.split(os.sep))


def all_commands() -> list[Command]:
    """The commands in the order of the report."""
    exports = {"table": "out.csv", "networkx": "out.graphml", "pyg": "out.pt", "csv": "out",
               "embeddings": "out.npz"}  # fmt: skip
    fresh, again = call(*DISCOVER), call(*DISCOVER, "--overwrite")
    continue_ = call("discover", "--from", "mine", *LATER, "-q", "--out", "later")
    predict = call("predict", "mine", *LATER, "--out", "found.csv", "--json", "found.json", "-q")
    review = call("apply-review", "mine", "review.json", "-q")
    saves, undoes = (review_in_browser(f"/{name}", f"{name}.json") for name in ("review", "undo"))
    undo = call("undo", "mine", "--last", "2", "-q")
    number = call("classes", "mine", "--num-new", "4", "--use", "-q")
    revise = call("discover", "--from", "mine", *LATER, "--revise", "-q", "--out", "later")
    protocol = call(*PROTOCOL)
    prepare = call("prepare", *TABLES, "-q", "--out", "graph")
    larger = call(
        "prepare", *LATER, "--label-column", "topic", "-q", "--out", "graph", "--overwrite"
    )
    grade = (*RUN, "--method", "frozen_kmeans", "--seeds", "2")
    once: dict[str, Any] = {"repeats": False}
    steps: dict[str, Any] = {"by_file": True}

    def rows() -> None:
        bench("--methods", "never_new", "--seeds", "2")

    return [
        Command("discover", write_tables, fresh, read_run, **once, weight=2),
        Command("overwrite", discovered_otherwise, again, read_run, weight=4),
        Command("continue", reviewed, continue_, lambda: read_run("later"), **once, weight=2),
        Command("python report", discovered_otherwise, run_python_report, read_run, weight=2),
        Command("predict", predicted, predict, files_of("found.*"), **steps),
        *(
            Command(f"export {to}", exported(to, path), call(*export(to, path)),
                    files_of("out*", "out/*"))
            for to, path in exports.items()
        ),
        Command("report", without_page, call("report", "mine", "-q"), read_run, **steps),
        Command("apply-review", discovered, review, read_run, **once, weight=4),
        Command("review server", discovered, saves, read_run, **once, weight=3),
        Command("undo", reviewed, undo, read_run, **once, weight=4),
        Command("undo by server", reviewed_once, undoes, read_run, **once, weight=2),
        Command("another number", counted, number, read_run, weight=2),
        Command("revise", reviewed, revise, lambda: read_run("later"), **once, weight=2),
        Command("protocol", nothing, protocol, read_protocol, **once),
        Command("protocol overwrite", another_protocol, call(*PROTOCOL, "--overwrite"),
                read_protocol, weight=2),
        Command("export rows", first_rows, export_method_rows, files_of("*.json"), **steps),
        Command("prepare", write_tables, prepare, read_graph, **once, weight=2),
        Command("prepare overwrite", prepared, larger, read_graph, weight=3),
        Command("save model", saved_model, save_model, read_model, weight=2),
        Command("run", nothing, call(*grade), read_graded, **steps, weight=2),
        Command("run overwrite", graded, call(*grade, "--overwrite"), read_graded, **steps,
                weight=2),
        Command("bench", nothing, rows, read_rows, **steps, weight=2),
        Command("bench resumed", first_rows, rows, read_rows, **steps),
        Command("demo", unreviewed, run_demo, read_run),
    ]  # fmt: skip


def ray_bench() -> Command:
    """A bench on a Ray cluster, which takes half a minute to start: only if it is named."""

    def rows() -> None:
        nodenova(*BENCH, "--methods", "never_new", "--seeds", "2", "--ray", "auto", "--jobs", "1")

    return Command(RAY, nothing, rows, read_rows, by_file=True)


def named(names: Sequence[str]) -> Iterable[Command]:
    """The commands with these names; all but the one on Ray if there are none."""
    commands = [*all_commands(), *([ray_bench()] if RAY in names else [])]
    known = {command.name: command for command in commands}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no command {unknown[0]!r}: {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())
