"""z of many nodes: in a file it has the bits that it has in memory."""

from __future__ import annotations

import pytest
import torch

import nodenova as nova
from nodenova.nn import wide

CPU = torch.device("cpu")


def test_a_file_holds_the_same_bits_as_memory(
    labelled: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, _ = nova.split(labelled, [0, 1])
    model = nova.discover(nova.fit(old), new)
    in_memory, p = model.embed_and_predict(labelled.graph)
    monkeypatch.setattr(wide, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(wide, "ROWS", 7)
    opened = []
    plain = wide.tempfile.TemporaryFile
    monkeypatch.setattr(
        wide.tempfile, "TemporaryFile", lambda **given: opened.append(given) or plain(**given)
    )
    in_file, p_again = model.embed_and_predict(labelled.graph)
    assert len(opened) == 1
    assert (in_file == in_memory).all()
    assert (p_again == p).all()


def test_views_of_any_width_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    views = [torch.rand(10, 3), torch.rand(10, 1), torch.rand(10, 4)]
    for most in (10**9, 0):
        monkeypatch.setattr(wide, "MAX_IN_MEMORY", most)
        assert torch.equal(wide.side_by_side(views, (10, 8), CPU), torch.cat(views, dim=1))
