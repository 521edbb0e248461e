"""The inputs that are mutated: small files of every format, made once, and those of the tests."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shutil
import sys
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import nodenova as nova

from .judge import MisbehaviorError, RefusalError
from .mutate import Rows, npz_bytes, write_table

ROOT = Path(__file__).resolve().parents[2]
PREVIOUS = ROOT / "tests" / "fixtures" / "previous"
NODES = 42
TOPICS = ("birds", "boats", "bread")
ENCODERS = ("prism", "gcn", "gat", "sage")
SPLIT = "paper-seed-0"  # of the exported protocol


class Layer(torch.nn.Module):
    """An encoder of one's own."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(num_features, hidden)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        z: Tensor = self.layer(x)
        return z


def protocol_of(folder: Path) -> tuple[object, ...]:
    """A command that exports a protocol of a small graph."""
    graph = "synthetic:nodes=40,classes=4,words=30"
    return ("protocols", "export", "paper", "--dataset", graph, "-q", "--out", folder)


def command(*arguments: object) -> str:
    """Run a command in this process and return what it printed.

    Raises:
        RefusalError: If the command refused its input; the message is its last line.
        MisbehaviorError: If it ended with another exit code, or failed without a line.
    """
    from nodenova.cli import main

    printed, complained, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["nodenova", *map(str, arguments)]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
    if code in (0, None):
        return printed.getvalue()
    text = complained.getvalue()
    if code not in (1, 2) or "Traceback" in text:
        raise MisbehaviorError(f"exit {code}: {text[-300:]}")
    panel = [line.strip("│ ") for line in text.splitlines() if line.startswith("│")]
    if panel:  # typer draws one for an option that it does not know
        raise RefusalError(" ".join(panel))
    _, mark, sentence = text.rpartition("error: ")
    raise (
        RefusalError(sentence.strip()) if mark else MisbehaviorError(f"exit {code}: {text[-300:]}")
    )


@dataclass(frozen=True)
class Corpus:
    """Files of every format in one folder, and the values that they were made of."""

    folder: Path

    @cached_property
    def labelled(self) -> nova.LabelledGraph:
        """42 nodes of three classes, with names."""
        plain = nova.synthetic(nodes=NODES, classes=3, words=30, words_per_node=6, seed=3)
        ids = np.array([f"n{i}" for i in range(NODES)])
        names = tuple(f"word{i}" for i in range(30))
        graph = replace(plain.graph, node_ids=ids, feature_names=names)
        return replace(plain, graph=graph, class_names=TOPICS)

    @cached_property
    def known(self) -> list[str | None]:
        """Labels of the first two classes on two thirds of their nodes."""
        y = self.labelled.y.tolist()
        return [TOPICS[c] if c < 2 and i % 3 else None for i, c in enumerate(y)]

    @cached_property
    def features(self) -> np.ndarray:
        """(N, d) features as a dense array."""
        x: Any = self.labelled.graph.x
        return np.asarray(x if isinstance(x, np.ndarray) else x.toarray())

    @cached_property
    def nodes(self) -> Rows:
        """Records of the nodes."""
        x = self.features
        return [
            {
                "id": f"n{i}",
                "topic": self.known[i] or "",
                "text": " ".join(f"word{j}" for j in np.flatnonzero(x[i])),
                "year": 1990 + i % 7,
                "size": round(i * 0.37, 2),
                "kind": ("a", "b", "c")[i % 3],
                "new": "" if self.known[i] else "yes",
            }
            for i in range(NODES)
        ]

    @cached_property
    def edges(self) -> Rows:
        """Records of the edges."""
        pairs = self.labelled.graph.edge_index.T.tolist()
        return [
            {"source": f"n{a}", "target": f"n{b}", "weight": 1 + (a + b) % 3, "type": "xy"[a % 2]}
            for a, b in pairs
            if a < b
        ]

    @cached_property
    def dense_arrays(self) -> dict[str, np.ndarray]:
        """Arrays of an npz file with dense features, labels, masks, names, weights, vectors."""
        graph, rng = self.labelled.graph, np.random.default_rng(0)
        place = np.arange(NODES) % 3
        return {
            "x": self.features,
            "edge_index": graph.edge_index,
            "y": np.where(self.labelled.y < 2, self.labelled.y, -1),
            "train_mask": place == 0,
            "val_mask": place == 1,
            "test_mask": place == 2,
            "node_ids": graph.node_ids,
            "feature_names": np.array(graph.feature_names),
            "class_names": np.array(TOPICS),
            "edge_weight": np.ones(graph.edge_index.shape[1], dtype=np.float32),
            "vectors": rng.normal(size=(NODES, 4)).astype(np.float32),
        }

    @cached_property
    def sparse_arrays(self) -> dict[str, np.ndarray]:
        """Arrays of an npz file with the features in CSR parts."""
        import scipy.sparse as sp

        x = sp.csr_array(self.features)
        return {
            "x_data": x.data,
            "x_indices": x.indices.astype(np.int32),
            "x_indptr": x.indptr.astype(np.int32),
            "x_shape": np.array(x.shape),
            "edge_index": self.labelled.graph.edge_index,
            "y": self.dense_arrays["y"],
        }

    @cached_property
    def model(self) -> nova.Model:
        """The model of the run."""
        return nova.load_model(self.folder / "run")

    @cached_property
    def models(self) -> tuple[Path, ...]:
        """Folders of saved models: of every encoder, and of the version before."""
        return tuple(sorted(p.parent for p in (self.folder / "models").rglob("model.json")))

    @classmethod
    def build(cls, folder: Path) -> Corpus:
        """Make all files in an empty folder."""
        corpus = cls(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            corpus._write_graphs()
            corpus._write_models()
            corpus._write_runs()
            corpus._write_protocol()
            corpus._write_ogb()
        return corpus

    def _write_graphs(self) -> None:
        import networkx as nx

        from nodenova.io.graph_folder.prepare import prepare_graph

        tables = self.folder / "tables"
        tables.mkdir(parents=True)
        for name, rows in (("nodes", self.nodes), ("edges", self.edges)):
            for form in ("csv", "json"):
                (tables / f"{name}.{form}").write_bytes(write_table(rows, form))
        (tables / "new.txt").write_text("".join(f"n{i}\n" for i in range(30, NODES)))
        labels = [{"node": f"n{i}", "label": TOPICS[i % 2]} for i in range(9)]
        (tables / "labels.csv").write_bytes(write_table(labels, "csv"))
        vectors = self.dense_arrays["vectors"]
        np.save(tables / "vectors.npy", vectors)
        ids = np.array([row["id"] for row in self.nodes])
        (tables / "vectors.npz").write_bytes(npz_bytes({"ids": ids, "vectors": vectors}))
        graph = nx.Graph()
        for row in self.nodes:
            graph.add_node(row["id"], **{k: v for k, v in row.items() if k != "id"})
        graph.add_edges_from((row["source"], row["target"], {"weight": 1.0}) for row in self.edges)
        nx.write_graphml(graph, tables / "graph.graphml")
        nx.write_gml(graph, tables / "graph.gml")
        pairs = "".join(f"{row['source']} {row['target']} {row['weight']}\n" for row in self.edges)
        (tables / "graph.edgelist").write_text(pairs)
        (self.folder / "dense.npz").write_bytes(npz_bytes(self.dense_arrays))
        (self.folder / "sparse.npz").write_bytes(npz_bytes(self.sparse_arrays))
        prepare_graph(self.folder / "dense", self.folder / "dense.npz")
        prepare_graph(self.folder / "sparse", self.folder / "sparse.npz")
        options = {"label_column": "topic", "text_columns": ["text"]}
        both = {"nodes": tables / "nodes.csv", "edges": tables / "edges.csv"}
        prepare_graph(self.folder / "prepared", **both, **options)  # type: ignore[arg-type]

    def _write_models(self) -> None:
        old, new, _ = nova.split(self.labelled, [0, 1])
        own = nova.discover(nova.fit(old, Layer, hidden=8, epochs=3), new, nova.FrozenKMeans())
        own.save(self.folder / "models" / "own")
        for encoder in ENCODERS:
            settings: dict[str, Any] = {} if encoder == "prism" else {"hidden": 8, "epochs": 3}
            method = nova.Prism(n_resamples=0) if encoder == "prism" else nova.FrozenKMeans()
            model = nova.discover(nova.fit(old, encoder, **settings), new, method)
            model.save(self.folder / "models" / encoder)
        for name in ("gcn", "gat", "gcn-sword", "prism"):
            shutil.copytree(PREVIOUS / "models" / name, self.folder / "models" / "previous" / name)

    def _write_runs(self) -> None:
        tables, run = self.folder / "tables", self.folder / "run"
        files = ("--nodes", tables / "nodes.csv", "--edges", tables / "edges.csv")
        columns = ("--label-column", "topic", "--text-column", "text", "--show", "text")
        small = ("--num-new", 2, "--set", "n_resamples=0", "--none-share", 0.1, "-q")
        command("discover", *files, *columns, *small, "--out", self.folder / "first")
        command("discover", "--from", self.folder / "first", *files, "-q", "--out", run)
        document = json.loads((run / "model" / "model.json").read_text())
        ids = [c["id"] for c in document["classes"]]
        labelled = [row["id"] for row in self.nodes if row["topic"]]
        others = [row["id"] for row in self.nodes if not row["topic"]]
        review = {
            "format": "nodenova review",
            "version": 1,
            "model": document["sha256"],
            "decisions": [
                {"do": "rename", "class": ids[-1], "name": "plants"},
                {"do": "relabel", "nodes": labelled[:2], "class": ids[0]},
                {"do": "create", "nodes": others[:4], "name": "chosen"},
                {"do": "unlabel", "nodes": labelled[2:3]},
            ],
        }
        (self.folder / "review.json").write_text(json.dumps(review))
        shutil.copytree(run, self.folder / "plain")  # a run without decisions
        command("apply-review", run, self.folder / "review.json", "-q")
        counted = self.folder / "counted"  # keeps other numbers of new classes
        command("discover", *files, *columns[:4], "--set", "n_resamples=0", "-q", "--out", counted)
        answers = {"y": self.labelled.y, "names": np.array(TOPICS)}
        (run / "answers.npz").write_bytes(npz_bytes(answers))
        shutil.copytree(PREVIOUS / "run", self.folder / "previous-run")
        shutil.copytree(PREVIOUS / "graded", self.folder / "graded")
        shutil.copy(PREVIOUS / "bench" / "rows.jsonl", self.folder / "rows.jsonl")
        suggestions = nova.Suggestions.from_json(
            {
                "format": "nodenova suggestions",
                "version": 1,
                "merges": [{"class_ids": [0, 2], "probability": 0.71}],
                "splits": [{"class_id": 1, "probability": 0.4}],
                "labels": [{"node": "n1", "label": "birds", "class_id": 1, "probability": 0.95}],
                "none": ["n4", 7],
                "none_share": 0.1,
            }
        )
        (self.folder / "suggestions.json").write_text(json.dumps(suggestions.to_json()))

    def _write_protocol(self) -> None:
        """An exported protocol, predictions on it, and their grade."""
        from nodenova.bench import grader

        folder = self.folder / "protocol"
        command(*protocol_of(folder))
        (answers,) = (folder / "answers").glob("*/session-1.csv")
        (folder / "mine.csv").write_bytes(answers.read_bytes())
        document = grader.grade(folder, SPLIT, folder / "mine.csv")
        (self.folder / "graded.json").write_text(json.dumps(grader.strict(document)))

    def _write_ogb(self) -> None:
        """The graph as raw files of the Open Graph Benchmark."""
        folder, y = self.folder / "OGB" / "ogbn_arxiv", self.labelled.y
        tables = {"raw/edge": self.labelled.graph.edge_index.T, "raw/node-feat": self.features,
                  "raw/node-label": y[:, None]}  # fmt: skip
        for number, part in enumerate(("train", "valid", "test")):
            tables[f"split/time/{part}"] = np.arange(number, NODES, 3)[:, None]
        for name, table in tables.items():
            path = folder / f"{name}.csv.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = "".join(",".join(map(str, row)) + "\n" for row in table.tolist())
            path.write_bytes(gzip.compress(lines.encode(), mtime=0))
