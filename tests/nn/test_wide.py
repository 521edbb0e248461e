"""z of many nodes: in a file it has the bits that it has in memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import nodenova as nova
from nodenova.nn import seeding

CPU = torch.device("cpu")


def test_a_file_holds_the_same_bits_as_memory(
    labelled: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, _ = nova.split(labelled, [0, 1])
    model = nova.discover(nova.fit(old), new)
    in_memory, p = model.embed_and_predict(labelled.graph)
    monkeypatch.setattr(seeding, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(seeding, "ROWS", 7)
    opened = []
    plain = seeding.tempfile.TemporaryFile
    monkeypatch.setattr(
        seeding.tempfile, "TemporaryFile", lambda **given: opened.append(given) or plain(**given)
    )
    in_file, p_again = model.embed_and_predict(labelled.graph)
    assert len(opened) == 1
    assert (in_file == in_memory).all()
    assert (p_again == p).all()


def test_views_of_any_width_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    views = [torch.rand(10, 3), torch.rand(10, 1), torch.rand(10, 4)]
    for most in (10**9, 0):
        monkeypatch.setattr(seeding, "MAX_IN_MEMORY", most)
        assert torch.equal(seeding.join_views(views, (10, 8), CPU), torch.cat(views, dim=1))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_freed_memory_is_used_again_and_given_back_at_the_end() -> None:
    code = """
import resource, torch
from nodenova.nn.seeding import reuse_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.empty(2**23).fill_(1)  # 32 MiB, 8,192 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(open("/proc/self/statm").read().split()[1])

torch.empty(2**24)
apart = faults()
with reuse_freed_memory():
    faults()  # until there is a free piece of the right size
    kept = faults()
    held = resident()
print(apart, kept, held - resident(), faults())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    apart, kept, given_back, afterwards = map(int, done.stdout.split())
    if seeding._of_glibc("mallopt") is None:
        pytest.skip("the C library is another one")
    assert kept < apart / 10
    assert given_back > 8_000
    assert afterwards > kept


def test_where_the_c_library_is_another_one_nothing_is_asked_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeding, "_of_glibc", lambda name: None)
    with seeding.reuse_freed_memory():
        seeding.release_freed_memory()


def test_what_is_raised_within_is_raised_and_memory_is_as_usual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[tuple[int, ...]] = []
    monkeypatch.setattr(seeding, "_of_glibc", lambda name: lambda *given: said.append(given))
    with pytest.raises(ZeroDivisionError), seeding.reuse_freed_memory():
        raise ZeroDivisionError
    assert said == [*seeding.KEEP.items(), *seeding.DEFAULT.items(), (0,)]
