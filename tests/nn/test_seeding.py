"""Random numbers, threads and memory: the same results for any number of threads."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.nn import seeding
from nodenova.nn.seeding import fixed_sample, fixed_threads, num_threads, threads_by_rows
from nodenova.nn.sparse import gcn_operator


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, products are divided."""
    monkeypatch.setattr(seeding, "MIN_DIVIDED", 0)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("encoder", ["prism", "gcn"])
def test_models_do_not_depend_on_the_number_of_threads(
    divided: None, threads: int, encoder: str
) -> None:
    labelled = nova.synthetic(nodes=400, classes=4, words=150, seed=1)
    old, new, _ = nova.split(labelled, old=[0, 1])
    settings = {} if encoder == "prism" else {"epochs": 3}
    said = []
    for number in (1, threads):
        model = nova.fit(old, encoder, threads=number, **settings)
        grown = nova.discover(model, new, nova.Prism(restarts=2), threads=number)
        with fixed_threads(number):
            said.append((grown.embed(labelled.graph), grown.predict_proba(labelled.graph)))
    for one, several in zip(*said, strict=True):
        assert np.array_equal(one, several)


def test_a_product_runs_on_all_threads_and_what_is_around_it_on_one(
    divided: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    plain = torch.Tensor.__matmul__

    def noted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_num_threads())
        return plain(a, b)

    graph = nova.synthetic(nodes=50, classes=2, words=20).graph
    smooth, columns = gcn_operator(graph, torch.device("cpu")), torch.ones(50, 2)
    before = torch.get_num_threads()
    monkeypatch.setattr(torch.Tensor, "__matmul__", noted)
    with fixed_threads(3):
        smooth @ columns  # by rows
        columns.t() @ columns  # a sum over nodes
    assert seen == [3, 1]
    assert torch.get_num_threads() == before


def test_small_products_wake_no_thread() -> None:
    with fixed_threads(3):
        with threads_by_rows(seeding.MIN_DIVIDED - 1):
            assert torch.get_num_threads() == 1
        with threads_by_rows(seeding.MIN_DIVIDED):
            assert torch.get_num_threads() == 3


def test_auto_is_what_the_block_around_has_and_else_all_cores_that_may_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert num_threads("auto") >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert num_threads("auto") == 1
    with fixed_threads(5):
        assert num_threads("auto") == 5


@pytest.mark.parametrize("threads", [0, -1, True, "all", 1.5])
def test_what_is_no_number_of_threads_is_refused(threads: object) -> None:
    with pytest.raises(SettingError, match="whole number from 1 on"):
        num_threads(threads)  # type: ignore[arg-type]


def test_some_nodes_do_not_fall_in_step_with_their_order() -> None:
    """Classes that come in turn are all among them; every so-manieth node would miss most."""
    torch.manual_seed(3)
    before = torch.get_rng_state()
    some = fixed_sample(2000, 500)
    assert torch.equal(torch.get_rng_state(), before)  # no other draw moves
    assert isinstance(some, torch.Tensor)
    assert torch.equal(some, fixed_sample(2000, 500))
    assert (some.diff() > 0).all()
    for period in (2, 4, 20):
        count = torch.bincount(some % period, minlength=period)
        assert (count > 0.6 * 500 / period).all()
    assert fixed_sample(500, 500) == slice(None)


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
