"""How steadily classes are found: kept with the stage, saved with the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.encoders.prism.lda import times_found


def test_a_group_is_met_where_half_of_either_is_in_both() -> None:
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, -1, -1])
    half = np.array([0, 0, 1, 1, 1, 1, 1, 1, -1, -1])
    apart = np.array([1, 1, 1, 0, 0, 0, 0, 1, 0, 0])
    assert times_found(groups, [groups, half, apart], 2) == ((2, 3), (2, 3))
    assert times_found(groups, [], 2) == ((0, 0), (0, 0))


@pytest.mark.parametrize("mixed", [False, True])
def test_a_stage_tells_in_how_many_groupings_each_class_was_met(
    labelled: nova.LabelledGraph, tmp_path: Path, mixed: bool
) -> None:
    old, new, _ = nova.split(labelled, [0, 1])
    task = nova.NewTask(new.graph, new.ids, new.num_new, mixed=mixed)
    model = nova.discover(nova.fit(old), task)
    found = model.stages[-1].found_in
    assert sorted(found) == [c.id for c in model.classes if c.is_new]
    assert all(0 <= times <= of <= 12 for times, of in found.values())
    assert max(times for times, _ in found.values()) >= 6  # planted classes are met again
    model.save(tmp_path / "model")
    assert nova.load_model(tmp_path / "model").stages[-1].found_in == found
    plain = nova.discover(nova.fit(old), task, nova.Prism(refit=False))
    assert set(plain.stages[-1].found_in.values()) == {(0, 0)}
