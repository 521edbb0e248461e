"""Cases about calls: command lines, Python arguments, objects of other libraries, requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import nodenova as nova
from nodenova.review.review_file import Review
from nodenova.runs.server import ReviewServer

from .corpus import Corpus, command
from .formats import Case, table_options, use_graph
from .judge import Action, MisbehaviorError, RefusalError, WrongTypeError
from .mutate import (
    ODD_VALUES,
    Rng,
    chance,
    change_array,
    change_bytes,
    change_json_file,
    change_rows,
    pick,
)

# Command lines

TINY = "synthetic:nodes=40,classes=4,words=30"
ODD_WORDS = (
    "", " ", "-1", "0", "1", "3", "1e9", "nan", "inf", "99999999999999999999", "a", "a=b", "=",
    "x=", "epochs=-1", "epochs=a", "restarts=0", ",", "1,2", "0,0", "a,b", "x" * 300, "é", "../..",
    "/", ".", "~", "*", "--", "-", "auto", "all", "count", "filter", "tab", "utf-8", "rot13",
    "prism", "gcn", "sword", "never", "always", "nowhere.csv", "nowhere.py:Mine", "cora",
    "nowhere.py:Net",
    "wordnet:", "synthetic:", "synthetic:nodes=-1", "synthetic:nodes=a",
    "synthetic:nodes=3,classes=9", "csv", "table", "pyg", "networkx", "embeddings",
    "http://localhost", "\n", "a\nb", "[red]",
)  # fmt: skip
# --ray would start or look for a cluster; a large number of threads or nodes is a wish, not a case.
LEFT_OUT = {"--ray", "--help", "--version", "--workers", "--jobs", "--memory"}


@cache
def _commands() -> dict[str, tuple[str, ...]]:
    """Names of the options of every command."""
    import typer

    from nodenova.cli import app

    found = {}
    for name, one in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        parts = [one, *getattr(one, "commands", {}).values()]  # of a group: those of its commands
        parameters = [parameter for part in parts for parameter in part.params]
        options = [o for each in parameters for o in (*each.opts, *each.secondary_opts)]
        found[name] = tuple(o for o in options if o.startswith("--") and o not in LEFT_OUT)
    return found


def _base(name: str, corpus: Corpus, place: Path) -> list[object]:
    """A right command line; commands that take long are given a place that they must refuse."""
    folder, tables, run = corpus.folder, corpus.folder / "tables", place / "r"
    files = ["--nodes", tables / "nodes.csv", "--edges", tables / "edges.csv"]
    taken = place / "taken"
    taken.write_text("a file")
    lines: dict[str, list[object]] = {
        "demo": ["--out", taken],
        "inspect": [*files, "--label-column", "topic"],
        "count": [*files, "--label-column", "topic", "-q"],
        "prepare": [*files, "--out", place / "g", "-q"],
        "discover": [*files, "--label-column", "topic", "--num-new", "1", "--set", "n_resamples=0",
                     "--no-report", "--out", place / "new", "-q"],
        "classes": [run],
        "review": [run, "--no-open"],
        "apply-review": [run, folder / "review.json", "-q"],
        "undo": [run, "-q"],
        "diff": [run, folder / "plain"],
        "predict": [run, *files, "--out", place / "p.csv"],
        "export": [run, "--to", "csv", "--out", place / "o"],
        "datasets": [],
        "run": ["--dataset", TINY, "--method", "frozen_kmeans", "--encoder", "gcn", "--num-old",
                "2", "--fit-set", "epochs=2", "--fit-set", "hidden=4", "--seeds", "1", "--out",
                place / "graded", "-q"],
        "report": [run, "-q"],
        "bench": ["comparison", "--datasets", "nowhere", "--out", taken],
        "check-method": ["nowhere.py:Mine"],
        "export-rows": ["nowhere.py:Mine"],
        "tune": ["nowhere.py:Mine", "--dataset", TINY, "--grid", "x=1"],
        "protocols": ["export", "paper", "--dataset", TINY, "--out", place / "p", "-q"],
        "check-encoder": ["nowhere.py:Net"],
        "new-method": ["Not-A-Name"],
    }  # fmt: skip
    return lines.get(name, [])


def command_line(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A command with options added, values changed, parts left out or repeated."""
    commands = _commands()
    name = pick(rng, sorted(commands))
    line = _base(name, corpus, place)
    shutil.copytree(corpus.folder / "run", place / "r")
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(line) + 1))
        match int(rng.integers(6)):
            case 0 | 1 | 2 if commands[name]:
                option = pick(rng, commands[name])
                line += [option] if chance(rng, 0.3) else [option, pick(rng, ODD_WORDS)]
            case 3 if name not in ("demo", "bench"):
                line[at : at + 1] = [pick(rng, ODD_WORDS)]
            case 4 if name not in ("demo", "bench"):
                line[at : at + 1] = []
            case _:
                line += [pick(rng, (*ODD_WORDS, "--nothing", "-z"))]

    if name in ("demo", "bench"):
        line += ["--out", place / "taken"]  # the last one counts: they must not start to compute
    if name in (
        "check-method",
        "export-rows",
        "tune",
    ):  # a right name would train for half a minute
        line = ["nowhere.py:Mine" if word in ("prism", "sword") else word for word in line]
    if name == "check-encoder":
        line = ["nowhere.py:Net" if word == "gcn" else word for word in line]

    def use() -> None:
        # A review waits for a browser; here it ends at once.
        with mock.patch.object(ReviewServer, "serve_forever"):
            command(name, *line)

    return use


# Python


def python_call(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A public function with one or two odd arguments.

    A TypeError is Python's own answer to a value of another type; such cases are counted apart.
    """
    call = pick(rng, CALLS)(corpus, rng, place)

    def use() -> None:
        try:
            call()
        except TypeError as error:
            raise WrongTypeError(str(error)) from error

    return use


def _odd(rng: Rng) -> Any:
    more = (b"bytes", object(), (), (1,), {1}, np.zeros(3), np.array("a"), np.nan, 3 + 4j, int, len)
    choice = pick(rng, (ODD_VALUES, more, more))
    return pick(rng, choice)


def _estimator(corpus: Corpus, rng: Rng, place: Path) -> Action:
    settings: dict[str, Any] = {"num_new": 1, "method": nova.Prism(n_resamples=0)}
    names = ("num_new", "method", "encoder", "fit_settings", "random_state", "min_confidence",
             "mixed", "keep_labels", "none_share", "device")  # fmt: skip
    if chance(rng, 0.6):
        settings[pick(rng, names)] = _odd(rng)
    graph: Any = corpus.labelled.graph
    y: Any = corpus.known
    if chance(rng, 0.3):
        y = pick(rng, (_odd(rng), y[:-1], [_odd(rng) for _ in y], [None] * len(y), ["a"] * len(y)))
    if chance(rng, 0.15):
        graph = _odd(rng)
    return lambda: nova.NodeDiscoverer(**settings).fit(graph, y).predict_proba()


def _matrices(corpus: Corpus, rng: Rng, place: Path) -> Action:
    x: Any = corpus.features
    edges: Any = corpus.labelled.graph.edge_index
    if chance(rng, 0.5):
        x = change_array(x, rng)
    else:
        edges = change_array(edges, rng)
    more = {"node_ids": _odd(rng)} if chance(rng, 0.1) else {}
    uses: tuple[Action, ...] = (
        lambda: nova.Graph.of(x, edges, **more),
        lambda: use_graph((x, edges)),
        lambda: nova.Graph.of(x, edges, edge_weight=_odd(rng)),
        lambda: corpus.model.predict_proba(nova.Graph.of(x, edges)),
    )
    return pick(rng, uses)


def _phases(corpus: Corpus, rng: Rng, place: Path) -> Action:
    labelled, odd = corpus.labelled, _odd(rng)
    old, new, _ = nova.split(labelled, [0, 1])
    model = corpus.model
    uses: tuple[Action, ...] = (
        lambda: nova.split(labelled, odd),
        lambda: nova.split(labelled, [0, 1], seed=odd),
        lambda: nova.fit(old, odd),
        lambda: nova.fit(old, "gcn", epochs=2, hidden=4, seed=odd),
        lambda: nova.register_encoder(odd),
        lambda: nova.fit(old, "gcn", epochs=2, hidden=4, dropout=odd),
        lambda: nova.fit(odd),
        lambda: nova.discover(model, odd),
        lambda: nova.discover(odd, new),
        lambda: nova.discover(model, new, odd),
        lambda: nova.NewTask(labelled.graph, odd, 1),
        lambda: nova.NewTask(labelled.graph, new.ids, odd),
        lambda: nova.grade(model, odd),
        lambda: nova.count_new(model, odd),
        lambda: model.predict(odd),
        lambda: model.save(odd),
        lambda: nova.load_model(odd),
        lambda: nova.open_run(odd),
        lambda: nova.load_dataset(odd),
        lambda: nova.synthetic(nodes=40, classes=odd if not _is_large(odd) else 3),
        lambda: nova.class_info(model, odd),
        lambda: nova.suggest(model, odd),
        lambda: nova.tasks_from_labels(odd, 1),
    )
    return pick(rng, uses)


def _is_large(value: Any) -> bool:
    return isinstance(value, int | float) and not abs(value) < 100


def _load_options(corpus: Corpus, rng: Rng, place: Path) -> Action:
    tables = corpus.folder / "tables"
    arguments: dict[str, Any] = {"nodes": tables / "nodes.csv", "edges": tables / "edges.csv"}
    arguments |= table_options(rng)
    names = ("nodes", "edges", "id_column", "label_column", "text_columns", "features", "new_nodes",
             "new_column", "source_column", "target_column", "weight_column", "min_weight",
             "weights", "edge_type_column", "edge_types", "node_type", "drop_unknown_edges",
             "delimiter", "encoding", "max_words", "text_vectors", "recipe", "name")  # fmt: skip
    arguments[pick(rng, names)] = _odd(rng)
    return lambda: nova.load_graph(**arguments)


def _run_calls(corpus: Corpus, rng: Rng, place: Path) -> Action:
    odd = _odd(rng)
    shutil.copytree(corpus.folder / "run", place / "r")

    def run() -> nova.RunFolder:
        return nova.open_run(place / "r")

    uses: tuple[Action, ...] = (
        lambda: run().predict(only=odd),
        lambda: run().predict(odd),
        lambda: run().predict(min_confidence=odd),
        lambda: run().predict(none_share=odd),
        lambda: run().predict(nodes=odd, edges=odd, add=True),
        lambda: run().predict(backend=odd),
        lambda: run().apply(odd),
        lambda: run().apply([odd]),
        lambda: run().apply([{"do": "rename", "class": odd, "name": "a"}]),
        lambda: run().apply([{"do": "rename", "class": 0, "name": odd}]),
        lambda: run().apply([{"do": "relabel", "class": 0, "nodes": odd}]),
        lambda: run().apply([{"do": "split", "class": 0, "into": odd}]),
        lambda: run().undo(odd),
        lambda: run().diff(odd),
        lambda: run().export(odd, place / "o"),
        lambda: run().export("csv", odd),
        lambda: run().continue_with(odd),
        lambda: run().at(odd),
        lambda: run().use_number(odd),
        lambda: run().name_classes(odd),
        lambda: run().name_classes(lambda cards: odd),
        lambda: run().name_classes(lambda cards: {card.id: odd for card in cards}),
        lambda: run().public_report(odd),
    )
    return pick(rng, uses)


CALLS: tuple[Case, ...] = (_estimator, _matrices, _phases, _load_options, _run_calls)


# Objects of other libraries


def foreign_object(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A data frame, a NetworkX graph, or a PyG Data."""
    return pick(rng, (_frames, _networkx, _pyg))(corpus, rng)


def _frame(rows: Sequence[dict[str, Any]], library: str) -> Any:
    """A data frame of records; a column that the library refuses becomes text."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    data = {column: [row.get(column) for row in rows] for column in columns}
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(data)
    if library == "polars":
        import polars as pl

        return pl.DataFrame({k: pl.Series(v, dtype=None, strict=False) for k, v in data.items()})
    import pyarrow as pa

    return pa.table(data)


def _frames(corpus: Corpus, rng: Rng) -> Action:
    changed = int(rng.integers(2))
    libraries = ("pandas", "pandas", "polars", "arrow")
    frames = []
    for number, rows in enumerate((corpus.nodes, corpus.edges)):
        library = pick(rng, libraries)
        frame = _frame(rows, library)
        if number == changed:
            with contextlib.suppress(Exception):  # what the library cannot hold is no case of ours
                frame = _frame(change_rows(rows, rng), library)
        frames.append(frame)
    if chance(rng, 0.2) and hasattr(frames[changed], "iloc"):
        frame = frames[changed]
        edits = (
            lambda: frame.set_axis(["a"] * frame.shape[1], axis=1),
            lambda: frame.set_axis(range(frame.shape[1]), axis=1),
            lambda: frame.set_index(frame.columns[0]),
            lambda: frame.astype("category"),
            lambda: frame.T,
            lambda: frame.iloc[:0],
            lambda: frame.iloc[:, :0],
        )
        with contextlib.suppress(Exception):  # where pandas refuses the edit, the frame stays
            frames[changed] = pick(rng, edits)()
    options = table_options(rng) if chance(rng, 0.3) else {}
    return lambda: use_graph(nodes=frames[0], edges=frames[1], **options)


def _networkx(corpus: Corpus, rng: Rng) -> Action:
    import networkx as nx

    kind = pick(rng, (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph))
    graph = kind()
    nodes, edges = corpus.nodes, corpus.edges
    if chance(rng, 0.6):
        nodes = change_rows(nodes, rng)
    else:
        edges = change_rows(edges, rng)
    for i, row in enumerate(nodes):
        key = row.get("id", i)
        if isinstance(key, list | dict):
            key = str(key)
        graph.add_node(i if key is None else key)
        graph.nodes[i if key is None else key].update({k: v for k, v in row.items() if k != "id"})
    for row in edges:
        ends = [row.get("source"), row.get("target")]
        if any(end is None or isinstance(end, list | dict) for end in ends):
            continue
        graph.add_edge(*ends, weight=row.get("weight"))
    return lambda: use_graph(graph)


def _pyg(corpus: Corpus, rng: Rng) -> Action:
    import torch
    from torch_geometric.data import Data, HeteroData

    arrays = {key: corpus.dense_arrays[key] for key in ("x", "edge_index", "y", "train_mask",
              "val_mask", "test_mask", "edge_weight")}  # fmt: skip
    name = pick(rng, sorted(arrays))
    changed = change_array(arrays[name], rng)
    if changed.dtype.kind in "iufbc" and changed.dtype.isnative and changed.dtype != np.uint64:
        arrays[name] = np.ascontiguousarray(changed)
    else:
        del arrays[name]
    tensors: dict[str, Any] = {key: torch.as_tensor(value) for key, value in arrays.items()}
    if chance(rng, 0.15):
        tensors[name] = _odd(rng)
    if chance(rng, 0.3):
        data = HeteroData()
        for key in ("x", "y", "train_mask"):
            if key in tensors:
                data["paper"][key] = tensors[key]
        if "edge_index" in tensors:
            data["paper", "cites", "paper"].edge_index = tensors["edge_index"]
        return lambda: use_graph(data)
    return lambda: use_graph(Data(**tensors))


# Requests to the review server


class _Watched(ReviewServer):
    """A review server that remembers an error that no answer mentions."""

    errors: list[str]

    def handle_error(self, request: Any, client_address: Any) -> None:
        import traceback

        text = traceback.format_exc()
        if "ConnectionResetError" not in text and "BrokenPipeError" not in text:
            self.errors.append(text.strip().splitlines()[-1])


@cache
def _server() -> _Watched:
    """One server per process."""

    def save(review: Review) -> None:
        if review.model == "wrong":
            raise nova.NodenovaError("class 9 is not there")

    server = _Watched(lambda: "<!DOCTYPE html>page", save, undo=save)
    server.errors = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


def close_server() -> None:
    """End the server of this process, if a case started it."""
    if _server.cache_info().currsize:
        _server().shutdown()
        _server().server_close()
        _server.cache_clear()


def request(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A request: its line, its headers or its body are changed, some with the right cookie."""
    document = change_json_file((corpus.folder / "review.json").read_bytes(), rng)
    body = document if chance(rng, 0.7) else (corpus.folder / "review.json").read_bytes()
    odd = pick(rng, ("", "x" * 5000, "é", "%00", "..", "127.0.0.1", "\x01", "a b", "chunked", "-5"))
    what, method = int(rng.integers(8)), pick(rng, ("GET", "POST", "POST", "PUT", "HEAD", "a" * 99))
    path = pick(
        rng, ("/", "/review", "/undo", "/?token=x", "/?token=%ff", "/../x", "*", odd or "/")
    )
    changing, length = change_bytes, pick(rng, (0, 1, 10**6, -1, 10**20, "a", "1_0"))

    def use() -> None:
        server = _server()
        host = f"127.0.0.1:{server.server_port}"
        headers = {
            "Host": host,
            "Cookie": f"nodenova-{server.server_port}={server.cookie}",
            "Origin": f"http://{host}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        if what == 0:
            headers[sorted(headers)[len(body) % 5]] = odd
        elif what == 1:
            del headers[sorted(headers)[len(body) % 5]]
        elif what == 2:
            headers["Content-Length"] = str(length)
        elif what == 3:
            headers |= {"Transfer-Encoding": "chunked", odd or "X": odd}
        lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
        raw = f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body
        _exchange(server, changing(raw, rng) if what == 4 else raw)

    return use


def _exchange(server: _Watched, content: bytes) -> None:
    """Send a request, read the answer, and raise unless it is a success."""
    before = len(server.errors)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=8) as line:
        try:
            line.sendall(content)
            line.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server answered and closed before all was sent
        try:
            answer = http.client.HTTPResponse(line)
            answer.begin()
            status, text = answer.status, answer.read(2000).decode(errors="replace")
        except ConnectionError:
            status, text = 400, "closed"
        except http.client.HTTPException as error:
            # A garbled first line is answered as HTTP 0.9, without a status.
            status, text = 400, f"{type(error).__name__}"
    if len(server.errors) > before:
        raise MisbehaviorError(server.errors[-1])
    if status >= 500 and status != 501:
        raise MisbehaviorError(f"{status}: {text}")
    if status >= 400:
        one = text.strip() if not text.lstrip().startswith("<") else f"status {status}"
        raise RefusalError(one or f"status {status}")
    json.dumps(text)


CALL_FORMATS: dict[str, tuple[Case, int]] = {
    "command": (command_line, 3000),
    "python": (python_call, 3500),
    "object": (foreign_object, 3000),
    "request": (request, 1500),
}
