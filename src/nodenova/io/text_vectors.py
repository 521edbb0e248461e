"""Texts as vectors: by a language model, by a function, or ready made in a file.

They stand beside the words of the same texts and do not replace them: classes are named by words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nodenova.errors import GraphError, SettingError
from nodenova.graph.parts import vectors_of
from nodenova.io.language_model import LanguageModel
from nodenova.io.tables import Progress, clipped, is_missing

TextVectors: TypeAlias = "str | PathLike[str] | np.ndarray | Callable[[list[str]], Any]"
FILES = (".npy", ".npz")
OPTION = "text_vectors (--text-vectors)"


@dataclass(frozen=True)
class VectorSource:
    """Where the vectors of a graph came from, so that later ones are made alike.

    Attributes:
        kind: "model", "function" or "file".
        name: Of the model's folder, the function or the file; no path.
        width: How many numbers a vector has.
        fingerprint: Of a model; "" of others.
    """

    kind: str
    name: str
    width: int
    fingerprint: str = ""

    def check(self, other: VectorSource) -> None:
        """Refuse vectors that are not of the same kind of thing as these.

        Args:
            other: Where the later ones came from.

        Raises:
            SettingError: They have another width, or are of another model.
        """
        if other.width != self.width:
            raise SettingError(
                f"{OPTION}: {other.name} gives vectors of {other.width} numbers, the model was "
                f"made with vectors of {self.width} ({self.name})"
            )
        if self.fingerprint and other.fingerprint and self.fingerprint != other.fingerprint:
            raise SettingError(
                f"{OPTION}: {other.name} ({other.fingerprint}) is another language model than "
                f"{self.name} ({self.fingerprint}), by which the vectors were made"
            )


def opened_vectors(given: TextVectors | None) -> TextVectors | LanguageModel | None:
    """What --text-vectors names, checked as far as it can be before tables are read.

    Raises:
        SettingError: It is nothing that gives vectors.
    """
    if given is None or callable(given) or isinstance(given, np.ndarray):
        return given
    if not isinstance(given, (str, PathLike)):
        raise SettingError(
            f"{OPTION} is a folder, a file, an array or a function, not {type(given).__name__}"
        )
    path = Path(given)
    if path.suffix.lower() not in FILES:
        return LanguageModel(path)
    if not path.is_file():
        raise SettingError(f"{OPTION}: {path}: no such file")
    return path


def check_later(given: object, known: VectorSource | None, source: str) -> None:
    """Refuse vectors where an earlier table had none, and none where it had some.

    Args:
        given: What --text-vectors names, if anything.
        known: Where the vectors of the earlier table came from, if it had some.
        source: What messages call the later table.

    Raises:
        SettingError: It is so.
    """
    if known is None and given is not None:
        raise SettingError(f"{OPTION}: the features were learned without vectors of texts")
    if known is not None and given is None:
        raise SettingError(
            f"{source}: the features were learned with vectors of texts ({known.name}, "
            f"{known.width} numbers): give {OPTION}"
        )


def read_vectors(
    given: TextVectors | LanguageModel,
    texts: Callable[[], Sequence[str]] | None,
    ids: Sequence[Any],
    source: str,
    notes: list[str],
    progress: Progress,
) -> tuple[np.ndarray, VectorSource]:
    """Give the nodes of a table vectors of their texts.

    Args:
        given: What `opened_vectors` gave.
        texts: Gives (N,) the text of each node; None where there is none to read.
        ids: (N,) of the nodes.
        source: What messages call the table of nodes.
        notes: Gets a sentence on what was done.
        progress: Called with what is being done and which share of it is done.

    Returns:
        (N, k) float32, and where they came from.

    Raises:
        SettingError: There are no texts to read.
        GraphError: The vectors do not fit the nodes.
    """
    if isinstance(given, (str, PathLike, np.ndarray)):
        found, name = _of_file(given, ids, source, notes)
        vectors = _checked(found, len(ids), name)
        notes.append(f"{source}: vectors of {vectors.shape[1]} numbers from {name}")
        return vectors, VectorSource("file", name, vectors.shape[1])
    if texts is None:
        raise SettingError(
            f"{OPTION}: {source} has no texts to read: name a text column "
            "(text_columns, --text-column), or give a .npy file"
        )
    told = list(texts())
    empty = np.array([is_missing(text.strip()) for text in told])
    if empty.all():
        raise GraphError(f"{source}: no node has a text that could become a vector")
    read = [text for text, is_empty in zip(told, empty, strict=True) if not is_empty]
    if isinstance(given, LanguageModel):
        name, made = given.name, given.encode(read, progress)
    else:
        name = getattr(given, "__name__", type(given).__name__)
        made = given(read)
    vectors = _checked(made, len(read), name)
    # Nothing is said where nothing is written: such a node stands in the middle of the others.
    whole = np.empty((len(told), vectors.shape[1]), dtype=np.float32)
    whole[~empty], whole[empty] = vectors, vectors.mean(axis=0)
    said = f"{source}: texts became vectors of {whole.shape[1]} numbers by {name}, beside words"
    notes.append(said + (f"; {int(empty.sum()):,} nodes without a text" if empty.any() else ""))
    if isinstance(given, LanguageModel):
        return whole, VectorSource("model", name, whole.shape[1], given.fingerprint())
    return whole, VectorSource("function", name, whole.shape[1])


def _of_file(
    given: str | PathLike[str] | np.ndarray, ids: Sequence[Any], source: str, notes: list[str]
) -> tuple[Any, str]:
    """Rows in the order of the nodes, and what messages call them."""
    if isinstance(given, np.ndarray):
        found, name = given, "text_vectors"
    else:
        path = Path(given)
        name = path.name
        try:
            content = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise GraphError(f"{name}: not a readable file of arrays ({error})") from None
        if isinstance(content, np.lib.npyio.NpzFile):
            with content:
                return _by_id(content, ids, name, source, notes), name
        found = content
    if len(found.shape) == 2 and len(found) != len(ids):
        raise GraphError(
            f"{name}: {len(found):,} rows for {len(ids):,} nodes of {source}: there is a row for "
            "each node in the order of the table, or an npz file with ids and vectors"
        )
    return found, name


def _by_id(
    content: Mapping[str, np.ndarray], ids: Sequence[Any], name: str, source: str, notes: list[str]
) -> np.ndarray:
    try:
        known, vectors = content["ids"], content["vectors"]
    except KeyError:
        raise GraphError(f"{name}: has no arrays ids and vectors") from None
    except ValueError as error:
        raise GraphError(f"{name}: not a readable file of arrays ({error})") from None
    if len(known) != len(vectors):
        raise GraphError(f"{name}: {len(known):,} ids for {len(vectors):,} vectors")
    row = {str(node).strip(): number for number, node in enumerate(known.tolist())}
    lacking = [node for node in ids if str(node) not in row]
    if lacking:
        raise GraphError(
            f"{name}: {len(lacking):,} nodes of {source} have no vector, "
            f"first: {clipped(str(lacking[0]))}"
        )
    if len(row) > len(ids):
        notes.append(f"{name}: {len(row) - len(ids):,} vectors are of nodes not in {source}")
    return vectors[[row[str(node)] for node in ids]]


def _checked(found: Any, n: int, name: str) -> np.ndarray:
    """(N, k) float32."""
    array = found.detach().cpu().numpy() if hasattr(found, "detach") else np.asarray(found)
    vectors = vectors_of(array, n, name)
    assert vectors is not None
    return vectors
