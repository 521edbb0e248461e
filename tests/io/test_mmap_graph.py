"""Graph folders: what is written is read without a copy, and what is broken is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import strategies as st

import nodenova as nova
from nodenova.encoders.prism import encoder
from nodenova.errors import GraphError, StorageError
from nodenova.io.graph_folder.prepare import convert
from nodenova.io.mmap_graph import new_folder, read_graph_folder
from nodenova.nn import sparse
from tests.refusals import one_sentence


@pytest.fixture
def folder(tmp_path: Path, labelled: nova.LabelledGraph) -> Path:
    convert(labelled, tmp_path / "graph")
    return tmp_path / "graph"


@pytest.mark.parametrize("which", ["labelled", "tiny"])
def test_a_graph_comes_back_as_it_was(
    tmp_path: Path, request: pytest.FixtureRequest, which: str
) -> None:
    given: nova.LabelledGraph = request.getfixturevalue(which)
    convert(given, tmp_path / "graph")
    found = nova.load_graph(tmp_path / "graph")
    graph, before = found.graph, given.graph
    assert np.array_equal(graph.edge_index, before.edge_index)
    assert graph.edge_index.dtype == np.int64
    assert (graph.adjacency != before.adjacency).nnz == 0
    same = (graph.x != before.x).nnz == 0 if sp.issparse(before.x) else (graph.x == before.x).all()
    assert same
    assert np.array_equal(graph.node_ids, before.node_ids)
    assert (found.class_names, found.name) == (given.class_names, given.name)
    assert np.array_equal(found.y, given.y)
    for mask in ("train", "val", "test"):
        assert np.array_equal(getattr(found, mask), getattr(given, mask))
    assert repr(graph) == repr(before)


def test_indices_are_small_and_read_only(folder: Path) -> None:
    graph = nova.load_graph(folder).graph
    assert graph.is_mapped
    assert graph.adjacency.indices.dtype == graph.x.indices.dtype == np.int32
    assert np.load(folder / "links_indptr.npy").dtype == np.int64
    for array in (graph.adjacency.indices, graph.x.indices, graph.x.data):
        assert not array.flags.writeable


def test_all_that_a_graph_can_do_gives_the_same(folder: Path, labelled: nova.LabelledGraph) -> None:
    mapped, plain = nova.load_graph(folder).graph, labelled.graph
    ids = np.arange(0, 60, 2)
    for a, b in (
        (mapped.subgraph(ids), plain.subgraph(ids)),
        (mapped.k_hop_subgraph(ids[:2], 1)[0], plain.k_hop_subgraph(ids[:2], 1)[0]),
    ):
        assert np.array_equal(a.edge_index, b.edge_index)
        assert (a.x != b.x).nnz == 0
    named = plain.with_features(plain.x, [f"w{i}" for i in range(60)])
    turned = mapped.with_features(mapped.x, [f"w{i}" for i in range(60)])
    words = [f"w{i}" for i in range(5, 80)]
    (a, *counts), (b, *expected) = turned.aligned(words), named.aligned(words)
    assert a.is_mapped
    assert counts == expected
    assert (a.x != b.x).nnz == 0


@pytest.mark.parametrize("entries", [2**24, 50])
@pytest.mark.parametrize("name", ["prism", "gcn", "sage", "gat"])
def test_predictions_from_a_folder_are_those_from_memory(
    folder: Path,
    labelled: nova.LabelledGraph,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    entries: int,
) -> None:
    settings = {} if name == "prism" else {"hidden": 8, "epochs": 3}
    found = []
    for given in (labelled, nova.load_graph(folder)):
        old, new, exam = nova.split(given, [0, 1])
        method = nova.Prism() if name == "prism" else nova.FrozenKMeans()
        model = nova.discover(nova.fit(old, name, **settings), new, method)
        found.append(model.predict_proba(exam.graph))
        monkeypatch.setattr(sparse, "BLOCK_ENTRIES", entries)
    assert np.array_equal(*found)


def test_products_by_blocks_of_rows_are_the_products(
    folder: Path, labelled: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = torch.device("cpu")
    columns = torch.randn(120, 7, generator=torch.Generator().manual_seed(0))
    weights = encoder.word_weights(labelled.graph)[0]
    whole = sparse.gcn_operator(labelled.graph, cpu)
    words = encoder.weighted_words(labelled.graph, weights, "common", cpu)
    monkeypatch.setattr(sparse, "BLOCK_ENTRIES", 40)
    mapped = nova.load_graph(folder).graph
    by_rows = sparse.gcn_operator(mapped, cpu)
    assert isinstance(by_rows.csr, sparse.BlockMatrix)
    assert len(by_rows.csr.blocks) > 5
    assert torch.equal(by_rows @ columns, whole @ columns)
    own = encoder.weighted_words(mapped, weights, "common", cpu)
    assert torch.equal(own.csr @ torch.eye(60), words.csr @ torch.eye(60))
    assert torch.equal(own.csr_t @ columns, words.csr_t @ columns)


PEAK = """
import sys
import torch
import nodenova as nova
from nodenova.nn.sparse import gcn_operator
from nodenova.encoders.prism.encoder import weighted_words, word_weights

def anonymous():  # what cannot be dropped and read again
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024

def use(graph):
    cpu = torch.device("cpu")
    words = weighted_words(graph, word_weights(graph)[0], "common", cpu)
    smooth = gcn_operator(graph, cpu)
    return words, smooth, smooth @ (words @ torch.ones(graph.num_features, 2))

use(nova.load_graph(sys.argv[1]).graph)  # imports and kernels are not what is measured
before = anonymous()
graph = nova.load_graph(sys.argv[2]).graph
opened = anonymous() - before
held = use(graph)
mapped = anonymous() - before
before = anonymous()
plain = nova.Graph(graph.x.copy(), graph.edge_index, graph.node_ids)
in_memory = use(plain)
print(opened, mapped, anonymous() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_opening_copies_nothing_and_operators_stay_on_disk(folder: Path) -> None:
    rng = np.random.default_rng(0)
    nodes, words = 20_000, 100
    columns = (np.arange(nodes)[:, None] + np.arange(words) * 7) % 1000
    parts = (np.ones(nodes * words, np.float32), np.sort(columns, axis=1).ravel())
    x = sp.csr_array((*parts, np.arange(0, nodes * words + 1, words)), (nodes, 1000))
    graph = nova.Graph.of(x, rng.integers(nodes, size=(2, 500_000)), dense=False)
    large = folder.parent / "large"
    convert(nova.LabelledGraph(graph, np.full(nodes, -1), ()), large)
    size = sum(path.stat().st_size for path in large.iterdir())
    command = [sys.executable, "-c", PEAK, str(folder), str(large)]
    # Else freed arrays stay with the process, and count.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    opened, mapped, in_memory = map(int, done.stdout.split())
    assert opened < size / 10, (opened, size)
    assert mapped < size / 3, (mapped, size)
    assert mapped < in_memory / 4, (mapped, in_memory)


def fail_halfway(folder: Path) -> None:
    with new_folder(folder, overwrite=False) as made:
        (made / "y.npy").write_bytes(b"half")
        raise RuntimeError


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        fail_halfway(tmp_path / "graph")
    assert not list(tmp_path.iterdir())


def test_an_earlier_graph_is_replaced_only_when_asked(
    folder: Path, tiny: nova.LabelledGraph
) -> None:
    with pytest.raises(StorageError, match="there is a graph already; give --overwrite"):
        convert(tiny, folder)
    assert nova.load_graph(folder).graph.num_nodes == 120
    convert(tiny, folder, overwrite=True)
    assert nova.load_graph(folder).graph.num_nodes == 10
    assert [path.name for path in folder.parent.iterdir()] == ["graph"]


def test_what_is_not_a_graph_folder_is_never_overwritten(
    tmp_path: Path, tiny: nova.LabelledGraph
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "mother.txt").write_text("dear")
    with pytest.raises(StorageError, match="exists and is not a graph folder"):
        convert(tiny, tmp_path / "letters", overwrite=True)
    (tmp_path / "letters" / "graph.json").write_text("{}")
    with pytest.raises(GraphError, match="was not written by `nodenova prepare`"):
        convert(tiny, tmp_path / "letters", overwrite=True)
    assert (tmp_path / "letters" / "mother.txt").read_text() == "dear"


def spoiled(folder: Path, what: str) -> None:
    index = folder / "graph.json"
    document = json.loads(index.read_text())
    if what == "half written":
        index.unlink()
    elif what == "was not written by":
        index.write_text('{"graph": []}')
    elif what == "not readable as JSON":
        index.write_text("{")
    elif what == "reads versions up to 2":
        index.write_text(json.dumps({**document, "version": 9}))
    elif what == "3,720 bytes":
        (folder / "x_data.npy").write_bytes((folder / "x_data.npy").read_bytes()[:-8])
    elif what == "y.npy is missing":
        (folder / "y.npy").unlink()
    elif what == "not the array that graph.json describes":
        np.save(folder / "y.npy", np.zeros(240, dtype=np.int32))
    elif what == "do not fit together":
        index.write_text(json.dumps({**document, "nodes": 119}))
    elif what == "do not agree":
        del document["arrays"]["y"]
        index.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "what",
    ["half written", "was not written by", "not readable as JSON", "reads versions up to 2",
     "3,720 bytes", "y.npy is missing", "not the array that graph.json describes",
     "do not fit together", "do not agree"],
)  # fmt: skip
def test_a_broken_folder_gets_one_sentence(folder: Path, what: str) -> None:
    spoiled(folder, what)
    with pytest.raises(GraphError, match=what) as caught:
        nova.load_graph(folder)
    assert str(folder) in str(caught.value)


def test_a_folder_of_tables_may_have_a_graph_json_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,size\na,1\nb,2\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "graph.json").write_text("{}")
    assert nova.load_graph(tmp_path).graph.num_nodes == 2


def test_options_for_tables_are_refused(folder: Path) -> None:
    with pytest.raises(nova.NodenovaError, match="label_column is for tables"):
        nova.load_graph(folder, label_column="kind")


def test_a_folder_without_links_or_features_is_read(tmp_path: Path) -> None:
    x = sp.csr_array((3, 2), dtype=np.float32)
    graph = nova.Graph.of(x, np.zeros((2, 0), dtype=int))
    convert(nova.LabelledGraph(graph, np.array([0, -1, -1]), ("a",)), tmp_path / "graph")
    found, prepared = read_graph_folder(tmp_path / "graph")
    assert (found.graph.num_edges, found.graph.x.nnz, prepared.new) == (0, 0, None)


def change(folder: Path, name: str, array: np.ndarray) -> None:
    """Replace an array of a graph folder, and its entry in graph.json."""
    np.save(folder / f"{name}.npy", array)
    document = json.loads((folder / "graph.json").read_text())
    size = (folder / f"{name}.npy").stat().st_size
    form = {"type": array.dtype.str, "shape": list(array.shape), "bytes": size}
    document["arrays"][name] = form
    (folder / "graph.json").write_text(json.dumps(document))


def with_value(array: np.ndarray, place: int, value: float) -> np.ndarray:
    array = array.copy()
    array.reshape(-1)[place] = value
    return array


# name of the array, its change, the message
CHANGES: list[tuple[str, Callable[[np.ndarray], np.ndarray], str]] = [
    # These were accepted, and `describe` then ended the interpreter or read beyond the array.
    ("links_indices", lambda a: with_value(a, 3, 1_000_000), "links: an index is 1000000"),
    ("links_indptr", lambda a: with_value(a, 5, 2**30), "links: the row starts (indptr) fall"),
    ("x_indices", lambda a: with_value(a, 3, -5), "x: an index is -5"),
    ("x_indptr", lambda a: with_value(a, 5, 2**30), "x: the row starts (indptr) fall"),
    ("x_indices", lambda a: a[::-1], "x: the columns of a row do not ascend"),
    ("links_indices", lambda a: a.astype(np.float32), "links_indices.npy is float32"),
    ("x_data", lambda a: with_value(a, 0, np.nan), "x_data.npy has numbers that are not finite"),
    ("x_data", lambda a: a[:-1], "x: indptr goes from 0"),
    ("x_data", lambda a: a.astype(">f4"), "x_data.npy is >f4"),
    ("y", lambda a: a[:-1], "y.npy is int64 of shape (119,)"),
    ("y", lambda a: with_value(a, 0, 2**40), "y holds 1099511627776"),
    ("node_ids", lambda a: a.reshape(2, -1), "node_ids.npy is"),
    ("new", lambda a: np.zeros(120, np.int64), "new.npy is int64"),
    ("edge_weight", lambda a: np.full(3, 1.0), "edge_weight.npy is float64 of shape (3,)"),
    ("vectors", lambda a: np.full((120, 2), np.inf), "vectors.npy has numbers that are not"),
    ("anything", lambda a: np.zeros(3), "anything.npy is float64"),
]


@pytest.mark.parametrize(("name", "make", "expected"), CHANGES)
def test_changed_arrays_are_refused_before_they_are_used(
    folder: Path, name: str, make: Callable[[np.ndarray], np.ndarray], expected: str
) -> None:
    path = folder / f"{name}.npy"
    change(folder, name, make(np.load(path) if path.exists() else np.zeros(1)))
    with pytest.raises(GraphError) as caught:
        nova.load_graph(folder)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_edge_weights_of_a_folder_are_positive(folder: Path) -> None:
    links = len(np.load(folder / "links_indices.npy"))
    change(folder, "edge_weight", np.zeros(links, np.float32))
    with pytest.raises(GraphError, match="a weight that is not positive"):
        nova.load_graph(folder)


@hypothesis.settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    name=st.sampled_from(["links_indptr", "links_indices", "x_indptr", "x_indices", "x_data", "y"]),
    place=st.integers(0, 4000),
    value=st.integers(0, 255),
)
def test_changed_bytes_of_a_folder(folder: Path, name: str, place: int, value: int) -> None:
    path = folder / f"{name}.npy"
    before = path.read_bytes()
    content = bytearray(before)
    content[place % len(content)] = value
    path.write_bytes(bytes(content))
    try:
        graph = nova.load_graph(folder).graph
        assert np.isfinite((graph.adjacency @ graph.x).sum())
    except GraphError as error:
        one_sentence(error, 300 + len(str(folder)))
    finally:
        path.write_bytes(before)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(
    tmp_path: Path, labelled: nova.LabelledGraph, mask: int
) -> None:
    before = os.umask(mask)
    try:
        convert(labelled, tmp_path / "graph")
    finally:
        os.umask(before)
    assert (tmp_path / "graph").stat().st_mode & 0o777 == 0o777 & ~mask
    for path in (tmp_path / "graph").iterdir():
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask, path.name


def test_a_link_in_a_folder_is_followed_like_any_file(folder: Path) -> None:
    (folder / "y.npy").rename(folder.parent / "elsewhere.npy")
    (folder / "y.npy").symlink_to(folder.parent / "elsewhere.npy")
    assert nova.load_graph(folder).graph.num_nodes == 120
