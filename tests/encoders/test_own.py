"""Encoders of one's own: what they are given, what is refused, and what a saved model holds."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, GCNConv, GraphSAGE

import nodenova as nova
from nodenova.encoders import registry
from nodenova.encoders.own import OwnEncoder
from nodenova.encoders.registry import encoder_kind, register_encoder, unused_edge_weights
from nodenova.errors import GraphError, NumericsError, SettingError, StorageError
from nodenova.methods import METHODS
from nodenova.nn.seeding import repeatable
from nodenova.supervised import LABELLED
from nodenova.testing import find_leak
from tests.encoders.own import Half, Jumping, Still, Weighted, of_page

MINE = of_page("mine.py")
RUNS = "\nwith open('ran', 'a') as file:\n    file.write('x')\n"


def small() -> nova.LabelledGraph:
    return nova.synthetic(nodes=160, classes=5, words=80, seed=3)


def known() -> nova.OldTask:
    return nova.split(small(), [0, 1, 2])[0]


def initialized(encoder: Any, graph: nova.Graph, **settings: Any) -> OwnEncoder:
    with repeatable(0, "fit"):
        g = encoder_kind(encoder).fresh(graph, settings)
    assert isinstance(g, OwnEncoder)
    return g


# A method of each kind, and every method in the slow tests.
SOME = ("sword", "restune", "prism", "twp", "gem", "oracle")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in SOME else pytest.mark.slow)
    for name in (*METHODS, *LABELLED)
])  # fmt: skip
@pytest.mark.parametrize("encoder", [Jumping, Still, Half])
def test_every_method_works_on_it_and_is_saved_bit_for_bit(
    encoder: type[nn.Module], name: str, tmp_path: Path
) -> None:
    labelled = small()
    model = nova.fit(known(), encoder, epochs=5)
    kind = {**METHODS, **LABELLED}[name]
    method = kind(**{"epochs": 3} if "epochs" in {f.name for f in fields(kind)} else {})
    if name in LABELLED:
        task = nova.labelled_new_task(labelled, [0, 1, 2])
        grown = nova.discover_supervised(model, task, method)
    else:
        grown = nova.discover(model, nova.split(labelled, [0, 1, 2])[1], method)
    grown.save(tmp_path / "m")
    again = nova.load_model(tmp_path / "m")
    p = grown.predict_proba(labelled.graph)
    assert p.shape == (160, 5)
    assert np.array_equal(p, again.predict_proba(labelled.graph))


@pytest.mark.parametrize("method", [nova.Sword(epochs=15), nova.FrozenKMeans(), nova.Prism()])
def test_scrambled_labels_of_new_nodes_change_nothing(method: nova.Method) -> None:
    assert find_leak(method, small(), [0, 1, 2], Jumping) is None


def test_a_module_of_pytorch_geometric_is_an_encoder_as_it_is() -> None:
    graph = small().graph
    g = initialized(GCNConv, graph, hidden=7)
    x = torch.from_numpy(graph.x.toarray()).float()
    x = x / x.sum(dim=1, keepdim=True)
    with torch.no_grad():
        expected = g.module(x, torch.from_numpy(graph.edge_index))
        assert torch.equal(g(graph), expected)
    with pytest.raises(SettingError, match="GraphSAGE: every setting needs a default, num_layers"):
        nova.fit(known(), GraphSAGE)
    settings = encoder_kind(GATv2Conv).settings
    assert settings["heads"] == 1
    assert "edge_dim" not in settings  # None: neither a number nor a word
    with pytest.raises(SettingError, match=r"GATv2Conv: forward returned .*\(160, 32\), not numb"):
        nova.fit(known(), GATv2Conv, heads=2)


def test_sparse_features_weights_and_vectors_are_given_as_documented() -> None:
    rng = np.random.default_rng(0)
    base = small().graph
    vectors = rng.standard_normal((160, 4)) * 3 + 5
    vectors[:, 3] = 2.0  # the same at all nodes
    weight = np.ones(base.num_edges)
    pair = (base.edge_index[0] + base.edge_index[1]) % 5
    graph = nova.Graph.of(base.x, base.edge_index, edge_weight=weight + pair, vectors=vectors)
    g = initialized(Weighted, graph)
    seen: list[Any] = []
    g.module.register_forward_hook(
        lambda _, given, options, z: seen.append((given, options)), with_kwargs=True
    )
    g(graph)
    (x, edges), options = seen[0]
    assert x.shape == (160, base.num_features + 4)
    words = base.x.toarray()
    assert np.allclose(x[:, :-4], words / words.sum(axis=1, keepdims=True), atol=1e-6)
    beside = x[:, -4:]
    assert torch.allclose(beside.mean(dim=0), torch.zeros(4), atol=1e-5)
    assert torch.allclose(beside[:, :3].var(dim=0, unbiased=False), torch.tensor(0.25), atol=1e-4)
    assert (beside[:, 3] == 0).all()
    assert np.array_equal(edges, graph.edge_index)
    assert np.array_equal(options["edge_weight"], graph.edge_weight)
    assert unused_edge_weights(Weighted, graph) == ()
    assert "Still does not use edge weights" in unused_edge_weights(Still, graph)[0]
    with pytest.raises(GraphError, match=r"vectors of 4 numbers.*this graph has none"):
        g(base)


def test_weights_that_it_froze_stay_and_others_are_trained() -> None:
    first = initialized(Half, small().graph, hidden=16)
    model = nova.fit(known(), Half, epochs=5)
    task = nova.split(small(), [0, 1, 2])[1]
    grown = nova.discover(model, task, nova.Sword(epochs=3))
    for one in (model, grown):
        state = one.frozen_encoder().state_dict()
        assert torch.equal(state["module.body.weight"], first.state_dict()["module.body.weight"])
        assert not torch.equal(state["module.top.weight"], first.state_dict()["module.top.weight"])
    assert {n for n, p in model.encoder().named_parameters() if not p.requires_grad} == {
        "module.body.weight", "module.body.bias",
    }  # fmt: skip


def test_settings_are_those_of_the_class_and_of_training() -> None:
    model = nova.fit(known(), Jumping, layers=2, hidden=8, epochs=2)
    stored = model.stages[0].settings
    assert (stored["layers"], stored["hidden"], stored["epochs"]) == (2, 8, 2)
    with pytest.raises(SettingError, match=r"unknown setting of fit 'heads'; known: .*layers"):
        nova.fit(known(), Jumping, heads=2)
    with pytest.raises(SettingError, match=r"layers must be int, it is 2\.5"):
        nova.fit(known(), Jumping, layers=2.5)
    with pytest.raises(SettingError, match="hidden must lie in"):
        nova.fit(known(), Jumping, hidden=0)


class Taken(Still):
    def __init__(self, num_features: int, hidden: int, lr: float = 0.1) -> None:
        super().__init__(num_features, hidden)


class Bare(Still):
    def __init__(self, num_features: int, hidden: int, depth: int) -> None:
        super().__init__(num_features, hidden)


class Small(nn.Module):
    def __init__(self, num_features: int) -> None:
        super().__init__()


class Blind(nn.Module):
    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class Broken(Still):
    def __init__(self, num_features: int, hidden: int) -> None:
        raise RuntimeError("no such file")


class Spoiling(Still):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x.mul_(2.0)[:, : self.hidden]


class Wide(Still):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x


class Odd(Still):
    def get_extra_state(self) -> str:
        return "a text"


@pytest.mark.parametrize(
    ("encoder", "sentence"),
    [
        (Taken, "Taken: lr is a setting of phase 1; give yours another name"),
        (Bare, "Bare: every setting needs a default, depth has none"),
        (Small, "Small is not an encoder: its constructor must take the number of features and"),
        (Blind, r"Blind is not an encoder: it needs a function forward\(self, x, edge_index\)"),
        (Broken, r"Broken\(80, 16, ...\) failed \(RuntimeError: no such file\)"),
        (Spoiling, "Spoiling: forward changes x in place"),
        (Wide, r"Wide: forward returned torch.float32 \(160, 80\), not numbers of .* \(160, 16\)"),
        (Odd, "Odd: _extra_state in its state is no tensor"),
        (dict, "dict is not an encoder: it must be a torch.nn.Module"),
        (Still(3, 2), "encoder must be str | type"),
        ("nope", "unknown encoder 'nope'; known: "),
        ("none.py:Net", r"none.py: cannot be read \(No such file or directory\)"),
        ("mine.py", "an encoder in a file is named path/to/mine.py:Mine, not 'mine.py'"),
    ],
)
def test_what_is_not_an_encoder_is_refused(encoder: Any, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        nova.fit(known(), encoder, epochs=1)


def test_names_of_nodenova_are_taken_and_an_instance_is_no_class() -> None:
    with pytest.raises(SettingError, match="gcn is the name of an encoder of nodenova"):
        register_encoder(type("gcn", (Still,), {}))
    with pytest.raises(SettingError, match="give the class, not an instance"):
        register_encoder(Still(3, 2))  # type: ignore[arg-type]
    assert register_encoder(Still) == "Still"
    assert nova.fit(known(), "Still", epochs=1).frozen_encoder().spec.name == "Still"


def test_features_that_are_too_many_for_one_table_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodenova.encoders.own.MAX_DENSE", 160 * 80 - 1)
    with pytest.raises(SettingError, match="one table of 12,800 numbers, at most 12,799 are"):
        nova.fit(known(), Still, epochs=1)


# Saved models.


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model on an encoder from a file, in a folder."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE + RUNS)
    nova.fit(known(), "mine.py:Net", epochs=3, layers=2).save("model")
    return tmp_path / "model"


def forget() -> None:
    registry._OWN.clear()


def test_a_model_holds_the_name_of_the_class_and_runs_nothing(saved: Path) -> None:
    document = json.loads((saved / "model.json").read_text())
    assert document["version"] == 7
    assert document["encoder"] == {
        "name": "own", "class": "Net", "num_features": 80, "hidden": 16, "row_normalize": True,
        "residual": False, "settings": {"layers": 2},
    }  # fmt: skip
    forget()
    runs = Path("ran").read_text()
    sentence = "its encoder is the class 'Net' of your own.*register_encoder.*--import"
    with pytest.raises(StorageError, match=sentence):
        nova.load_model(saved)
    # A name that is a path is a name: no file is run.
    document["encoder"]["class"] = "mine.py:Net"
    (saved / "model.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match=r"its encoder is the class 'mine\.py:Net' of your own"):
        nova.load_model(saved)
    assert Path("ran").read_text() == runs


@pytest.mark.slow
def test_another_process_loads_it_when_it_is_given_the_class(saved: Path) -> None:
    code = (
        "import nodenova as nova; nova.register_encoder('mine.py:Net'); "
        "print(nova.load_model('model'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Model(Net, 3 classes, 0 of them discovered)\n"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (".relu()", ".tanh()", "Net computes another z than when the model was saved"),
        ("layers * hidden, hidden", "layers * hidden + 1, hidden", "does not fit"),
        ("layers: int = 3", "depth: int = 3", "unknown setting of Net 'layers'"),
        ("self.joint =", "self.other = nn.Linear(2, 2); self.joint =", "other.* missing"),
    ],
)
def test_a_class_that_has_changed_is_noticed(
    saved: Path, before: str, after: str, sentence: str
) -> None:
    Path("mine.py").write_text(MINE.replace(before, after))
    register_encoder("mine.py:Net")
    with pytest.raises(StorageError, match=sentence):
        nova.load_model(saved)
    Path("mine.py").write_text("# moved to the top\n" + MINE)  # the text may change
    register_encoder("mine.py:Net")
    assert len(nova.load_model(saved).classes) == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [("hidden", 70000), ("settings", {"layers": "two"}), ("settings", {"x": 1}), ("settings", [1]),
     ("num_features", -1), ("residual", "no"), ("class", 3), ("vector_size", 5), ("hidden", 9)],
)  # fmt: skip
def test_a_damaged_spec_is_refused(saved: Path, key: str, value: object) -> None:
    document = json.loads((saved / "model.json").read_text())
    document["encoder"][key] = value
    (saved / "model.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match="model"):
        nova.load_model(saved)


def test_the_weights_are_safetensors_with_buffers_of_any_type(tmp_path: Path) -> None:
    model = nova.fit(known(), Half, epochs=2)
    model.save(tmp_path)
    tensors = load_file(next(tmp_path.glob("*.safetensors")))
    assert tensors["encoder.module.norm.num_batches_tracked"].dtype == torch.int64
    assert tensors["probe.z"].shape == (9, 16)
    assert len(nova.load_model(tmp_path).classes) == 3


def test_an_estimator_takes_the_class_and_names_it() -> None:
    labelled = small()
    y = np.where(labelled.y < 3, labelled.y, -1)
    found = nova.NodeDiscoverer(
        num_new=2, method=nova.Sword(epochs=3), encoder=Jumping, fit_settings={"epochs": 3}
    ).fit(labelled.graph, y)
    assert found.run_.facts["Method"] == "sword on Net"
    assert len(found.classes_) == 5
    with pytest.raises(SettingError, match="on the prism encoder only, not on Net: give num_new"):
        nova.NodeDiscoverer(method="sword", encoder=Jumping).fit(labelled.graph, y)


class Divided(nn.Module):
    """A mean over neighbors that divides by zero where a node has none: in every pass, or late."""

    def __init__(self, num_features: int, hidden: int, late: bool = False) -> None:
        super().__init__()
        self.layer, self.late = nn.Linear(num_features, hidden), late

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        total = torch.zeros_like(x).index_add(0, target, x[source])
        degree = torch.zeros(len(x)).index_add(0, target, torch.ones(len(target)))
        if self.late and self.training:
            degree = degree.clamp(min=1)
        return self.layer(x + total / degree[:, None])


@pytest.mark.parametrize(
    ("late", "sentence"),
    [
        (False, "phase 1: .* became NaN or infinite in epoch 1"),
        (True, "phase 2: .* are not finite"),
    ],
)
def test_nan_of_an_own_encoder_never_leaves(late: bool, sentence: str) -> None:
    data = nova.synthetic(nodes=80, classes=4, words=40)
    last = np.flatnonzero(data.y > 1)[-1]
    kept = (data.graph.edge_index != last).all(axis=0)  # a node of a new class loses its edges
    lone = nova.Graph.of(data.graph.x, data.graph.edge_index[:, kept])
    old, new, _ = nova.split(nova.LabelledGraph(lone, data.y, data.class_names), [0, 1])

    def probabilities() -> np.ndarray:
        model = nova.fit(old, Divided, late=late, epochs=2, hidden=4)
        return nova.discover(model, new, nova.FrozenKMeans()).predict_proba(lone)

    with pytest.raises(NumericsError, match=sentence):
        probabilities()
