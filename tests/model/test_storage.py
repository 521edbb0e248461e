from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import load_file, save_file
from safetensors.torch import save as save_tensors

import nodenova as nova
from nodenova.errors import SettingError, StorageError
from nodenova.files.atomic import write_atomically
from nodenova.model import loading, saving
from nodenova.model.loading import load_model
from nodenova.model.saving import save_model


@pytest.fixture
def saved(tmp_path: Path, discovered: nova.Model) -> Path:
    folder = tmp_path / "model"
    discovered.save(folder)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def edit(folder: Path, **changes: object) -> None:
    """Change entries of model.json; a value of None removes the entry."""
    document = json.loads((folder / "model.json").read_text()) | changes
    (folder / "model.json").write_text(
        json.dumps({key: value for key, value in document.items() if value is not None})
    )


def weights_of(folder: Path) -> Path:
    (path,) = folder.glob("weights-*.safetensors")
    return path


def refuses(folder: Path, sentence: str = "") -> None:
    with pytest.raises(StorageError, match=f"{re.escape(str(folder))}.*{sentence}"):
        load_model(folder)


def test_predictions_are_bit_identical_after_loading(
    saved: Path, discovered: nova.Model, labelled
) -> None:
    loaded = load_model(saved)
    graph = labelled.graph
    assert (loaded.predict_proba(graph) == discovered.predict_proba(graph)).all()
    assert (loaded.embed(graph) == discovered.embed(graph)).all()
    assert (loaded.predict_new(graph) == discovered.predict_new(graph)).all()
    assert torch.equal(loaded.memory.replay.mean, discovered.memory.replay.mean)
    assert torch.equal(loaded.memory.replay.var, discovered.memory.replay.var)
    assert loaded.classes == discovered.classes
    assert loaded.stages == discovered.stages
    assert loaded.num_old == discovered.num_old


@pytest.mark.parametrize("encoder", ["gat", "sage"])
def test_every_encoder_and_a_model_without_discovered_classes(
    tmp_path: Path, tasks, encoder: str
) -> None:
    model = nova.fit(tasks[0], encoder, hidden=8, heads=2, layers=3, epochs=2)
    model.save(tmp_path)
    loaded = load_model(tmp_path)
    assert (loaded.predict_proba(tasks[0].graph) == model.predict_proba(tasks[0].graph)).all()
    assert loaded.novel_head() is None
    assert loaded.encoder().spec == model.encoder().spec


def test_predictions_are_bit_identical_in_a_fresh_process(
    tmp_path: Path, saved: Path, discovered: nova.Model, labelled
) -> None:
    script = """
import sys
import numpy as np
import nodenova as nova
graph = nova.synthetic(nodes=120, classes=4, words=60, words_per_node=8).graph
np.save(sys.argv[2], nova.load_model(sys.argv[1]).predict_proba(graph))
"""
    paths = os.pathsep.join([str(Path(nova.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    out = tmp_path / "p.npy"
    subprocess.run(
        [sys.executable, "-c", script, str(saved), str(out)],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert np.load(out).tobytes() == discovered.predict_proba(labelled.graph).tobytes()


def test_how_an_encoder_is_run_is_saved_and_loaded(tmp_path: Path, tasks) -> None:
    running = {"batch": 40, "neighbors": 3, "precision": "bfloat16"}
    model = nova.fit(tasks[0], "gcn", epochs=2, **running)
    model.save(tmp_path / "m")
    document = json.loads((tmp_path / "m/model.json").read_text())
    assert running.items() <= document["encoder"].items()
    assert running.items() <= document["stages"][0]["settings"].items()
    loaded = load_model(tmp_path / "m")
    spec = loaded.frozen_encoder().spec
    assert running == {key: getattr(spec, key) for key in running}
    later = [nova.discover(each, tasks[1], nova.Sword(epochs=3)) for each in (model, loaded)]
    first, second = (each.predict_proba(tasks[1].graph).tobytes() for each in later)
    assert first == second


def test_a_model_of_the_whole_graph_is_written_as_before_there_were_batches(
    tmp_path: Path, tasks
) -> None:
    nova.fit(tasks[0], "gcn", epochs=2).save(tmp_path / "m")
    document = json.loads((tmp_path / "m/model.json").read_text())
    assert document["version"] < 8
    assert not {"batch", "neighbors", "precision"} & document["encoder"].keys()


def test_a_loaded_model_can_be_taken_further(saved: Path, discovered: nova.Model, tasks) -> None:
    method = nova.Sword(epochs=2)
    a, b = (
        nova.discover(load_model(saved), tasks[1], method),
        nova.discover(discovered, tasks[1], method),
    )
    assert (a.predict_proba(tasks[1].graph) == b.predict_proba(tasks[1].graph)).all()


def test_loading_does_not_change_torchs_random_state(saved: Path) -> None:
    state = torch.get_rng_state()
    load_model(saved)
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_unpickled(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("unpickling on the load path")

    for name in ("load", "loads", "Unpickler", "_Unpickler", "_load", "_loads"):
        monkeypatch.setattr(pickle, name, forbidden)
    monkeypatch.setattr(torch, "load", forbidden)
    assert len(load_model(saved).classes) == 4


def test_a_model_is_json_and_one_weights_file_also_after_saving_again(
    saved: Path, discovered, fitted
) -> None:
    for model in (discovered, fitted, discovered):
        model.save(saved)
        assert set(content(saved)) == {"model.json", weights_of(saved).name}
        assert len(load_model(saved).classes) == len(model.classes)


def test_saving_the_same_model_twice_writes_the_same_bytes(
    saved: Path, discovered: nova.Model
) -> None:
    before = content(saved)
    discovered.save(saved)
    assert content(saved) == before


@pytest.mark.parametrize("at", [0, 9, -1])
def test_one_flipped_byte_in_the_weights_is_noticed(saved: Path, at: int) -> None:
    path = weights_of(saved)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))
    refuses(saved, "damaged")


def test_truncated_and_missing_weights(saved: Path) -> None:
    path = weights_of(saved)
    path.write_bytes(path.read_bytes()[:-1])
    refuses(saved, "damaged")
    path.unlink()
    refuses(saved, "not there")


def test_a_foreign_folder_and_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refuses(tmp_path, "not a saved model")
    refuses(tmp_path / "nowhere", "not a saved model")


@pytest.mark.parametrize(
    "text", ['{"format": "nodenova', "", "[]", "7", '{"format": "something else"}']
)
def test_a_model_json_that_is_none(saved: Path, text: str) -> None:
    (saved / "model.json").write_text(text)
    refuses(saved)


def test_a_model_json_that_is_not_text(saved: Path) -> None:
    (saved / "model.json").write_bytes(b"\xff\xfe\x00")
    refuses(saved, "damaged")


def test_a_newer_version(saved: Path) -> None:
    edit(saved, version=saving.VERSION + 1)
    refuses(saved, f"format {saving.VERSION + 1}")


@pytest.mark.parametrize(
    "name",
    [
        "../outside.safetensors",
        "{tmp}/outside.safetensors",
        "sub/../../outside.safetensors",
        "..",
        "",
        "model.json/",
    ],
)
def test_weights_outside_the_folder_are_not_read(tmp_path: Path, saved: Path, name: str) -> None:
    (tmp_path / "outside.safetensors").write_bytes(weights_of(saved).read_bytes())
    (saved / "sub").mkdir()
    edit(saved, weights=name.format(tmp=tmp_path))
    refuses(saved)


@pytest.mark.parametrize(
    "key", ["weights", "sha256", "encoder", "head", "classes", "stages", "version", "format"]
)
@pytest.mark.parametrize("value", [None, 99, "seven", ["seven"]])
def test_an_entry_of_model_json_that_is_missing_or_wrong(
    saved: Path, key: str, value: object
) -> None:
    edit(saved, **{key: value})
    refuses(saved)


@pytest.mark.parametrize(
    "spec", [{"hidden": 17}, {"num_features": 1}, {"num_features": 2**31 - 1}, {"layers": 3}]
)
def test_an_encoder_that_does_not_fit_the_weights(saved: Path, spec: dict[str, object]) -> None:
    edit(saved, encoder={**json.loads((saved / "model.json").read_text())["encoder"], **spec})
    refuses(saved, "do not belong together")


@pytest.mark.parametrize(
    "spec",
    [{"name": "gnc"}, {"surprise": 1}, {"layers": "2"}, {"hidden": 2**40}, {"hidden": True}],
)
def test_an_encoder_that_no_model_has(saved: Path, spec: dict[str, object]) -> None:
    edit(saved, encoder={**json.loads((saved / "model.json").read_text())["encoder"], **spec})
    refuses(saved, "damaged, encoder")


def test_one_class_too_few(saved: Path) -> None:
    edit(saved, classes=json.loads((saved / "model.json").read_text())["classes"][:-1])
    refuses(saved, "do not belong together")


def test_weights_that_are_no_safetensors_although_their_hash_is_right(saved: Path) -> None:
    weights_of(saved).write_bytes(b"hello, I am no weights file")
    edit(saved, sha256=hashlib.sha256(b"hello, I am no weights file").hexdigest())
    refuses(saved)


@pytest.mark.parametrize(
    "file",
    ["notes.txt", "weights-0123.safetensors", "model.json"],
    ids=["notes", "foreign weights", "foreign model.json"],
)
def test_saving_into_a_foreign_folder_is_refused_and_writes_nothing(
    tmp_path: Path, discovered, file: str
) -> None:
    (tmp_path / file).write_text('{"name": "somebody else\'s"}')
    (tmp_path / "weights-abcd.safetensors").write_text("somebody else's")
    before = content(tmp_path)
    with pytest.raises(StorageError, match=re.escape(str(tmp_path))):
        discovered.save(tmp_path)
    assert content(tmp_path) == before


def test_saving_onto_a_file_is_refused(tmp_path: Path, discovered) -> None:
    path = tmp_path / "model"
    path.write_text("mine")
    with pytest.raises(StorageError, match="is a file"):
        discovered.save(path)
    assert path.read_text() == "mine"


def test_saving_makes_the_folders_it_needs(tmp_path: Path, discovered) -> None:
    discovered.save(str(tmp_path / "a/b/c"))
    assert len(load_model(tmp_path / "a/b/c").classes) == 4


class FullDisk:
    """Stands in for os.fsync and fails from the n-th call on."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, handle: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failed_save_leaves_the_old_model_and_no_temporary_file(
    saved: Path, discovered, fitted, labelled, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", FullDisk(after))
        with pytest.raises(OSError, match="No space left"):
            fitted.save(saved)
    assert (
        load_model(saved).predict_proba(labelled.graph) == discovered.predict_proba(labelled.graph)
    ).all()
    assert not [
        name
        for name in content(saved)
        if not re.fullmatch(r"model\.json|weights-[0-9a-f]+\.safetensors", name)
    ]
    fitted.save(saved)
    assert len(load_model(saved).classes) == 2
    assert len(content(saved)) == 2


@pytest.mark.parametrize("after", [0, 1, 2])
def test_after_a_failed_first_save_one_can_try_again(
    tmp_path: Path, fitted, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    folder = tmp_path / "model"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", FullDisk(after))
        with pytest.raises(OSError, match="No space left"):
            fitted.save(folder)
    fitted.save(folder)
    assert set(content(folder)) == {"model.json", weights_of(folder).name}


def test_write_atomically_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "new/file"
    write_atomically(path, b"a long first content")
    write_atomically(path, b"short")
    assert path.read_bytes() == b"short"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_save_is_save_model(tmp_path: Path, fitted) -> None:
    fitted.save(tmp_path / "a")
    save_model(fitted, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_a_model_saved_before_classes_could_be_edited_loads(
    saved: Path, discovered: nova.Model, labelled
) -> None:
    edit(saved, columns=None, edits=None, version=1)
    loaded = load_model(saved)
    assert loaded.column_class_ids == (0, 1, 2, 3)
    assert loaded.edits == ()
    assert (loaded.predict_proba(labelled.graph) == discovered.predict_proba(labelled.graph)).all()


def test_columns_of_classes_that_are_not_there_are_damage(saved: Path) -> None:
    edit(saved, columns=[0, 1, 2, 7])
    refuses(saved, "do not belong together")


def test_the_digest_of_a_model_is_the_one_its_file_says(
    saved: Path, discovered: nova.Model
) -> None:
    assert (
        saving.weights_digest(discovered)
        == json.loads((saved / "model.json").read_text())["sha256"]
    )
    assert saving.weights_digest(load_model(saved)) == saving.weights_digest(discovered)


def without_memory(folder: Path) -> None:
    """A saved model as it was written before counts and cells were kept."""
    tensors = {
        key: tensor
        for key, tensor in load_file(weights_of(folder)).items()
        if key != "prototypes.count" and not key.startswith("cells.")
    }
    save_file(tensors, weights_of(folder))
    digest = hashlib.sha256(weights_of(folder).read_bytes()).hexdigest()
    edit(folder, version=1, sha256=digest)


def test_where_labelled_nodes_were_is_saved_and_loaded(tmp_path: Path, tasks) -> None:
    model = nova.fit(tasks[0])
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert torch.equal(loaded.memory.classes.count, model.memory.classes.count)
    assert model.cells is not None
    assert loaded.cells is not None
    assert loaded.cells.table.sum() > 0
    for name, tensor in vars(model.cells).items():
        assert torch.equal(getattr(loaded.cells, name), tensor)


def test_a_model_saved_before_cells_were_kept_discovers_in_a_mixture_and_says_it_cannot_count(
    tmp_path: Path, tasks
) -> None:
    old, new, _ = tasks
    nova.fit(old).save(tmp_path / "m")
    without_memory(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.cells is None
    mixed = nova.NewTask(new.graph, new.ids, new.num_new, mixed=True)
    assert len(nova.discover(loaded, mixed).classes) == len(loaded.classes) + new.num_new
    with pytest.raises(SettingError, match="in a mixture: fit it again, or give num_new"):
        nova.count_new(loaded, mixed)
    loaded.save(tmp_path / "again")
    again, before = (
        json.loads((tmp_path / name / "model.json").read_text()) for name in ("again", "m")
    )
    assert again["version"] == 1
    assert saving.weights_digest(loaded) == before["sha256"]


def test_a_stage_keeps_how_many_classes_were_counted(tmp_path: Path, tasks) -> None:
    old, new, _ = tasks
    model = nova.discover(nova.fit(old), nova.NewTask(new.graph, new.ids, None, mixed=True))
    model.save(tmp_path / "m")
    stage, loaded = model.stages[-1], load_model(tmp_path / "m").stages[-1]
    assert stage.count is not None
    assert loaded.count == stage.count
    assert loaded.mixed


def change_weights(folder: Path, **changes: torch.Tensor) -> None:
    """Replace tensors, with a hash that is right; `__` stands for a dot."""
    path = weights_of(folder)
    named = {name.replace("__", "."): tensor for name, tensor in changes.items()}
    content = save_tensors(load_tensors(path.read_bytes()) | named)
    path.write_bytes(content)
    edit(folder, sha256=hashlib.sha256(content).hexdigest())


@pytest.fixture
def prism(tmp_path: Path, tasks) -> Path:
    old, new, _ = tasks
    nova.discover(nova.fit(old), new).save(tmp_path / "prism")
    return tmp_path / "prism"


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("encoder.basis", lambda t: t * float("nan"), "numbers that cannot be used"),
        ("encoder.basis", lambda t: t + float("inf"), "numbers that cannot be used"),
        ("prototypes.dof", lambda t: t * 0, "numbers that cannot be used"),
        ("prototypes.rest", lambda t: t - 9, "numbers that cannot be used"),
        ("encoder.counts.spread", lambda t: -t, "numbers that cannot be used"),
        ("encoder.basis", lambda t: t[:, :-1].contiguous(), "encoder.basis has the shape"),
        ("encoder.shift", lambda t: t[:-1].contiguous(), r"encoder.shift has the shape \(6, "),
        ("prototypes.mean", lambda t: t[:-1].contiguous(), "prototypes.mean has the shape"),
        ("prototypes.factor", lambda t: t.double(), "factor has numbers of the type torch.float64"),
        ("cells.ranks", lambda t: t + 1000, "cells.ranks are not ranks of the encoder"),
        ("cells.table", lambda t: t[:, :1].contiguous(), "cells.table has the shape"),
        ("surprise.x" * 20, lambda t: torch.ones(1), None),
    ],
)
def test_weights_that_cannot_work_are_refused_by_one_sentence(
    prism: Path, name: str, change, sentence: str | None
) -> None:
    """The hash is right: somebody computed it again."""
    stored = load_tensors(weights_of(prism).read_bytes())
    change_weights(prism, **{name: change(stored.get(name))})
    if sentence is None:
        load_model(prism)  # tensors of no part are not read
        return
    refuses(prism, sentence)
    with pytest.raises(StorageError) as raised:
        load_model(prism)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_a_model_of_nodes_that_all_have_the_same_counts_is_loaded(tmp_path: Path) -> None:
    """The spread of these counts is infinite."""
    rng = np.random.default_rng(0)
    x = np.zeros((40, 12), dtype=np.float32)
    for i in range(40):
        x[i, rng.choice(6, 3, replace=False) + 6 * (i % 2)] = 1
    ring = np.stack([np.arange(40), (np.arange(40) + 2) % 40])
    graph = nova.Graph.of(x, ring, dense=False)
    labelled = nova.LabelledGraph(graph, np.arange(40) % 2, ("a", "b"))
    model = nova.fit(nova.split(labelled, [0], num_new=1, per_class=5)[0])
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert (again.predict_proba(graph) == model.predict_proba(graph)).all()
    stored = load_tensors(weights_of(tmp_path / "model").read_bytes())
    assert stored["encoder.counts.spread"].isinf().any()


def test_a_model_of_one_feature_is_loaded(tmp_path: Path) -> None:
    edges = np.stack([np.arange(40), np.roll(np.arange(40), 4)])
    graph = nova.Graph.of(np.ones((40, 1), dtype=np.float32), edges)
    old, _, _ = nova.split(nova.LabelledGraph(graph, np.arange(40) % 3, ("a", "b", "c")), [0, 1])
    model = nova.fit(old)
    model.save(tmp_path / "model")
    loaded = nova.load_model(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(graph), model.predict_proba(graph))


def test_a_head_for_no_new_class_is_damage() -> None:
    empty = {"weight": torch.zeros(0, 4), "bias": torch.zeros(0)}
    with pytest.raises(StorageError, match="are of different classes"):
        loading._check_novel(empty, 4)
    loading._check_novel({}, 4)
    loading._check_novel({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, 4)


def test_the_recipe_of_a_run_is_that_of_its_model_unless_the_model_has_one(
    discovered: nova.Model,
) -> None:
    """Earlier runs kept the recipe beside the model."""
    beside, inside = {"version": 1, "columns": []}, {"version": 2, "columns": []}
    signature = discovered.fit_signature
    assert signature is not None

    def recipe_of(own: object, given: object) -> object:
        known = None if own == "none" else replace(signature, recipe=own)
        model = replace(discovered, fit_signature=known)
        found = loading._with_recipe(model, given).fit_signature
        return None if found is None else found.recipe

    assert recipe_of(None, beside) == beside
    assert recipe_of(inside, beside) == inside
    assert recipe_of(inside, None) == inside
    assert recipe_of(None, None) is None
    assert recipe_of("none", beside) is None
