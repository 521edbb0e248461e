"""What a saved model shows of single nodes: attacks on the files, not on the interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import nodenova as nova
from nodenova.errors import SettingError, SplitError

DATA = nova.synthetic(nodes=150, classes=4, words=80, seed=2)
LONE = int(np.flatnonzero(DATA.y == 2)[0])
FEW = {"gcn": {"epochs": 20}, "prism": {}}


def labels(lone: int = 1) -> list[str | None]:
    """Two classes with half of their labels, one with `lone` labels, one without any."""
    y: list[str | None] = [None] * DATA.graph.num_nodes
    for c in (0, 1):
        for node in np.flatnonzero(DATA.y == c)[::2]:
            y[node] = "ab"[c]
    for node in np.flatnonzero(DATA.y == 2)[:lone]:
        y[node] = "lone"
    return y


def fitted(encoder: str, y: list[str | None], **settings: Any) -> nova.NodeDiscoverer:
    method = "prism" if encoder == "prism" else "frozen_kmeans"
    all_settings = {**FEW[encoder], **settings}
    found = nova.NodeDiscoverer(
        2, method=method, encoder=encoder, mixed=False, fit_settings=all_settings
    )
    return found.fit(DATA.graph, y)


def closest(model: nova.Model, folder: Path, node: int) -> float:
    """Highest correlation of a row of the saved weights, in any direction, with z of a node."""
    model.save(folder)
    z = model.embed(DATA.graph)[node]
    best = 0.0
    for tensor in load_file(next(folder.glob("*.safetensors"))).values():
        for axis in range(tensor.ndim):
            if tensor.shape[axis] == len(z):
                rows = np.moveaxis(tensor, axis, -1).reshape(-1, len(z)).astype(np.float64)
                rows = rows[rows.std(axis=1) > 0]
                best = max([best, *(float(np.corrcoef(row, z)[0, 1]) for row in rows)])
    return best


@pytest.mark.parametrize("encoder", ["prism", "gcn"])
def test_a_lone_node_is_in_the_model_unless_its_class_is_left_out(
    encoder: str, tmp_path: Path
) -> None:
    open_ = fitted(encoder, labels())
    assert closest(open_.model_, tmp_path / "open", LONE) > 0.999
    assert any(
        "which a saved model discloses" in note and "'lone'" in note for note in open_.notes_
    )
    closed = fitted(encoder, labels(), min_class_size=2)
    assert "lone" not in [*closed.classes_, *closed.model_.class_names]
    assert not any("discloses" in note for note in closed.notes_)
    assert closest(closed.model_, tmp_path / "closed", LONE) < 0.98
    assert closed.model_.stages[0].settings["min_class_size"] == 2


def test_leaving_a_class_out_is_as_if_it_had_no_label(tmp_path: Path) -> None:
    y = labels(lone=2)
    closed = fitted("prism", y, min_class_size=3)
    without = fitted("prism", [None if c == "lone" else c for c in y])
    assert closed.labels_.tolist() == without.labels_.tolist()
    assert np.array_equal(closed.predict_proba(), without.predict_proba())
    assert any("treated as unlabelled: 'lone'" in note for note in closed.notes_)
    closed.report(tmp_path / "run")
    assert b"lone" not in (tmp_path / "run" / "predictions.csv").read_bytes()


def test_classes_of_ordinary_size_are_as_before() -> None:
    y = [None if c == "lone" else c for c in labels()]
    plain, limited = fitted("prism", y), fitted("prism", y, min_class_size=3)
    assert plain.notes_ == limited.notes_
    assert np.array_equal(plain.predict_proba(), limited.predict_proba())
    assert "min_class_size" not in plain.model_.stages[0].settings


def test_the_limit_counts_training_nodes() -> None:
    """One of five labelled nodes is for validation: four are left."""
    y = labels(lone=5)
    assert "lone" in fitted("prism", y, min_class_size=4).classes_
    assert "lone" not in fitted("prism", y, min_class_size=5).classes_


def test_too_high_a_limit_and_a_wrong_one_are_refused() -> None:
    with pytest.raises(SplitError, match="min_class_size=1000 leaves 0 of 3 known classes"):
        fitted("prism", labels(), min_class_size=1000)
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(SettingError, match="min_class_size must be a whole number"):
            fitted("prism", labels(), min_class_size=wrong)


def test_fit_refuses_a_class_that_is_too_small() -> None:
    old, _, _ = nova.split(DATA, old=[0, 1])
    size = int(min(np.bincount(old.train_y)))
    nova.fit(old, min_class_size=size)
    with pytest.raises(SettingError, match=rf"fewer than min_class_size={size + 1}: label more"):
        nova.fit(old, min_class_size=size + 1)
