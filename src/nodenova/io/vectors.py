"""Texts as vectors: by a language model, by a function, or ready made in a file.

They stand beside the words of the same texts and do not replace them: classes are named by words.

A language model in a folder that the user brings: texts in, a vector for each out. Offline.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nodenova.errors import GraphError, SettingError
from nodenova.graph import check_vectors
from nodenova.io.frames import is_missing, quote
from nodenova.progress import Progress

BATCH = 32  # texts that are read at a time
MAX_TOKENS = 512  # of a text that are read, where the model does not say
PARTS = (".json", ".txt", ".model", ".safetensors", ".bin")  # files that make a model what it is
POOLING = ("mean", "cls", "max")


class LanguageModel:
    """An encoder of texts as sentence-transformers or transformers save one.

    What is in the folder decides how the vectors of tokens become one: their mean, the first or the
    largest of each number, by its pooling; their mean where there is none. Nothing is downloaded,
    and no code of the folder is run.

    Args:
        folder: Of the model.

    Raises:
        SettingError: It is no such folder, or has parts that are not known here.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SettingError(
                f"text_vectors (--text-vectors): {str(folder)!r} is neither a folder of a language "
                "model nor a .npy or .npz file; nothing is downloaded"
            )
        self.folder = folder
        self.name = folder.resolve().name
        self._normalize = False
        self._pooling, self._place = "mean", folder
        if (folder / "modules.json").is_file():
            self._read_modules(self._json(folder / "modules.json"))
        if not (self._place / "config.json").is_file():
            raise SettingError(
                f"text_vectors (--text-vectors): {self.name} is no folder of a language model: "
                "it has no config.json"
            )
        try:
            import transformers  # noqa: F401
        except ImportError:
            raise SettingError(
                "text_vectors (--text-vectors): a language model needs transformers; "
                "pip install 'nodenova[text]'"
            ) from None

    def fingerprint(self) -> str:
        """A short hash of the files that make the model what it is.

        Returns:
            16 hexadecimal digits.
        """
        digest = hashlib.sha256(f"{self._pooling} {self._normalize}".encode())
        for path in sorted(self._place.iterdir()):
            if path.is_file() and path.suffix in PARTS:
                digest.update(path.name.encode())
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]

    def encode(self, texts: Sequence[str], progress: Progress) -> np.ndarray:
        """(N, k) a vector for each text; the same text has the same vector.

        Args:
            texts: (N,) what to read; what is too long for the model is cut.
            progress: Function `progress(phase, share)`, called as reading advances.

        Raises:
            SettingError: The files of the model cannot be read.
        """
        import torch

        different = sorted(set(texts), key=lambda text: (-len(text), text))
        with _offline():
            tokenizer, model, limit = self._loaded()
            made = []
            with torch.no_grad():
                for start in range(0, len(different), BATCH):
                    part = different[start : start + BATCH]
                    tokens = tokenizer(
                        part, padding=True, truncation=True, max_length=limit, return_tensors="pt"
                    )
                    said = model(**tokens.to(model.device)).last_hidden_state
                    vectors = _pooled(said, tokens["attention_mask"], self._pooling)
                    if self._normalize:
                        vectors = torch.nn.functional.normalize(vectors)
                    made.append(vectors.float().cpu().numpy())
                    progress(f"reading texts with {self.name}", start / len(different))
        place = {text: row for row, text in enumerate(different)}
        return np.concatenate(made)[[place[text] for text in texts]]

    def _loaded(self) -> tuple[Any, Any, int]:
        """Tokenizer and model, and how many tokens of a text are read."""
        import torch
        from transformers import AutoModel, AutoTokenizer

        local = {"local_files_only": True, "trust_remote_code": False}
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(self._place), **local)
            model = AutoModel.from_pretrained(str(self._place), dtype=torch.float32, **local)
        except Exception as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise SettingError(
                f"text_vectors (--text-vectors): {self.name} cannot be read ({first})"
            ) from error
        own = self._place / "sentence_bert_config.json"
        said = self._json(own).get("max_seq_length") if own.is_file() else None
        most = getattr(model.config, "max_position_embeddings", None) or MAX_TOKENS
        limit = min(said or MAX_TOKENS, tokenizer.model_max_length, most)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return tokenizer, model.eval().to(device), int(limit)

    def _read_modules(self, modules: Any) -> None:
        """What sentence-transformers says of the parts of a model, one after the other."""
        for module in modules:
            kind = str(module["type"]).rpartition(".")[2]
            if kind == "Transformer":
                self._place = self.folder / module["path"]
            elif kind == "Pooling":
                self._pooling = self._pooling_of(self.folder / module["path"] / "config.json")
            elif kind == "Normalize":
                self._normalize = True
            else:
                raise self._unknown(f"the part {kind!r}")

    def _pooling_of(self, path: Path) -> str:
        said = self._json(path)
        named = said.get("pooling_mode")
        flags = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
        modes = list(map(str, named if isinstance(named, list) else [named])) if named else [
            mode.removeprefix("pooling_mode_")
            for mode, is_on in said.items() if mode.startswith("pooling_mode_") and is_on
        ]  # fmt: skip
        short = {long: mode for mode, long in flags.items()}
        modes = [short.get(mode, mode) for mode in modes]
        if len(modes) != 1 or modes[0] not in POOLING:
            raise self._unknown(f"the pooling {' and '.join(modes) or 'none'!r}")
        return modes[0]

    def _unknown(self, what: str) -> SettingError:
        return SettingError(
            f"text_vectors (--text-vectors): {self.name} has {what}, which is not known here: "
            "make the vectors yourself, and give them as a .npy file"
        )

    def _json(self, path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingError(
                f"text_vectors (--text-vectors): {self.name}: {path.name} cannot be read ({error})"
            ) from None


def _pooled(said: Any, mask: Any, pooling: str) -> Any:
    """(texts, k) one vector of those of its tokens; padding does not count."""
    if pooling == "cls":
        return said[:, 0]
    is_there = mask.to(said.device)[:, :, None].bool()
    if pooling == "max":
        return said.masked_fill(~is_there, float("-inf")).amax(dim=1)
    there = is_there.to(said.dtype)
    return (said * there).sum(dim=1) / there.sum(dim=1).clamp(min=1e-9)


@contextmanager
def _offline() -> Iterator[None]:
    """Without the network, and without bars and messages of transformers."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM")
    before = {name: os.environ.get(name) for name in names}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    os.environ |= {"TOKENIZERS_PARALLELISM": "false"}
    from transformers.utils import logging

    said, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(said)
        if bars:
            logging.enable_progress_bar()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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


def open_vectors(given: TextVectors | None) -> TextVectors | LanguageModel | None:
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


def check_vectors_match(given: object, known: VectorSource | None, source: str) -> None:
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
        given: What `open_vectors` gave.
        texts: Gives (N,) the text of each node; None where there is none to read.
        ids: (N,) of the nodes.
        source: What messages call the table of nodes.
        notes: Gets a sentence on what was done.
        progress: Function `progress(phase, share)`, called as reading advances.

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
            f"first: {quote(str(lacking[0]))}"
        )
    if len(row) > len(ids):
        notes.append(f"{name}: {len(row) - len(ids):,} vectors are of nodes not in {source}")
    return vectors[[row[str(node)] for node in ids]]


def _checked(found: Any, n: int, name: str) -> np.ndarray:
    """(N, k) float32."""
    array = found.detach().cpu().numpy() if hasattr(found, "detach") else np.asarray(found)
    vectors = check_vectors(array, n, name)
    assert vectors is not None
    return vectors
