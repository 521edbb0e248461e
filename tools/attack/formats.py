"""Cases about files: each makes a mutated file and returns what a user would do with it."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import nodenova as nova
from nodenova.io.describe import describe, lines_of
from nodenova.io.recipe import TableEncoder

from .corpus import Corpus
from .judge import Action, RefusalError
from .mutate import (
    TABLE_FORMS,
    Rng,
    chance,
    change_array,
    change_bytes,
    change_json,
    change_json_file,
    change_npy,
    change_npz,
    change_table,
    npy_bytes,
    pick,
    write_table,
)

Case: TypeAlias = Callable[[Corpus, Rng, Path], Action]


def use_graph(*arguments: Any, **options: Any) -> None:
    """Load a graph and do what a user does next: look at it, take its labels."""
    loaded = nova.load_graph(*arguments, **options)
    lines_of(describe(loaded))
    with contextlib.suppress(nova.NodenovaError):
        nova.tasks_from_labels(loaded, 1)


def npz_graph(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """An npz graph."""
    arrays = corpus.dense_arrays if chance(rng, 0.5) else corpus.sparse_arrays
    path = place / "g.npz"
    path.write_bytes(change_npz(arrays, rng))
    return lambda: use_graph(path)


def graph_folder(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A graph folder; some changes keep graph.json in agreement with the arrays."""
    folder = place / "g"
    shutil.copytree(corpus.folder / pick(rng, ("dense", "sparse", "prepared")), folder)
    path = pick(rng, sorted(folder.iterdir()))
    if path.suffix == ".json":
        path.write_bytes(change_json_file(path.read_bytes(), rng))
    elif chance(rng, 0.4):
        path.write_bytes(change_npy(path.read_bytes(), rng))
    else:
        array = change_array(np.load(path), rng)
        path.write_bytes(npy_bytes(array))
        index = json.loads((folder / "graph.json").read_text())
        index["arrays"][path.stem] = {
            "type": array.dtype.str,
            "shape": list(array.shape),
            "bytes": path.stat().st_size,
        }
        (folder / "graph.json").write_text(json.dumps(index))
    return lambda: use_graph(folder)


def model_folder(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A saved model; some changes of the weights keep their hash right."""
    folder = place / "m"
    origin = pick(rng, corpus.models)
    shutil.copytree(origin, folder)
    fits = origin.parent.name != "previous"  # those are of another graph
    change_model(folder, rng)
    graph = corpus.labelled.graph

    def use() -> None:
        model = nova.load_model(folder)
        str(model), model.class_names, model.recipe
        if fits:
            model.predict_proba(graph)

    return use


def change_model(folder: Path, rng: Rng) -> None:
    """Change one of the two files of a saved model."""
    index = folder / "model.json"
    if chance(rng, 0.65):
        index.write_bytes(change_json_file(index.read_bytes(), rng))
        return
    document = json.loads(index.read_text())
    weights = folder / document["weights"]
    content = change_safetensors(weights.read_bytes(), rng)
    weights.write_bytes(content)
    if chance(rng, 0.8):
        document["sha256"] = hashlib.sha256(content).hexdigest()
        index.write_text(json.dumps(document))


def change_safetensors(content: bytes, rng: Rng) -> bytes:
    """Change the tensors of a file, its header or its bytes."""
    from safetensors.numpy import load, save

    kind = int(rng.integers(4))
    if kind < 2:
        tensors = load(content)
        name = pick(rng, sorted(tensors))
        if chance(rng, 0.2):
            tensors["other"] = tensors.pop(name)
        else:
            changed = change_array(tensors[name], rng)
            fits = changed.dtype.kind in "iufb" and changed.dtype.isnative
            tensors[name] = np.ascontiguousarray(changed if fits else np.zeros(3, "f4"))
        return save(tensors)
    if kind == 2:
        size = int.from_bytes(content[:8], "little")
        header = change_json_file(content[8 : 8 + size].strip(), rng)
        return len(header).to_bytes(8, "little") + header + content[8 + size :]
    return change_bytes(content, rng)


def change_file(path: Path, rng: Rng) -> None:
    """Change one file of a folder by its kind."""
    content = path.read_bytes()
    if path.suffix == ".json":
        content = change_json_file(content, rng)
    elif path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        content = change_npz(arrays, rng)
    elif path.suffix == ".csv":
        import csv

        rows = list(csv.DictReader(content.decode().splitlines()))
        content = change_table(rows, "csv", rng)[0]
    else:
        content = change_bytes(content, rng)
    path.write_bytes(content)


def run_folder(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A run folder with one file changed or missing, and one of the things done with runs."""
    folder = place / "r"
    shutil.copytree(corpus.folder / pick(rng, ("run", "counted", "plain", "previous-run")), folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    path = pick(rng, sorted(files))
    if "model" in path.parent.name:
        change_model(path.parent, rng)
    elif chance(rng, 0.05):
        path.unlink()
    else:
        change_file(path, rng)
    return _use_run(corpus, rng, folder, place)


def _use_run(corpus: Corpus, rng: Rng, folder: Path, place: Path) -> Action:
    from .corpus import command

    def run() -> nova.RunFolder:
        return nova.open_run(folder)

    uses: tuple[Action, ...] = (
        lambda: len(run().predictions),
        lambda: str(run().classes),
        lambda: run().suggestions.sentences({c.id: c.name for c in run().model.classes}),
        lambda: (run().labels, run().class_names, run().history),
        lambda: run().predict(only=["n1", "n2"]),
        lambda: run().predict(corpus.labelled.graph),
        lambda: run().diff(corpus.folder / "run"),
        lambda: run().export("csv", place / "out"),
        lambda: nova.load_model(folder),
        lambda: nova.Suggestions.load(folder),
        lambda: run()._repr_html_(),
        lambda: command("classes", folder, "-q"),
        lambda: command("predict", folder, "--out", place / "p.csv", "-q"),
        lambda: command("predict", folder, "--node", "n1"),
        lambda: command("undo", folder, "-q"),
        lambda: command("report", folder, "-q"),
        lambda: command("diff", corpus.folder / "run", folder),
        lambda: command("export", folder, "--to", "csv", "--out", place / "out", "-q"),
        lambda: command("apply-review", folder, corpus.folder / "review.json", "-q"),
        lambda: run().at(2),
        lambda: command("classes", folder, "--num-new", "2", "--use", "-q"),
    )
    return pick(rng, uses)


def graded_folder(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """The folder of a graded run: run.json, row.json, map.npz, models."""
    from nodenova.bench.folder import GradedFolder

    from .corpus import command

    folder = place / "r"
    shutil.copytree(corpus.folder / "graded", folder)
    path = pick(rng, sorted(path for path in folder.rglob("*") if path.is_file()))
    if path.suffix == ".safetensors":
        change_model(path.parent, rng)
    else:
        change_file(path, rng)

    def use() -> None:
        graded = GradedFolder.open(folder)
        graded.rows(), graded.model(), graded.map()

    return use if chance(rng, 0.8) else lambda: command("report", folder, "-q")


def row_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A file of rows, gzipped or not."""
    from nodenova.bench.rowfile import RowFile

    lines = (corpus.folder / "rows.jsonl").read_bytes().splitlines()
    at = int(rng.integers(len(lines)))
    lines[at] = change_json_file(lines[at], rng).replace(b"\n", b" ")
    content, path = b"\n".join(lines) + b"\n", place / "rows.jsonl"
    if chance(rng, 0.2):
        content, path = gzip.compress(content, mtime=0), place / "rows.jsonl.gz"
        if chance(rng, 0.5):
            content = change_bytes(content, rng)
    path.write_bytes(content)

    def use() -> None:
        for row in RowFile(path).read():
            row.is_done, row.is_failed, row.to_json()

    return use


def method_rows_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A file with the rows of a method of others."""
    from nodenova.bench.method_rows import read_method_rows
    from nodenova.bench.tables import comparison

    lines = (corpus.folder / "rows.jsonl").read_bytes().splitlines()
    rows = [row for row in map(json.loads, lines) if row["method"] == "frozen_kmeans"]
    document = {
        "format": "nodenova method rows",
        "version": 1,
        "method": {"name": "frozen_kmeans", "source": None},
        "verdict": "passes",
        "checks": [{"encoder": "gcn", "check": "one new class", "problem": None}],
        "rows": [{**row, "key": str(place)} for place, row in enumerate(rows)],
        "versions": {"nodenova": "0.1"},
        "commit": None,
    }
    path = place / "theirs.json"
    path.write_bytes(change_json_file(json.dumps(document).encode(), rng))

    def use() -> None:
        comparison(read_method_rows(path))

    return use


def grade_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A document that `grade.py --json` wrote, which becomes the rows of a method."""
    from nodenova.bench.method_rows import graded_document

    path = place / "graded.json"
    path.write_bytes(change_json_file((corpus.folder / "graded.json").read_bytes(), rng))
    return lambda: graded_document("theirs", [path])


def protocol_folder(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """An exported protocol and predictions on it, for grade.py or to be replaced."""
    from nodenova.bench import grader

    from .corpus import SPLIT, command, protocol_of

    folder = place / "p"
    shutil.copytree(corpus.folder / "protocol", folder)
    read = [path for path in folder.rglob("*") if path.suffix in (".json", ".csv")]
    path = folder / "mine.csv" if chance(rng, 0.4) else pick(rng, sorted(read))
    if chance(rng, 0.03):
        path.unlink()
    else:
        change_file(path, rng)
    if path.parent.parent.name == "answers" and chance(rng, 0.8):  # with the right hash
        index = json.loads((folder / "protocol.json").read_text())
        hashes = next(one for one in index["splits"] if one["name"] == SPLIT)["answers"]
        if path.is_file():
            hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        (folder / "protocol.json").write_text(json.dumps(index))

    def use() -> None:
        try:
            document = grader.grade(folder, SPLIT, folder / "mine.csv")
            grader.as_text(document), json.dumps(grader.strict(document))
        except grader.WrongFileError as error:
            raise RefusalError(str(error)) from None

    return use if chance(rng, 0.9) else lambda: command(*protocol_of(folder), "--overwrite")


def ogb_folder(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """The raw files of a graph of the Open Graph Benchmark."""
    folder = place / "OGB"
    shutil.copytree(corpus.folder / "OGB", folder)
    path = pick(rng, sorted(folder.rglob("*.gz")))
    content = gzip.decompress(path.read_bytes())
    match int(rng.integers(5)):
        case 0:
            lines = content.splitlines()
            at = int(rng.integers(len(lines)))
            lines[at] = pick(rng, (b"", b"1", b"1,2,3", b"-1", b"a", b"nan", b"1e400", b"9" * 25,
                                   b"inf", b"1_0", b"\xff", b"#", b",", b"0x1", b"1" * 10**5,
                                   b"\x00"))  # fmt: skip
            content = b"\n".join(lines)
        case 1:
            content = pick(rng, (b"", b"\n", content * 2, content[: len(content) // 2]))
        case _:
            content = change_bytes(content, rng)
    packed = gzip.compress(content, mtime=0)
    path.write_bytes(change_bytes(packed, rng) if chance(rng, 0.3) else packed)
    if chance(rng, 0.05):
        path.unlink()
    return lambda: use_graph(nova.load_dataset("ogbn-arxiv", data_root=place))


PLAN = """table = "comparison"
datasets = ["cora", "citeseer"]
encoders = "gcn"
methods = ["sword"]
set = { epochs = 7, reading = "printed" }
seeds = [4, 7]
num-old = 2
hidden = 8
fit-set = ["dropout=0.25"]
out = "here"
[[tables]]
table = "heads"
"""


def plan_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A plan of a bench."""
    from nodenova.cli.bench_plan import read_plan

    path = place / "plan.toml"
    path.write_bytes(change_bytes(PLAN.encode(), rng))

    def use() -> None:
        read_plan(path, {"seeds": "4,7"})

    return use


def review_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A review.json, for a model or a whole run."""
    from .corpus import command

    content = change_json_file((corpus.folder / "review.json").read_bytes(), rng)
    path = place / "review.json"
    path.write_bytes(content)
    if chance(rng, 0.85):
        # PyTorch's generator and the model stay as they are: a review is a function of values.
        def use() -> None:
            try:
                document = json.loads(content)
            except (ValueError, RecursionError):
                return
            graph = nova.open_run(corpus.folder / "plain").graph
            nova.apply_review(nova.load_model(corpus.folder / "plain"), document, graph)

        return use
    folder = place / "r"
    shutil.copytree(corpus.folder / "plain", folder)

    def apply() -> None:
        command("apply-review", folder, path, "-q")
        str(nova.open_run(folder).classes)

    return apply


def suggestions_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A suggestions.json."""
    content = change_json_file((corpus.folder / "suggestions.json").read_bytes(), rng)
    (place / "suggestions.json").write_bytes(content)

    def use() -> None:
        found = nova.Suggestions.load(place)
        names = {0: "birds", 1: "boats", 2: "bread"}
        found.sentences(names), [one.decision for one in found.ranked], found.to_json()

    return use


def recipe_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A recipe, from features.json, and the tables that it is used on."""
    document = json.loads((corpus.folder / "run" / "features.json").read_text())
    recipe = change_json(document["recipe"], rng)
    tables = corpus.folder / "tables"
    if chance(rng, 0.5):
        return lambda: TableEncoder.from_json(recipe).feature_names
    both = {"nodes": tables / "nodes.csv", "edges": tables / "edges.csv"}
    return lambda: nova.load_graph(**both, recipe=recipe)  # type: ignore[arg-type]


COLUMNS = (
    "id",
    "topic",
    "text",
    "year",
    "size",
    "kind",
    "new",
    "source",
    "target",
    "weight",
    "type",
)
ENCODINGS = (
    "utf-8",
    "latin-1",
    "utf-16",
    "cp1252",
    "rot13",
    "zip",
    "idna",
    "nonsense",
    "",
    "utf-7",
)


def table_options(rng: Rng) -> dict[str, Any]:
    """Options of `load_graph` for tables, most of them right."""
    options: dict[str, Any] = {}
    if chance(rng, 0.5):
        options |= {"label_column": "topic", "text_columns": ["text"]}
    for name in ("id_column", "label_column", "new_column", "source_column", "target_column",
                 "weight_column", "edge_type_column"):  # fmt: skip
        if chance(rng, 0.06):
            options[name] = pick(rng, (*COLUMNS, "nowhere", "", "\x00"))
    if chance(rng, 0.08):
        options["encoding"] = pick(rng, ENCODINGS)
    if chance(rng, 0.08):
        options["delimiter"] = pick(rng, (",", ";", "\t", "tab", "", "ab", "\x00", '"', "\n", " "))
    if chance(rng, 0.05):
        options["features"] = pick(rng, (["year"], ["size", "kind"], [], ["nowhere"], ["text"]))
    if chance(rng, 0.05):
        options["max_words"] = pick(rng, (0, 1, 5, -1))
    if chance(rng, 0.1):
        options["drop_unknown_edges"] = True
    return options


def table(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A table of nodes or edges in one of five forms, and the other one as it should be."""
    forms = [pick(rng, TABLE_FORMS) for _ in range(2)]
    changed = int(rng.integers(2))
    paths = []
    for number, (name, rows) in enumerate((("nodes", corpus.nodes), ("edges", corpus.edges))):
        content, ending = write_table(rows, forms[number]), f".{forms[number]}"
        if number == changed:
            content, ending = change_table(rows, forms[number], rng)
        path = place / f"{name}{ending}"
        path.write_bytes(content)
        paths.append(path)
    options = table_options(rng)
    if chance(rng, 0.06):
        from nodenova.io.graph_folder.prepare import prepare_graph

        return lambda: prepare_graph(place / "g", nodes=paths[0], edges=paths[1], **options)
    if chance(rng, 0.1):
        return lambda: use_graph(place)
    return lambda: use_graph(nodes=paths[0], edges=paths[1], **options)


def graph_text(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A GraphML file, a GML file or an edge list."""
    name = pick(rng, ("graph.graphml", "graph.gml", "graph.edgelist"))
    content = (corpus.folder / "tables" / name).read_bytes()
    match int(rng.integers(4)):
        case 0:
            words = (b"node", b"edge", b"id", b"key", b"graph", b"source", b"int", b"string", b"n1",
                     b"yes", b"[", b"<", b">", b" ", b"\n", b'"')  # fmt: skip
            new = pick(rng, (b"", b"x", b"\x00", b"\xff", b"&amp;", b"&x;", b"9" * 400, b"[" * 3000,
                             b"<a>" * 3000, b"NAN", b"INF", b"-1"))  # fmt: skip
            content = content.replace(pick(rng, words), new, pick(rng, (1, 2, -1)))
        case 1:
            bomb = b'<!DOCTYPE a [<!ENTITY x "' + b"y" * 1000 + b'"><!ENTITY z "&x;&x;&x;&x;">]>'
            content = pick(rng, (bomb + content, content[:300] + content, content * 2, b""))
        case _:
            content = change_bytes(content, rng)
    path = place / name
    path.write_bytes(content)
    return lambda: use_graph(path)


def vectors_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A file of text vectors: .npy, or .npz with ids."""
    tables = corpus.folder / "tables"
    if chance(rng, 0.5):
        path = place / "v.npy"
        path.write_bytes(change_npy((tables / "vectors.npy").read_bytes(), rng))
    else:
        path = place / "v.npz"
        with np.load(tables / "vectors.npz") as archive:
            path.write_bytes(change_npz({name: archive[name] for name in archive.files}, rng))
    both = {"nodes": tables / "nodes.csv", "edges": tables / "edges.csv"}
    return lambda: use_graph(**both, text_vectors=path)


def id_file(corpus: Corpus, rng: Rng, place: Path) -> Action:
    """A file of new nodes, or of labels."""
    tables = corpus.folder / "tables"
    both = {"nodes": tables / "nodes.csv", "edges": tables / "edges.csv"}
    if chance(rng, 0.6):
        path = place / "new.txt"
        path.write_bytes(change_bytes((tables / "new.txt").read_bytes(), rng))
        if chance(rng, 0.3):
            path.write_bytes(
                pick(rng, (b"", b"\n", b"n1\n" * 3, b"\xff\xfe", b"n1,n2\n", b"id\nn1"))
            )
        return lambda: use_graph(**both, new_nodes=path, label_column="topic")
    import csv

    from .corpus import command

    rows = list(csv.DictReader((tables / "labels.csv").read_text().splitlines()))
    content, ending = change_table(rows, "csv", rng)
    path = place / f"labels{ending}"
    path.write_bytes(content)
    files = ("--nodes", both["nodes"], "--edges", both["edges"], "--text-column", "text")
    rest = ("--num-new", 1, "--set", "n_resamples=0", "--no-report", "-q")
    arguments = ("discover", *files, "--labels", path, *rest, "--out", place / "r")
    return lambda: command(*arguments)


FILE_FORMATS: dict[str, tuple[Case, int]] = {
    "npz": (npz_graph, 6000),
    "graph-folder": (graph_folder, 5000),
    "model": (model_folder, 5000),
    "run": (run_folder, 6000),
    "graded-run": (graded_folder, 2000),
    "rows": (row_file, 3000),
    "method-rows": (method_rows_file, 2000),
    "plan": (plan_file, 2000),
    "grades": (grade_file, 2000),
    "protocol": (protocol_folder, 2500),
    "ogb": (ogb_folder, 2000),
    "review": (review_file, 3000),
    "suggestions": (suggestions_file, 2500),
    "recipe": (recipe_file, 3500),
    "table": (table, 7000),
    "graph-text": (graph_text, 2500),
    "vectors": (vectors_file, 2000),
    "ids": (id_file, 1000),
}
