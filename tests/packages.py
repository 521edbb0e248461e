"""A table of packages as a distribution has one, with the mess of such tables; made, not copied.

Ten sections at first, an eleventh in summer. Descriptions share most of their words; packages
depend on those of their own section and on a few that everybody needs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

KNOWN = ("admin", "devel", "games", "net", "python", "sound")
HIDDEN = ("fonts", "gnu-r", "math", "web")  # 40 % of the sections of spring: no label anywhere
CAME = "rust"  # in summer
SECTIONS = (*KNOWN, *HIDDEN, CAME)
LABELLED = 0.2  # of the packages of a known section
STOP = ("a", "an", "the", "and", "or", "of", "to", "for", "with", "in", "on", "is", "that", "by")
COLUMNS = ("package", "section", "description", "maintainer", "priority", "installed_size",
           "homepage", "md5sum")  # fmt: skip
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qi", "ro",
             "su", "ta", "ve", "wi", "xo", "zu")  # fmt: skip


@dataclass(frozen=True)
class Packages:
    """Packages, their true sections, and files of them.

    Attributes:
        spring: How many there are at first.
        came: How many more there are in summer: a third of them in the section that came.
        seed: Draws others.
    """

    spring: int
    came: int
    seed: int = 0

    @cached_property
    def truth(self) -> dict[str, str]:
        """The section of every package by its name; those of spring first."""
        rng = np.random.default_rng([self.seed, 0])
        shares = rng.dirichlet(np.full(10, 8.0))
        first = rng.choice(SECTIONS[:10], self.spring, p=shares).tolist()
        later = rng.choice(SECTIONS[:10], self.came - self.came // 3, p=shares).tolist()
        sections = [*first, *later, *[CAME] * (self.came // 3)]
        # Some names have letters that ASCII has not, some look like a number.
        form = ("lib{}{}", "{}-{}", "{}ö{}-data", "3{}{}", "ttf-{}-日本-{}")
        names = (form[rng.integers(5)].format(_word(rng), i) for i in range(len(sections)))
        return dict(zip(names, sections, strict=True))

    @property
    def names(self) -> list[str]:
        """All packages; those of spring first."""
        return list(self.truth)

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """What the table says of each package, with its section."""
        rng = np.random.default_rng([self.seed, 1])
        common = [_word(rng) for _ in range(300)]
        words = {s: [_word(rng) for _ in range(60)] for s in SECTIONS}
        teams = {s: f"Debian {s.title()} Team, and others" for s in SECTIONS}  # a quoted comma
        people = [f"Müller-{_word(rng).title()} Žofie <{i}@example.org>" for i in range(40)]
        told = []
        for i, (name, section) in enumerate(self.truth.items()):
            drawn = rng.zipf(1.5, 4) % 60
            about = np.where(rng.random(4) < 0.55, section, rng.choice(SECTIONS[:10], 4))
            own = [words[s][k] for s, k in zip(about.tolist(), drawn, strict=True)]
            shared = [common[k] for k in rng.zipf(1.3, 8) % 300]
            text = rng.permutation([*own, *shared, *rng.choice(STOP, 7)]).tolist()
            missing = rng.random(4) < (0.02, 0.05, 0.1, 0.4)
            team = teams[section] if rng.random() < 0.3 else people[rng.integers(40)]
            told.append({
                "package": name,
                "section": section,
                "description": "" if missing[0] else f"{text[0]}, “{' '.join(text[1:])}”",
                "maintainer": "NA" if missing[1] else team,
                "priority": str(rng.choice(["optional", "extra", "required"], p=[0.9, 0.07, 0.03])),
                "installed_size": "" if missing[2] else str(int(rng.lognormal(6, 2)) + 1),
                "homepage": "" if missing[3] else f"https://{_word(rng)}.example/{i}",
                "md5sum": f"{rng.integers(2**63):016x}",
            })  # fmt: skip
        return told

    @cached_property
    def edges(self) -> list[tuple[str, str]]:
        """Dependencies: most inside a section, some on what all need, some on nothing here."""
        rng = np.random.default_rng([self.seed, 2])
        names = self.names
        inside = {s: [n for n in names if self.truth[n] == s] for s in SECTIONS}
        hubs, pairs = names[:5], []
        for name in names:
            for kind in rng.choice(4, rng.integers(1, 6), p=[0.62, 0.22, 0.13, 0.03]):
                mates = inside[self.truth[name]]
                others = (mates, names, hubs, ["libc6-not-in-table", "virtual-mail-agent"])[kind]
                pairs.append((name, others[rng.integers(len(others))]))
        again = [pairs[i] for i in rng.choice(len(pairs), len(pairs) // 50)]
        loops = [(name, name) for name in rng.choice(names, len(names) // 100)]
        return [*pairs, *again, *loops]

    @cached_property
    def labelled(self) -> frozenset[str]:
        """Packages whose section the table says."""
        rng = np.random.default_rng([self.seed, 3])
        known = [name for name in self.names if self.truth[name] in KNOWN]
        return frozenset(name for name in known if rng.random() < LABELLED)

    def write(self, folder: Path, count: int | None = None, again: int = 0) -> list[str]:
        """Write nodes.csv and edges.csv; the options that name them.

        Args:
            folder: Where to.
            count: How many packages, the first; all unless given.
            again: How many rows are there twice.
        """
        folder.mkdir(parents=True, exist_ok=True)
        rows = self.rows[:count]
        here = {row["package"] for row in rows}
        shown = [row | ({} if row["package"] in self.labelled else {"section": ""}) for row in rows]
        _write(folder / "nodes.csv", COLUMNS, (row.values() for row in [*shown, *shown[:again]]))
        pairs = [pair for pair in self.edges if pair[0] in here]
        _write(folder / "edges.csv", ("package", "depends"), pairs)
        return ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]


def _word(rng: np.random.Generator) -> str:
    return "".join(rng.choice(SYLLABLES, rng.integers(2, 5)))


def _write(path: Path, head: Iterable[str], lines: Iterable[Iterable[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(head)
        table.writerows(lines)
