"""Texts as vectors: by a language model in a local folder, by a function, or ready made in a file.

They stand beside the words of the same texts and do not replace them: classes are named by words.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nodenova.display import plural
from nodenova.errors import GraphError, NodenovaError, SettingError, first_line
from nodenova.files.arrays import NUMBERS, is_npz, open_npy, read_npz
from nodenova.files.documents import (
    Schema,
    list_of,
    map_of,
    nullable,
    plain,
    read_json,
    record,
    text,
    whole,
)
from nodenova.graph import canonical_order, check_vectors
from nodenova.io.frames import is_missing, quote
from nodenova.progress import Progress
from nodenova.settings import check_path

TextVectors: TypeAlias = "str | PathLike[str] | np.ndarray | Callable[[list[str]], Any]"

OPTION = "text_vectors (--text-vectors)"
VECTOR_FILES = (".npy", ".npz")
BATCH_TEXTS = 32
MAX_TOKENS = 512  # of a text that are read, unless the model limits them
MODEL_FILES = (".json", ".txt", ".model", ".safetensors", ".bin")  # part of the fingerprint
MODULES = list_of(record({"type": text, "path": text}))
LIMIT = record({}, {"max_seq_length": nullable(whole(1))})
POOLING_FLAGS = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}


class LanguageModel:
    """A text encoder that sentence-transformers or transformers have saved to a folder.

    The vectors of a text's tokens are pooled as configured in the folder (mean, first token or
    maximum), by default by their mean. Nothing is downloaded, and no code in the folder is run.
    """

    def __init__(self, folder: Path) -> None:
        check_path(folder, OPTION)
        if not folder.is_dir():
            raise SettingError(
                f"{OPTION}: {str(folder)!r} is neither a folder of a language "
                "model nor a .npy or .npz file; nothing is downloaded"
            )
        self.folder = folder
        self.name = folder.resolve().name
        self._pooling, self._normalize, self._transformer = "mean", False, folder
        if (folder / "modules.json").is_file():
            self._read_modules(self._read_json(folder / "modules.json", MODULES))
        if not (self._transformer / "config.json").is_file():
            raise SettingError(
                f"{OPTION}: {self.name} is no folder of a language model: it has no config.json"
            )
        try:
            import transformers  # noqa: F401
        except ImportError:
            raise SettingError(
                f"{OPTION}: a language model needs transformers; pip install 'nodenova[text]'"
            ) from None

    def fingerprint(self) -> str:
        """16 hexadecimal digits: a hash of the files that determine the vectors."""
        digest = hashlib.sha256(f"{self._pooling} {self._normalize}".encode())
        for path in sorted(self._transformer.iterdir()):
            if path.is_file() and path.suffix in MODEL_FILES:
                digest.update(path.name.encode())
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]

    def encode(self, texts: Sequence[str], progress: Progress) -> np.ndarray:
        """(N, k) a vector for each text; equal texts have equal vectors, long ones are cut."""
        import torch

        distinct = sorted(set(texts), key=lambda text: (-len(text), text))
        batches = []
        with _offline(), torch.no_grad():
            tokenizer, model, limit = self._load()
            how = {"padding": True, "truncation": True, "max_length": limit, "return_tensors": "pt"}
            for start in range(0, len(distinct), BATCH_TEXTS):
                tokens = tokenizer(distinct[start : start + BATCH_TEXTS], **how)
                hidden = model(**tokens.to(model.device)).last_hidden_state
                vectors = _pool(hidden, tokens["attention_mask"], self._pooling)
                if self._normalize:
                    vectors = torch.nn.functional.normalize(vectors)
                batches.append(vectors.float().cpu().numpy())
                progress(f"reading texts with {self.name}", start / len(distinct))
        place = {text: row for row, text in enumerate(distinct)}
        return np.concatenate(batches)[[place[text] for text in texts]]

    def _load(self) -> tuple[Any, Any, int]:
        """Load tokenizer and model; also return how many tokens of a text are read."""
        import torch
        from transformers import AutoModel, AutoTokenizer

        local = {"local_files_only": True, "trust_remote_code": False}
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(self._transformer), **local)
            model = AutoModel.from_pretrained(str(self._transformer), dtype=torch.float32, **local)
        except Exception as error:
            what = f"{self.name} cannot be read ({first_line(error)})"
            raise SettingError(f"{OPTION}: {what}") from error
        config = self._transformer / "sentence_bert_config.json"
        limit = self._read_json(config, LIMIT).get("max_seq_length") if config.is_file() else None
        most = getattr(model.config, "max_position_embeddings", None) or MAX_TOKENS
        limit = min(limit or MAX_TOKENS, tokenizer.model_max_length, most)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return tokenizer, model.eval().to(device), int(limit)

    def _read_modules(self, modules: Any) -> None:
        """Read the modules.json of sentence-transformers."""
        for module in modules:
            kind = str(module["type"]).rpartition(".")[2]
            if kind == "Transformer":
                self._transformer = self.folder / module["path"]
            elif kind == "Pooling":
                self._pooling = self._read_pooling(self.folder / module["path"] / "config.json")
            elif kind == "Normalize":
                self._normalize = True
            else:
                raise self._unsupported(f"the part {kind!r}")

    def _read_pooling(self, path: Path) -> str:
        config = self._read_json(path, map_of(plain))
        mode, flag = config.get("pooling_mode"), "pooling_mode_"
        flags = [key.removeprefix(flag) for key in config if key.startswith(flag) and config[key]]
        modes = list(map(str, mode if isinstance(mode, list) else [mode])) if mode else flags
        modes = [POOLING_FLAGS.get(mode, mode) for mode in modes]
        if len(modes) != 1 or modes[0] not in POOLING_FLAGS.values():
            raise self._unsupported(f"the pooling {' and '.join(modes) or 'none'!r}")
        return modes[0]

    def _unsupported(self, what: str) -> SettingError:
        return SettingError(
            f"{OPTION}: {self.name} has {what}, which is not supported: "
            "compute the vectors yourself and give them as a .npy file"
        )

    def _read_json(self, path: Path, schema: Schema) -> Any:
        try:
            return read_json(path, schema)
        except NodenovaError as error:
            what = f"{self.name}: {path.name} cannot be read ({first_line(error)})"
            raise SettingError(f"{OPTION}: {what}") from None


def _pool(hidden: Any, mask: Any, pooling: str) -> Any:
    """(texts, k) of (texts, tokens, k); padding is ignored."""
    if pooling == "cls":
        return hidden[:, 0]
    is_token = mask.to(hidden.device)[:, :, None].bool()
    if pooling == "max":
        return hidden.masked_fill(~is_token, float("-inf")).amax(dim=1)
    weight = is_token.to(hidden.dtype)
    return (hidden * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1e-9)


@contextmanager
def _offline() -> Iterator[None]:
    """Keep transformers from the network, and silence its bars and messages."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM")
    before = {name: os.environ.get(name) for name in names}
    os.environ |= dict(zip(names, ("1", "1", "false"), strict=True))
    from transformers.utils import logging

    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class VectorSource:
    """Where the vectors of a graph came from, so that later ones are made the same way."""

    kind: str  # "model", "function" or "file"
    name: str  # name of the model's folder, the function or the file; no path
    width: int  # length of a vector
    fingerprint: str = ""  # fingerprint of a model; "" for others

    def check(self, other: VectorSource) -> None:
        """Raise if later vectors have another length or come from another model."""
        if other.width != self.width:
            raise SettingError(
                f"{OPTION}: {other.name} gives vectors of {other.width} numbers, the model was "
                f"made with vectors of {self.width} ({self.name})"
            )
        if self.fingerprint and other.fingerprint and self.fingerprint != other.fingerprint:
            raise SettingError(
                f"{OPTION}: {other.name} ({other.fingerprint}) is another language model than "
                f"{self.name} ({self.fingerprint}), which made the earlier vectors"
            )


def open_vectors(source: TextVectors | None) -> TextVectors | LanguageModel | None:
    """Check the value of --text-vectors as far as possible before tables are read."""
    if source is None or callable(source) or isinstance(source, np.ndarray):
        return source
    if not isinstance(source, (str, PathLike)):
        raise SettingError(
            f"{OPTION} is a folder, a file, an array or a function, not {type(source).__name__}"
        )
    path = Path(source)
    if path.suffix.lower() not in VECTOR_FILES:
        return LanguageModel(path)
    if not path.is_file():
        raise SettingError(f"{OPTION}: {path}: no such file")
    return path


def check_vectors_match(vectors: object, known: VectorSource | None, source: str) -> None:
    """Raise if a later table has vectors and the earlier one had none, or the other way round."""
    if known is None and vectors is not None:
        raise SettingError(f"{OPTION}: the features were learned without vectors of texts")
    if known is not None and vectors is None:
        raise SettingError(
            f"{source}: the features were learned with vectors of texts ({known.name}, "
            f"{known.width} numbers): give {OPTION}"
        )


def read_vectors(
    vectors: TextVectors | LanguageModel,
    read_texts: Callable[[], Sequence[str]] | None,
    ids: Sequence[Any],
    source: str,
    notes: list[str],
    progress: Progress,
) -> tuple[np.ndarray, VectorSource]:
    """Return (N, k) float32 vectors of the nodes of a table, and where they came from."""
    if isinstance(vectors, (str, PathLike, np.ndarray)):
        rows, name = _read_rows(vectors, ids, source, notes)
        array = _to_array(rows, len(ids), name)
        notes.append(f"{source}: vectors of {array.shape[1]} numbers from {name}")
        return array, VectorSource("file", name, array.shape[1])
    if read_texts is None:
        raise SettingError(
            f"{OPTION}: {source} has no texts to read: name a text column "
            "(text_columns, --text-column), or give a .npy file"
        )
    texts = list(read_texts())
    empty = np.array([is_missing(text.strip()) for text in texts])
    if empty.all():
        raise GraphError(f"{source}: no node has a text that could become a vector")
    # In canonical order: a language model rounds a text by the batch that it is in.
    order = canonical_order(ids)
    order = order[~empty[order]]
    present = [texts[row] for row in order.tolist()]
    if isinstance(vectors, LanguageModel):
        name, rows = vectors.name, vectors.encode(present, progress)
    else:
        name = getattr(vectors, "__name__", type(vectors).__name__)
        rows = vectors(present)
    array = _to_array(rows, len(present), name)
    # A node without a text gets the mean, which moves it nowhere.
    whole = np.empty((len(texts), array.shape[1]), dtype=np.float32)
    whole[order], whole[empty] = array, array.mean(axis=0)
    note = f"{source}: texts became vectors of {whole.shape[1]} numbers by {name}, beside words"
    if empty.any():
        note += f"; {plural(int(empty.sum()), 'node')} without a text"
    notes.append(note)
    if isinstance(vectors, LanguageModel):
        return whole, VectorSource("model", name, whole.shape[1], vectors.fingerprint())
    return whole, VectorSource("function", name, whole.shape[1])


def _read_rows(
    vectors: str | PathLike[str] | np.ndarray, ids: Sequence[Any], source: str, notes: list[str]
) -> tuple[Any, str]:
    """Return ready-made vectors in the order of the nodes, and their name in messages."""
    if isinstance(vectors, np.ndarray):
        rows, name = vectors, "text_vectors"
    else:
        path = Path(vectors)
        name = path.name
        if is_npz(path):
            arrays = read_npz(path, ("ids", "vectors"), source=name)
            return _order_by_id(arrays, ids, name, source, notes), name
        rows = open_npy(path, source=name)
    if len(rows.shape) == 2 and len(rows) != len(ids):
        raise GraphError(
            f"{name}: {len(rows):,} rows for {len(ids):,} nodes of {source}: give one row per "
            "node in the order of the table, or an npz file with ids and vectors"
        )
    return rows, name


def _order_by_id(
    content: Mapping[str, np.ndarray], ids: Sequence[Any], name: str, source: str, notes: list[str]
) -> np.ndarray:
    if not {"ids", "vectors"} <= {*content}:
        raise GraphError(f"{name}: has no arrays ids and vectors")
    known, vectors = content["ids"], content["vectors"]
    if known.ndim != 1 or vectors.ndim != 2:
        raise GraphError(
            f"{name}: ids must be a list and vectors a table, "
            f"they have shapes {known.shape} and {vectors.shape}"
        )
    if len(known) != len(vectors):
        raise GraphError(f"{name}: {len(known):,} ids for {len(vectors):,} vectors")
    row = {str(node).strip(): number for number, node in enumerate(known.tolist())}
    lacking = [node for node in ids if str(node) not in row]
    if lacking:
        nodes = plural(len(lacking), f"node of {source} has", f"nodes of {source} have")
        raise GraphError(f"{name}: {nodes} no vector, first: {quote(str(lacking[0]))}")
    if len(row) > len(ids):
        extra = plural(len(row) - len(ids), "vector is", "vectors are")
        notes.append(f"{name}: {extra} of nodes not in {source}")
    return vectors[[row[str(node)] for node in ids]]


def _to_array(rows: Any, n: int, name: str) -> np.ndarray:
    """(N, k) float32."""
    array = rows.detach().cpu().numpy() if hasattr(rows, "detach") else np.asarray(rows)
    if array.dtype.kind not in NUMBERS + "cO":  # texts would be read as numbers
        raise GraphError(f"{name}: vectors are not a table of numbers, they hold {array.dtype}")
    vectors = check_vectors(array, n, name)
    assert vectors is not None
    return vectors
