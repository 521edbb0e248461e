"""Make src/nodenova/data/shipped/wordnet.npz from the database files of WordNet 3.0.

As in Debian's package `wordnet-base`:

    apt-get download wordnet-base && dpkg-deb -x wordnet-base_*.deb wordnet
    python tools/make_wordnet.py wordnet/usr/share/wordnet
    python tools/make_wordnet.py wordnet/usr/share/wordnet --full --out wordnet-full.npz

A node is a synset, called by its first word. Edges are WordNet's relations, features the words of
the gloss without its examples, as a bag: the gloss itself is not kept. Classes are lexicographer
files ("noun.animal"). The same bytes each time.

The shipped graph has ten classes of nouns, about a thousand of each: the more familiar ones, by how
often they were met in the texts that WordNet's makers tagged, then plain words before names and
phrases, then by number of relations; each with everything above it in its class, so that the graph
holds together. `--full` takes all synsets and all 45 classes.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

SHIPPED = Path(__file__).resolve().parent.parent / "src/nodenova/data/shipped/wordnet.npz"
# In the order of the file: the first seven are the old ones of the demo.
OLD = ("animal", "artifact", "person", "body", "substance", "communication", "act")
CLASSES = (*OLD, "plant", "food", "location")
PER_CLASS = 1000
# Words that dictionaries are written in, beside those of all English: they say nothing of a thing.
DICTIONARY_WORDS = frozenset(
    (  # noqa: SIM905
        "consisting containing especially etc having including relating typically used using "
        "usually various"
    ).split()
)
MIN_NODES = 3  # that must have a word for it to be a feature
LEXICOGRAPHER_FILES = (  # noqa: SIM905
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute "
    "noun.body noun.cognition noun.communication noun.event noun.feeling noun.food noun.group "
    "noun.location noun.motive noun.object noun.person noun.phenomenon noun.plant noun.possession "
    "noun.process noun.quantity noun.relation noun.shape noun.state noun.substance noun.time "
    "verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption "
    "verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession "
    "verb.social verb.stative verb.weather adj.ppl"
).split()  # their numbers are their places in this list (lexnames(5WN))
Key = tuple[str, str]  # part of speech and offset in its file


@dataclass(frozen=True)
class Synset:
    word: str
    kind: str  # its lexicographer file
    relations: tuple[tuple[str, Key], ...]  # symbol and target
    gloss_words: tuple[str, ...]
    times_met: int


def read_synsets(folder: Path) -> dict[Key, Synset]:
    """All synsets of the four data files (wndb(5WN))."""
    # Times a word was met, by word, lexicographer file and number in it.
    met: Counter[tuple[str, str, str]] = Counter()
    for line in (folder / "cntlist.rev").read_text("latin-1").splitlines():
        sense, _, count = line.split()
        word, rest = sense.split("%")
        _, lex, number, *_ = rest.split(":")
        met[word, lex, number] += int(count)
    synsets = {}
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            body, gloss = line.split("|", 1)
            f = body.split()
            num_words = int(f[3], 16)
            words = [(f[4 + 2 * i], f"{int(f[5 + 2 * i], 16):02d}") for i in range(num_words)]
            start = 4 + 2 * num_words
            pointers = [f[start + 1 + 4 * i : start + 5 + 4 * i] for i in range(int(f[start]))]
            # Adjectives may say where in a phrase they stand.
            plain = re.sub(r"\((a|p|ip)\)$", "", words[0][0])
            synsets[_key(f[2], f[0])] = Synset(
                word=plain.replace("_", " "),
                kind=LEXICOGRAPHER_FILES[int(f[1])],
                relations=tuple((symbol, _key(pos, offset)) for symbol, offset, pos, _ in pointers),
                gloss_words=tuple(re.findall(r"[a-z]{3,}", gloss.split('"')[0].lower())),
                times_met=sum(met[word.lower(), f[1], number] for word, number in words),
            )
    return synsets


def _key(pos: str, offset: str) -> Key:
    return ("a" if pos == "s" else pos, offset)


def familiar(synsets: dict[Key, Synset], kind: str, count: int) -> set[Key]:
    """About `count` synsets of a class: the most familiar ones and all above them in the class."""

    def rank(key: Key) -> tuple[int, bool, int, Key]:
        synset = synsets[key]
        is_plain = re.fullmatch("[a-z]+", synset.word) is not None
        return (-synset.times_met, not is_plain, -len(synset.relations), key)

    chosen: set[Key] = set()
    for key in sorted((key for key, synset in synsets.items() if synset.kind == kind), key=rank):
        path: set[Key] = set()
        todo = [key]
        while todo:
            one = todo.pop()
            if synsets[one].kind == kind and one not in chosen | path:
                path.add(one)
                above = [pair for pair in synsets[one].relations if pair[0] in ("@", "@i")]
                todo += [target for _, target in above]
        if len(chosen) + len(path) > count:
            break
        chosen |= path
    return chosen


def arrays(synsets: dict[Key, Synset], kinds: tuple[str, ...]) -> dict[str, np.ndarray]:
    """What is written: the synsets by the order of their names."""

    def rank(key: Key) -> tuple[str, str, int, Key]:
        synset = synsets[key]
        return synset.word.lower(), synset.word, -synset.times_met, key

    keys = sorted(synsets, key=rank)
    number = {key: i for i, key in enumerate(keys)}
    edges = sorted(
        {
            (min(i, j), max(i, j))
            for key, i in number.items()
            for _, target in synsets[key].relations
            if (j := number.get(target, i)) != i
        }
    )
    bags = [
        sorted(set(synsets[key].gloss_words) - ENGLISH_STOP_WORDS - DICTIONARY_WORDS)
        for key in keys
    ]
    having = Counter(word for bag in bags for word in bag)
    vocabulary = sorted(word for word, nodes in having.items() if nodes >= MIN_NODES)
    place = {word: j for j, word in enumerate(vocabulary)}
    rows = [[place[word] for word in bag if word in place] for bag in bags]
    lengths = np.cumsum([0, *map(len, rows)])
    x = sp.csr_array(
        (np.ones(lengths[-1], np.uint8), np.concatenate(rows).astype(int), lengths),
        (len(keys), len(vocabulary)),
    )
    seen: Counter[str] = Counter()
    names = []
    for key in keys:
        word = synsets[key].word
        seen[word] += 1
        names.append(word if seen[word] == 1 else f"{word} ({seen[word]})")
    # Everything is small whole numbers; narrow types keep the file compact, the loader widens them.
    return {
        "x_data": x.data,
        "x_indices": x.indices.astype(np.uint16),
        "x_indptr": x.indptr.astype(np.int32),
        "x_shape": np.array(x.shape),
        "edge_index": np.array(edges).T.astype(np.int32),
        "y": np.array([kinds.index(synsets[key].kind) for key in keys], dtype=np.int8),
        "node_ids": np.array(names),
        "feature_names": np.array(vocabulary),
        "class_names": np.array(
            [kind.removeprefix("noun.") if len(kinds) == len(CLASSES) else kind for kind in kinds]
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where data.noun and its like are")
    parser.add_argument("--full", action="store_true", help="all synsets, all 45 classes")
    parser.add_argument(
        "--out",
        type=Path,
        default=None,
        help=f"default: {SHIPPED.name} in the package; --full needs it",
    )
    options = parser.parse_args()
    if options.full and options.out is None:
        parser.error("--full needs --out: the whole of WordNet does not ship")
    synsets = read_synsets(options.folder)
    kinds = (
        tuple(LEXICOGRAPHER_FILES) if options.full else tuple(f"noun.{name}" for name in CLASSES)
    )
    if not options.full:
        chosen = set().union(*(familiar(synsets, kind, PER_CLASS) for kind in kinds))
        synsets = {key: synset for key, synset in synsets.items() if key in chosen}
    content = arrays(synsets, kinds)
    out = options.out or SHIPPED
    np.savez_compressed(out, **content)  # type: ignore[arg-type]
    print(
        f"{len(content['y']):,} nodes, {content['edge_index'].shape[1]:,} relations, "
        f"{content['x_shape'][1]:,} words"
    )
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    print(f"{out.name}: sha256 {digest}, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
