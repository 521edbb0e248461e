"""Maps of test nodes: laid out once, drawn the same from what was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodenova.bench import embeddings
from nodenova.bench.embeddings import layout_of, read_map
from nodenova.bench.figures import figures_of
from nodenova.errors import StorageError
from nodenova.report.tsne import positions
from tests.bench.rows import row

ROWS = [row(seed=6, map="sword.npz"), row("dtc", 6, map="dtc.npz")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    for name in ("sword", "dtc"):
        write(tmp_path / f"{name}.npz", z=draw.normal(size=(40, 4)).astype(np.float32))
    return tmp_path


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The embeddings that t-SNE is asked to lay out."""
    seen: list[np.ndarray] = []

    def counted(z: np.ndarray) -> np.ndarray:
        seen.append(z)
        return positions(z)

    monkeypatch.setattr(embeddings, "positions", counted)
    return seen


def write(path: Path, **arrays: Any) -> None:
    features = np.random.default_rng(1).normal(size=(40, 5))
    np.savez(path, **{"y": np.arange(40) % 3, "features": features} | arrays)


def test_the_second_time_nothing_is_laid_out_and_the_picture_is_the_same(
    folder: Path, laid_out: list[np.ndarray]
) -> None:
    first = figures_of("tsne", ROWS, folder)
    assert [figure.title.split(";")[0] for figure in first] == ["original features", "SWORD", "DTC"]
    assert len(laid_out) == 3
    assert figures_of("tsne", ROWS, folder) == first
    assert len(laid_out) == 3
    assert sorted(path.name for path in folder.glob("*.layout.npz")) == [
        "dtc.layout.npz",
        "sword.layout.npz",
    ]


def test_what_is_kept_is_the_layout_bit_for_bit(folder: Path) -> None:
    z = read_map(folder / "sword.npz")["z"]
    expected = positions(z.astype(np.float64))
    for _ in range(2):
        found = layout_of(folder / "sword.npz", z, "z")
        assert found is not None
        assert found.tobytes() == expected.tobytes()


def test_another_map_under_the_same_name_is_laid_out_anew(
    folder: Path, laid_out: list[np.ndarray]
) -> None:
    before = figures_of("tsne", ROWS, folder)
    write(folder / "sword.npz", z=np.random.default_rng(5).normal(size=(40, 4)))
    after = figures_of("tsne", ROWS, folder)
    assert len(laid_out) == 3 + 2  # its embeddings and its features; DTC's are as they were
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, False, True]


def test_another_way_of_laying_out_is_another_layout(
    folder: Path, laid_out: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures_of("tsne", ROWS, folder)
    monkeypatch.setattr(embeddings, "LAYOUT_VERSION", 99)
    figures_of("tsne", ROWS, folder)
    assert len(laid_out) == 6


@pytest.mark.parametrize("content", [b"", b"no", None])
def test_a_damaged_layout_is_made_anew(
    folder: Path, laid_out: list[np.ndarray], content: bytes | None
) -> None:
    first, kept = figures_of("tsne", ROWS, folder), folder / "sword.layout.npz"
    kept.write_bytes(kept.read_bytes()[:-40] if content is None else content)
    assert figures_of("tsne", ROWS, folder) == first
    assert len(laid_out) == 5
    assert figures_of("tsne", ROWS, folder) == first
    assert len(laid_out) == 5


def test_a_folder_that_cannot_be_written_to_is_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes, *, follow: bool) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(embeddings, "write_atomically", full)
    assert len(figures_of("tsne", ROWS, folder)) == 3
    assert not list(folder.glob("*.layout.npz"))


def test_embeddings_that_do_not_differ_have_no_layout(folder: Path) -> None:
    assert layout_of(folder / "sword.npz", np.zeros((40, 4)), "z") is None


@pytest.mark.parametrize(("content", "said"), [(b"", "not a readable npz"), (None, "z is miss")])
def test_a_damaged_map_is_named(folder: Path, content: bytes | None, said: str) -> None:
    path = folder / "sword.npz"
    if content is None:
        np.savez(path, y=np.arange(3))
    else:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"sword\.npz: .*{said}"):
        read_map(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("predicted", np.zeros((2, 1), dtype=int)),
        ("predicted", np.array(["a", "b"])),
        ("node_ids", np.array([[1], [2]])),
    ],
)
def test_arrays_of_a_map_that_do_not_fit_are_named(
    tmp_path: Path, name: str, array: np.ndarray
) -> None:
    fine = {"z": np.eye(2), "y": np.array([0, 1])}
    np.savez(tmp_path / "map.npz", **(fine | {name: array}))
    with pytest.raises(StorageError, match=f"damaged, {name} is"):
        read_map(tmp_path / "map.npz")
