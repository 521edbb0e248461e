"""A table of results as a value: cells measured from rows, marked, tested and annotated.

How it looks is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from nodenova.bench import paper
from nodenova.bench.row import Row
from nodenova.bench.titles import DATASETS, in_order
from nodenova.evaluation.scores import SHARES, mean_std, score_title
from nodenova.evaluation.significance import holm, paired_t, signed_rank

# Shown any of these, phase 2 is marked † and never best.
GIVEN = {"new_labels", "old_nodes", "old_labels", "which_new"}
MIN_PAIRS = 5  # with fewer common seeds nothing is claimed


@dataclass(frozen=True)
class Column:
    """What one column of a table shows.

    Attributes:
        group: What it is about together with its neighbors: a dataset, or "average".
        score: Its name.
        title: Over the column.
        marked: Best and runner-up are marked here, and differences to the reference tested.
    """

    group: str
    score: str
    title: str
    marked: bool = False


@dataclass(frozen=True)
class Tests:
    """p-values of the paired difference to the reference: as they are, and Holm-corrected.

    The correction is over the table.
    """

    pairs: int
    difference: float
    t: float
    wilcoxon: float
    t_holm: float = 1.0
    wilcoxon_holm: float = 1.0

    @property
    def sign(self) -> str:
        """▲ ▼ better or worse by both tests, △ ▽ by the t-test alone.

        Nothing unless the corrected p of the t-test is below 0.05.
        """
        if self.t_holm >= 0.05:
            return ""
        better, worse = "▲▼" if self.wilcoxon < 0.05 else "△▽"
        return better if self.difference > 0 else worse


@dataclass(frozen=True)
class Cell:
    """One score of one line: mean and spread, and what stands beside them."""

    mean: float | None = None
    std: float | None = None
    n: int = 0  # runs (or class splits) behind the mean
    failed: int = 0  # runs that ended in an error and are not in the mean
    mark: str = ""  # "best", "second" or nothing
    paper: float | None = None
    notes: tuple[int, ...] = ()  # numbers, from 1, of the table's notes
    tests: Tests | None = None


@dataclass(frozen=True)
class Line:
    """A line of a table: one method, or one variant of it."""

    group: str  # the block of lines it stands in: an encoder, a parameter
    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    sees: tuple[str, ...] = ()
    reference: bool = False

    @property
    def given_labels(self) -> bool:
        """Was phase 2 shown more than the graph and which nodes are unlabelled?

        Then it is marked † and never best.
        """
        return bool(GIVEN & set(self.sees))

    @property
    def n(self) -> str:
        """Runs behind each of its cells: "10", or "5–10" where they differ."""
        counts = sorted({cell.n for cell in self.cells if cell.n})
        return "–".join(map(str, [counts[0], counts[-1]] if len(counts) > 1 else counts)) or "–"


@dataclass(frozen=True)
class Table:
    """A table of results, measured and annotated."""

    title: str
    caption: tuple[str, ...]  # sentences
    heads: tuple[str, ...]  # over the labels of the lines
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    matching: str = "block"
    unit: str = "seeds"


@dataclass(frozen=True)
class Entry:
    """A line to be measured: its rows, and what the paper calls it."""

    group: str
    labels: tuple[str, ...]
    rows: Sequence[Row]
    encoder: str = ""
    paper_line: str = ""
    reference: bool = False  # the one the others of its group are tested against


def values(rows: Sequence[Row], score: str, matching: str, by: str) -> dict[int, float]:
    """The score of each seed, or class split (mean over its seeds), where it could be measured."""
    found: dict[int, list[float | None]] = {}
    for row in rows:
        if row.is_done and (number := getattr(row, by)) is not None:
            found.setdefault(number, []).append(row.score(score, matching))
    means = {key: mean_std(each).mean for key, each in sorted(found.items())}
    return {key: mean for key, mean in means.items() if mean is not None}


def table(
    name: str,
    title: str,
    caption: Sequence[str],
    heads: tuple[str, ...],
    entries: Sequence[Entry],
    scores: Sequence[str],
    *,
    marked: Sequence[str] = (),
    matching: str = "block",
    average: bool = False,
    by: str = "seed",
) -> Table:
    """Measure the entries on every dataset they have.

    Args:
        name: Finds the paper's table.
        title: Over the table.
        caption: Sentences under it.
        heads: Over the labels of the lines.
        entries: The lines.
        scores: The columns of each dataset.
        marked: Scores whose best and runner-up are marked, and whose differences are tested.
        matching: How discovered classes are matched to true ones.
        average: Whether the datasets, if several, get an average.
        by: What a mean is over: "seed", or "class_split".
    """
    datasets = in_order({row.dataset for entry in entries for row in entry.rows}, DATASETS)
    groups = [*datasets, *(["average"] if average and len(datasets) > 1 else [])]
    columns = tuple(
        Column(group, s, score_title(s), s in marked) for group in groups for s in scores
    )
    measured: list[dict[tuple[str, str], dict[int, float]]] = []
    notes: dict[str, int] = {}
    lines = []
    for entry in entries:
        rows = {d: [row for row in entry.rows if row.dataset == d] for d in datasets}
        found = {(d, s): values(rows[d], s, matching, by) for d in datasets for s in scores}
        measured.append(found)
        cells: dict[tuple[str, str], Cell] = {}
        for d in datasets:
            said = _about(rows[d], by)
            for s in scores:
                remarks = [*said, *paper.remarks(name, entry.encoder, entry.paper_line, d, s)]
                spread = mean_std(list(found[d, s].values()))
                cells[d, s] = Cell(
                    mean=spread.mean,
                    std=None if s in SHARES else spread.std,
                    n=len(found[d, s]),
                    failed=sum(row.is_failed for row in rows[d]),
                    paper=paper.printed(name, entry.encoder, entry.paper_line, d, s),
                    notes=tuple(notes.setdefault(remark, len(notes) + 1) for remark in remarks),
                )
        for s in scores:
            cells["average", s] = _average([cells[d, s] for d in datasets])
        sees = sorted({what for row in entry.rows for what in row.sees})
        shown = tuple(cells[c.group, c.score] for c in columns)
        lines.append(Line(entry.group, entry.labels, shown, tuple(sees), entry.reference))
    lines = tested(_marked(lines, columns), columns, measured)
    unit = "seeds" if by == "seed" else "class splits"
    return Table(title, tuple(caption), heads, columns, tuple(lines), tuple(notes), matching, unit)


def _about(rows: Sequence[Row], by: str) -> list[str]:
    """What a reader has to know of the rows of a cell: which failed, whether of one kind."""
    found = []
    for row in rows:
        if row.is_failed:
            error = (row.error.strip().splitlines() or ["no message"])[-1]
            where = f"{row.dataset}, {row.method} on {row.encoder}, seed {row.seed}"
            found.append(f"Failed: {where}: {error[:200]}")
    done = [row for row in rows if row.is_done]
    for name in ("settings", "fit_settings", "num_new", *(["data"] if by == "seed" else [])):
        if any(getattr(row, name) != getattr(done[0], name) for row in done):
            found.append(
                f"The runs of this cell differ in {name.replace('_', ' ')}: "
                "they are not runs of one thing."
            )
    return found


def _average(cells: Sequence[Cell]) -> Cell:
    """Over the datasets, where all have been measured; the paper's over the same datasets."""
    means = [cell.mean for cell in cells]
    printed = [cell.paper for cell in cells]
    there = [mean for mean in means if mean is not None]
    said = [value for value in printed if value is not None]
    return Cell(
        mean=fmean(there) if there and len(there) == len(means) else None,
        n=min((cell.n for cell in cells), default=0),
        paper=fmean(said) if said and len(said) == len(printed) else None,
    )


def _marked(lines: Sequence[Line], columns: Sequence[Column]) -> list[Line]:
    """Best and runner-up of each marked column and group, by what is printed.

    Methods that were given labels are left out.
    """
    marks: dict[tuple[int, int], str] = {}
    for group in dict.fromkeys(line.group for line in lines):
        ranked = [
            i for i, line in enumerate(lines) if line.group == group and not line.given_labels
        ]
        for j in (j for j, column in enumerate(columns) if column.marked):
            means = {
                i: round(mean, 1) for i in ranked if (mean := lines[i].cells[j].mean) is not None
            }
            ordered = sorted(set(means.values()), reverse=True)
            for place, mean in zip(("best", "second"), ordered, strict=False):
                marks |= {(i, j): place for i in means if means[i] == mean and len(means) > 1}
    found = []
    for i, line in enumerate(lines):
        cells = (replace(cell, mark=marks.get((i, j), "")) for j, cell in enumerate(line.cells))
        found.append(replace(line, cells=tuple(cells)))
    return found


def tested(
    lines: Sequence[Line],
    columns: Sequence[Column],
    measured: Sequence[dict[tuple[str, str], dict[int, float]]],
) -> list[Line]:
    """Each marked cell of a dataset against its group's reference on the seeds both have.

    p-values are corrected over the table.

    Args:
        lines: Of the table.
        columns: Of the table.
        measured: For each line {(dataset, score): {seed: value}}.
    """
    reference = {line.group: measured[i] for i, line in enumerate(lines) if line.reference}
    tests: dict[tuple[int, int], Tests] = {}
    for i, line in enumerate(lines):
        if line.reference or line.group not in reference:
            continue
        for j, column in enumerate(columns):
            if column.marked and column.group != "average":
                mine = measured[i][column.group, column.score]
                its = reference[line.group][column.group, column.score]
                d = [mine[key] - its[key] for key in mine if key in its]
                if len(d) >= MIN_PAIRS:
                    tests[i, j] = Tests(len(d), fmean(d), paired_t(d), signed_rank(d))
    by_t, by_rank = (holm([getattr(t, kind) for t in tests.values()]) for kind in ("t", "wilcoxon"))
    for key, t, rank in zip(list(tests), by_t, by_rank, strict=True):
        tests[key] = replace(tests[key], t_holm=t, wilcoxon_holm=rank)
    found = []
    for i, line in enumerate(lines):
        cells = (replace(cell, tests=tests.get((i, j))) for j, cell in enumerate(line.cells))
        found.append(replace(line, cells=tuple(cells)))
    return found
