"""The gate for documents: limits, schemas, and mutated documents of every kind.

A mutated document is read or refused by one short sentence; nothing else comes out.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nodenova as nova
from nodenova.bench.folder import GradedFolder
from nodenova.bench.rowfile import RowFile
from nodenova.errors import GraphError, SettingError, StorageError, brief
from nodenova.files import documents
from nodenova.files.documents import (
    MAX_DEPTH,
    check,
    check_encodable,
    either,
    is_deep,
    list_of,
    map_of,
    nullable,
    number,
    one_of,
    parse_cells,
    parse_json,
    plain,
    read_columns,
    read_json,
    record,
    text,
    to_number,
    to_whole,
    variant,
    whole,
)
from nodenova.io.graph_folder.prepare import prepare_graph
from nodenova.io.load import load_graph
from nodenova.io.table_options import TableOptions
from nodenova.review.review_file import History, Review, cached_names, cached_page, sentence
from nodenova.review.suggestions import Suggestions
from nodenova.runs.run_dir import prediction_columns
from tests.documents import BAD_CONTENT, is_refused, mutate, write

PREVIOUS = Path(__file__).parents[1] / "fixtures" / "previous"
EXAMPLES = 100  # mutants of each document
RESULTS = Path(__file__).parents[2] / "results"
FORM = record(
    {"name": text, "sizes": list_of(whole(1, 9)), "rate": number(0, above=True)},
    {"kind": one_of("a", "b"), "facts": map_of(plain), "note": nullable(text)},
    exact=True,
)
NO_OBJECTS = [content for content in BAD_CONTENT if content not in (b"{}", b'{"format": 1e999}')]
GOOD = {"name": "x", "sizes": [1, 2], "rate": 0.5, "kind": "a", "facts": {"n": [1]}, "note": None}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": 5}, "name must be a text, it is 5"),
        ({"sizes": [1, 10]}, "sizes[1] must be a whole number from 1 to 9, it is 10"),
        ({"sizes": [True]}, "sizes[0] must be a whole number from 1 to 9, it is true"),
        ({"sizes": "12"}, "sizes must be a list of whole numbers from 1 to 9, it is '12'"),
        ({"rate": 0}, "rate must be a finite number above 0, it is 0"),
        ({"rate": 10**400}, "rate must be a finite number above 0, it is a huge number"),
        ({"kind": "c"}, "kind must be one of a, b, it is 'c'"),
        ({"note": {}}, "note must be a text, it is an object"),
        ({"other": 1}, "it has an unknown key 'other'"),
        ({"facts": {"a b": {"c": [float("inf")]}}}, "facts['a b'].c[0] must be a text, a finite"),
    ],
)
def test_a_schema_names_the_place_and_the_value(change: dict[str, Any], sentence: str) -> None:
    check(GOOD, FORM, "f.json")
    with pytest.raises(StorageError) as raised:
        check({**GOOD, **change}, FORM, "f.json")
    assert str(raised.value).startswith(f"f.json: damaged, {sentence}")


def test_numbers_name_their_bounds_where_they_have_some() -> None:
    assert number().name == "a finite number"
    assert number(2).name == "a finite number of at least 2"


def test_a_missing_field_and_another_root_are_named() -> None:
    with pytest.raises(StorageError, match=r"^f: damaged, rate is missing$"):
        check({"name": "x", "sizes": []}, FORM, "f")
    with pytest.raises(GraphError, match=r"^f: damaged, it must be an object, it is \[1\]$"):
        check([1], FORM, "f", GraphError)


def test_a_form_may_depend_on_a_word_and_be_one_of_several() -> None:
    form = variant("kind", {"a": record({"x": whole()}), "b": record({})})
    check({"kind": "b"}, form, "f")
    with pytest.raises(StorageError, match="x is missing"):
        check({"kind": "a"}, form, "f")
    with pytest.raises(StorageError, match="kind must be one of a, b, it is 'c'"):
        check({"kind": "c"}, form, "f")
    check(["a", 2], list_of(either(text, whole())), "f")
    with pytest.raises(StorageError, match=r"it\[1\]|\[1\] must be a text or a whole number"):
        check(["a", 2.5], list_of(either(text, whole())), "f")


def test_values_without_a_schema_have_a_limited_depth() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    check({"x": deep}, map_of(plain), "f")
    assert is_deep([deep])
    assert not is_deep(deep)
    with pytest.raises(StorageError, match=f"at most {MAX_DEPTH} lists or objects"):
        check({"x": [deep]}, map_of(plain), "f")


@pytest.mark.parametrize("content", NO_OBJECTS)
def test_what_is_no_json_object_is_refused_by_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert is_refused(lambda: read_json(path), tmp_path)


def test_pairs_of_surrogates_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"name": "\\ud83d\\ude00"}')
    assert read_json(path) == {"name": "\N{GRINNING FACE}"}
    with pytest.raises(StorageError, match="half of a surrogate pair"):
        parse_json('{"\\ud83d": 1}', "a")


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, packed = tmp_path / "a.json", tmp_path / "rows.jsonl.gz"
    path.write_text('{"a": "' + "x" * 2**20 + '"}')
    packed.write_bytes(gzip.compress(b" " * 2**22))
    assert read_json(path)
    monkeypatch.setattr(documents, "MAX_BYTES", 2**20)
    monkeypatch.setattr(documents, "MAX_ROWS_BYTES", 2**20)
    with pytest.raises(StorageError, match="too large, such a file has at most 1 MiB"):
        read_json(path)
    with pytest.raises(StorageError, match="too large, such a file has at most 1 MiB"):
        RowFile(packed).read()


@pytest.mark.parametrize(
    "content", [b"not gzip", gzip.compress(b"{}\n", mtime=0)[:-9], b"\x1f\x8b\x08"]
)
def test_rows_that_cannot_be_unpacked(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(content)
    assert is_refused(RowFile(path).read, tmp_path)


@pytest.mark.parametrize("name", ["league"])
def test_the_published_rows_pass_the_gate(name: str) -> None:
    assert RowFile(RESULTS / f"{name}.jsonl.gz").read()


def test_json_in_tables_of_users_has_a_limited_depth() -> None:
    assert parse_cells("[1, NaN]")[0] == 1
    for content in ("[" * 100_000, "[" * 40 + "]" * 40, '["\\ud800"]', "9" * 5000):
        with pytest.raises(ValueError, match=r"inside each other|half of a|digits"):
            parse_cells(content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it has no column 'id'"),
        (b"name\nx\n", "it has no column 'id'"),
        (b"id,share\nx,1\n", "column 'id' holds 'x', which is not a whole number"),
        (b"id,share\n1,nan\n", "column 'share' holds 'nan', which is not a finite number"),
        (b"id,share\n" + b"9" * 5000 + b",1\n", "which is not a whole number"),
        (b"id,share\n1\n", "row 2 has 1 cells, the first one 2"),
        (b"\xff\xfe", "not a table in UTF-8"),
        (b"id,share\n" + b"x" * 200_000, "not a table in UTF-8"),
    ],
)
def test_a_small_table_is_read_or_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,share,name\n1,0.5,"a\nb"\n\n2,1,\n')
    kinds: dict[str, Callable[[str], Any]] = {"id": to_whole, "share": to_number}
    assert read_columns(path, kinds) == {"id": [1, 2], "share": [0.5, 1.0], "name": ["a\nb", ""]}
    path.write_bytes(content)
    with pytest.raises(StorageError) as raised:
        read_columns(path, kinds)
    assert sentence in str(raised.value)
    assert is_refused(lambda: read_columns(path, kinds), tmp_path)


def test_messages_do_not_repeat_long_values() -> None:
    for value in ("x" * 10**6, [[0] * 10**5], 10**9999, {"a": "x" * 10**6}, "\ud800"):
        assert len(brief(value)) <= 64
        brief(value).encode()


# Names that cannot be written.


def lone() -> str:
    return "oak\ud800"


def test_names_that_cannot_be_written_are_refused_where_they_enter() -> None:
    with pytest.raises(SettingError, match=r"^the name 'oak\\ud800' cannot be written as UTF-8"):
        check_encodable(["elm", 5, lone()], "the name", SettingError)
    x, edges = [[1, 0], [0, 1], [1, 1]], [[0, 1], [1, 2]]
    for names in ({"node_ids": ["a", "b", lone()]}, {"feature_names": ["a", lone()]}):
        with pytest.raises(GraphError, match="cannot be written as UTF-8"):
            nova.Graph.of(x, edges, **names)
    with pytest.raises(GraphError, match="cannot be written as UTF-8"):
        nova.NodeDiscoverer().fit((np.eye(3), edges), ["a", lone(), None])
    with pytest.raises(SettingError, match="cannot be written as UTF-8"):
        nova.NodeClass(0, lone(), 0)


def test_a_file_whose_name_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "oak\udcff.csv"
    try:
        path.write_text("id\na\n")
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    with pytest.raises(GraphError, match="cannot be written as UTF-8"):
        nova.load_graph(nodes=path, edges=path)


def test_a_json_table_with_half_of_a_pair_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text('{"id": "a\\ud800", "label": "x"}\n')
    (tmp_path / "e.csv").write_text("source,target\n")
    with pytest.raises(GraphError, match="half of a surrogate pair"):
        nova.load_graph(nodes=tmp_path / "n.jsonl", edges=tmp_path / "e.csv")


# Mutated documents.


@pytest.fixture(scope="module")
def data() -> nova.LabelledGraph:
    """A small graph."""
    return nova.synthetic(nodes=60, classes=4, words=40, words_per_node=8)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, data: nova.LabelledGraph) -> Path:
    """A folder with documents of the previous version and of this one."""
    place = tmp_path_factory.mktemp("runs")
    shutil.copytree(PREVIOUS, place / "previous")
    y = [c if c < 2 else -1 for c in data.y.tolist()]
    nova.NodeDiscoverer(num_new=2).fit(data.graph, y).report(str(place / "fresh"))
    decisions = [{"do": "rename", "class": 2, "name": "a"}, {"do": "split", "class": 3}]
    nova.open_run(place / "fresh").apply(decisions)
    (place / "s").mkdir()
    write(place / "s" / "suggestions.json", SUGGESTIONS)
    (place / "s" / "classes.csv").write_text("id,name\n0,a\n2,b\n3,c\n4,d\n")
    (place / "n.csv").write_text(NODES)
    (place / "e.csv").write_text("source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(29)))
    tables = {"nodes": place / "n.csv", "edges": place / "e.csv", "text_columns": ["text"]}
    prepare_graph(place / "folder", **tables)
    loaded = nova.load_graph(**tables)
    assert loaded.recipe is not None
    write(place / "recipe.json", loaded.recipe.as_json())
    row = (PREVIOUS / "bench" / "rows.jsonl").read_text().split("\n")[0]
    (place / "row.json").write_text(row)
    return place


SUGGESTIONS = {
    "format": "nodenova suggestions",
    "version": 1,
    "merges": [{"class_ids": [0, 3], "probability": 0.7}],
    "splits": [{"class_id": 2, "probability": 0.4}],
    "labels": [{"node": "n7", "label": "oak", "class_id": 4, "probability": 0.95}],
    "none": ["n1", 2],
    "none_share": 0.1,
}
NODES = "id,label,year,color,text,vector\n" + "".join(
    f"{i},{'ab'[i % 2] if i < 20 else ''},{1990 + i % 7 + i / 10},{['red', 'blue'][i % 2]},"
    f'"{["oak tree stands", "elm bush", "wide road"][i % 3]}","[{i / 7:.2f}, {i % 5}]"\n'
    for i in range(30)
)


def use_model(place: Path, graph: nova.Graph | None) -> None:
    model = nova.load_model(place)
    repr(model), model.next_id, model.lda, model.classes_per_stage
    if graph is not None:
        assert model.predict_proba(graph).shape == (graph.num_nodes, len(model.classes))


def open_quickly(place: Path) -> nova.RunFolder:
    """Open a run whose model and graph were read before."""
    run = nova.open_run(place)
    run.__dict__.update(model=load_once(place), graph=load_graph_once(place))
    return run


@cache
def load_once(place: Path) -> nova.Model:
    return nova.load_model(place / "model")


@cache
def load_graph_once(place: Path) -> nova.Graph:
    return load_graph(place / "graph.npz").graph


def use_run(place: Path) -> None:
    run = open_quickly(place)
    assert run.run.facts == run.document["facts"]
    assert len(run.class_names) == len(run.model.classes)
    assert run.recipe is None or run.recipe.words == run.feature_names
    run.reader(TableOptions())


def use_rows(place: Path) -> None:
    (place / "rows.jsonl").write_bytes((place / "row.json").read_bytes() + b"\n")
    for row in RowFile(place / "rows.jsonl").read():
        row.scores(), row.once, row.score("new_used")


def use_suggestions(place: Path) -> None:
    found = Suggestions.load(place)
    found.sentences(cached_names(place)), [one.decision for one in found.ranked]


def use_recipe(place: Path) -> None:
    recipe = read_json(place / "recipe.json")
    nova.load_graph(nodes=place / "n.csv", edges=place / "e.csv", recipe=recipe)


Use = Callable[[Path, nova.LabelledGraph], object]
DOCUMENTS: dict[str, Use] = {
    "previous/models/gcn/model.json": lambda p, d: use_model(p / "previous/models/gcn", None),
    "previous/models/gat/model.json": lambda p, d: use_model(p / "previous/models/gat", None),
    "previous/models/prism/model.json": lambda p, d: use_model(p / "previous/models/prism", None),
    "fresh/model/model.json": lambda p, d: (
        use_model(p / "fresh/model", d.graph),
        cached_page(p / "fresh"),
    ),
    "previous/run/run.json": lambda p, d: use_run(p / "previous/run"),
    "fresh/run.json": lambda p, d: use_run(p / "fresh"),
    "previous/run/features.json": lambda p, d: use_run(p / "previous/run"),
    "fresh/decisions.json": lambda p, d: [*map(sentence, History.read(p / "fresh").decisions)],
    "previous/review.json": lambda p, d: Review.from_json(read_json(p / "previous/review.json")),
    "s/suggestions.json": lambda p, d: use_suggestions(p / "s"),
    "recipe.json": lambda p, d: use_recipe(p),
    "row.json": lambda p, d: use_rows(p),
    "previous/graded/run.json": lambda p, d: GradedFolder.open(p / "previous/graded"),
    "previous/graded/seed-0/row.json": lambda p, d: GradedFolder(p / "previous/graded").rows(),
    "folder/graph.json": lambda p, d: load_graph(p / "folder"),
    "folder/names.json": lambda p, d: load_graph(p / "folder"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_mutated_document_is_read_or_refused_by_one_sentence(
    name: str, runs: Path, data: nova.LabelledGraph
) -> None:
    path = runs / name
    content = path.read_bytes()
    document = json.loads(content)
    refused: list[bool] = []

    @settings(derandomize=True, max_examples=EXAMPLES, deadline=None, database=None)
    @given(st.integers(0, 2**32))
    def read_mutant(seed: int) -> None:
        write(path, mutate(document, Random(seed)))
        refused.append(is_refused(lambda: DOCUMENTS[name](runs, data), runs))

    try:
        DOCUMENTS[name](runs, data)
        read_mutant()
        for bad in BAD_CONTENT:
            path.write_bytes(bad)
            assert is_refused(lambda: DOCUMENTS[name](runs, data), runs)
    finally:
        path.write_bytes(content)
    assert sum(refused) > len(refused) / 4


TABLES = ("previous/run/classes.csv", "fresh/predictions.csv")


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_table_of_a_run_is_read_or_refused_by_one_sentence(name: str, runs: Path) -> None:
    path = runs / name
    content = path.read_bytes()

    def read() -> None:
        run = open_quickly(path.parent)
        run.class_names, cached_names(path.parent)
        if path.name == "predictions.csv":
            prediction_columns(path.parent, ["1", "2"], 0.5)

    @settings(derandomize=True, max_examples=EXAMPLES, deadline=None, database=None)
    @given(st.integers(0, 2**32))
    def read_mutant(seed: int) -> None:
        random = Random(seed)
        at = random.randrange(min(len(content), 400))
        odd = random.choice([b"", b'"', b",", b"\n", b"\xff", b"\0", b"x", b"9" * 30])
        path.write_bytes(content[:at] + odd + content[at + random.randrange(3) :])
        is_refused(read, runs)

    try:
        read()
        read_mutant()
        path.write_bytes(b"\xff\xfe\x00")
        assert is_refused(read, runs)
    finally:
        path.write_bytes(content)


def test_a_review_with_a_name_that_cannot_be_written_changes_nothing(runs: Path) -> None:
    folder = runs / "fresh"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for name in (lone(), 5):
        with pytest.raises(SettingError, match="name must be a text, not"):
            nova.open_run(folder).apply([{"do": "rename", "class": 2, "name": name}])
    with pytest.raises(SettingError, match="cannot be written as UTF-8"):
        load_once(folder).rename(0, lone())
    with pytest.raises(SettingError, match=r"the title .* cannot be written as UTF-8"):
        nova.open_run(folder).run.with_page(lone(), {})
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("version", [True, 1.0, "1", None, 3])
def test_a_version_is_a_whole_number_that_is_known(version: object) -> None:
    documents.check_header({"format": "f", "version": 1}, "a.json", "f", [1, 2])
    with pytest.raises(StorageError, match=r"a\.json: has version .* reads versions up to 2"):
        documents.check_header({"format": "f", "version": version}, "a.json", "f", [1, 2])
