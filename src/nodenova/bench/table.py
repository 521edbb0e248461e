"""Tables of results as values: measures of rows, marked, tested and annotated; see `render`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean
from typing import TypeAlias

from nodenova.bench import paper
from nodenova.bench.row import Row
from nodenova.bench.titles import DATASETS, MIN_PAIRS, in_order
from nodenova.evaluation.scores import SHARES, mean_std, score_title
from nodenova.evaluation.significance import holm, paired_t, signed_rank

# A method that phase 2 gives any of these is marked † and never best.
GIVEN = {"new_labels", "old_nodes", "old_labels", "which_new"}
# In `sees` of rows of others: the method fails check-method, or was not checked. It is never best.
UNCHECKED = "unchecked"
PUBLISHED = "published"
# What a mean is over: a number for each row, and the fields in which the rows of a cell must agree.
UNITS: Mapping[str, tuple[Callable[[Row], int | None], tuple[str, ...]]] = {
    "seeds": (lambda row: row.seed, ("settings", "fit_settings", "num_new", "data")),
    "class splits": (lambda row: row.class_split, ("settings", "fit_settings", "num_new")),
    "runs": (lambda row: 1000 * (row.class_split or 0) + row.seed, ()),
}
Values: TypeAlias = "dict[tuple[str, str], dict[int, float]]"  # {(dataset, measure): {unit: value}}


@dataclass(frozen=True)
class Measure:
    """A column of a table for each dataset."""

    title: str
    read: Callable[[Row], float | None]  # value of a row; None where there is nothing to measure
    is_share: bool = False  # of the runs; it has no spread
    marked: bool = False  # the best is marked, differences to the reference are tested


def score_measures(
    names: Sequence[str], marked: Sequence[str] = (), matching: str = "block"
) -> dict[str, Measure]:
    """Return the measures of scores by their names."""

    def reader(name: str) -> Callable[[Row], float | None]:
        return lambda row: row.score(name, matching)

    return {n: Measure(score_title(n), reader(n), n in SHARES, n in marked) for n in names}


@dataclass(frozen=True)
class TableText:
    """Everything about a table but its lines and columns."""

    title: str
    caption: Sequence[str]  # sentences under the title
    heads: tuple[str, ...] = ("Method",)  # over the labels of the lines
    paper: str = ""  # name of the paper's table whose numbers stand beside ours
    matching: str = "block"
    unit: str = "seeds"  # a name in UNITS
    average: bool = False  # several datasets get an average
    mark_best: bool = True  # and the runner-up
    # Lines of others: {name: {(dataset, measure): number}}, and a note at each of their numbers.
    published: Mapping[str, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    source: str = ""
    per_dataset: bool = False  # Markdown has a table for each dataset


@dataclass(frozen=True)
class Column:
    """A column: its dataset (or "average"), the name of its measure, and its title."""

    group: str
    score: str
    title: str
    marked: bool = False


@dataclass(frozen=True)
class Tests:
    """p-values of the paired difference to the reference, plain and Holm-corrected in the table."""

    pairs: int
    difference: float
    t: float
    wilcoxon: float
    t_holm: float = 1.0
    wilcoxon_holm: float = 1.0

    @property
    def sign(self) -> str:
        """▲ ▼ better or worse by both tests, △ ▽ by the t-test alone, "" without significance."""
        if self.t_holm >= 0.05:
            return ""
        better, worse = "▲▼" if self.wilcoxon < 0.05 else "△▽"
        return better if self.difference > 0 else worse


@dataclass(frozen=True)
class Cell:
    """One measure of one line: mean, spread, and annotations."""

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

    group: str  # block of lines: an encoder, a parameter, ...
    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    sees: tuple[str, ...] = ()
    reference: bool = False

    @property
    def given_labels(self) -> bool:
        """Whether phase 2 got labels, old nodes or which nodes are new; then it is never best."""
        return bool(GIVEN & set(self.sees))

    @property
    def is_ranked(self) -> bool:
        """Whether it may be best: without labels, by a method that is known to keep the rules."""
        return not self.given_labels and UNCHECKED not in self.sees

    @property
    def n(self) -> str:
        """Number of runs behind each of its cells: "10", or "5–10" where they differ."""
        counts = sorted({cell.n for cell in self.cells if cell.n})
        return "–".join(map(str, [counts[0], counts[-1]] if len(counts) > 1 else counts)) or "–"


@dataclass(frozen=True)
class Table:
    """A table of results."""

    title: str
    caption: tuple[str, ...]  # sentences
    heads: tuple[str, ...]  # over the labels of the lines
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    matching: str = "block"
    unit: str = "seeds"
    per_dataset: bool = False  # Markdown has a table for each dataset


@dataclass(frozen=True)
class Entry:
    """A line to be measured: its rows, and its name in the paper's table."""

    group: str
    labels: tuple[str, ...]
    rows: Sequence[Row]
    encoder: str = ""
    paper_line: str = ""
    reference: bool = False  # the other lines of its group are tested against it


def table(text: TableText, entries: Sequence[Entry], measures: Mapping[str, Measure]) -> Table:
    """Measure the entries on every dataset they have."""
    datasets = in_order({row.dataset for entry in entries for row in entry.rows}, DATASETS)
    groups = [*datasets, *(["average"] if text.average and len(datasets) > 1 else [])]
    columns = tuple(
        Column(group, name, measure.title, measure.marked)
        for group in groups
        for name, measure in measures.items()
    )
    measured, lines, notes = list[Values](), list[Line](), dict[str, int]()
    for entry in entries:
        rows = {d: [row for row in entry.rows if row.dataset == d] for d in datasets}
        found = {
            (d, name): _values(rows[d], measure, text.unit)
            for d in datasets
            for name, measure in measures.items()
        }
        cells = {
            (d, name): _cell(text, entry, rows[d], d, name, values, measures[name], notes)
            for (d, name), values in found.items()
        }
        for name in measures:
            cells["average", name] = _average([cells[d, name] for d in datasets])
        sees = sorted({what for row in entry.rows for what in row.sees})
        in_columns = tuple(cells[c.group, c.score] for c in columns)
        measured.append(found)
        lines.append(Line(entry.group, entry.labels, in_columns, tuple(sees), entry.reference))
    if text.mark_best:
        lines = _with_marks(lines, columns)
    lines = _with_tests(lines, columns, measured) + _other_lines(text, columns, notes)
    return Table(
        text.title, tuple(text.caption), text.heads, columns, tuple(lines), tuple(notes),
        text.matching, text.unit, text.per_dataset,
    )  # fmt: skip


def _values(rows: Sequence[Row], measure: Measure, unit: str) -> dict[int, float]:
    """{seed, class split or run: value}, where it could be measured; seeds of one are averaged."""
    number_of, _ = UNITS[unit]
    found: dict[int, list[float | None]] = {}
    for row in rows:
        if row.is_done and (number := number_of(row)) is not None:
            found.setdefault(number, []).append(measure.read(row))
    means = {key: mean_std(each).mean for key, each in sorted(found.items())}
    return {key: mean for key, mean in means.items() if mean is not None}


def _cell(
    text: TableText,
    entry: Entry,
    rows: Sequence[Row],
    dataset: str,
    name: str,
    values: Mapping[int, float],
    measure: Measure,
    notes: dict[str, int],
) -> Cell:
    """Return a cell; its notes are added to the numbered `notes` of the table."""
    place = (text.paper, entry.encoder, entry.paper_line, dataset, name)
    remarks = [*_row_remarks(rows, text.unit), *paper.remarks(*place)]
    spread = mean_std(list(values.values()))
    return Cell(
        mean=spread.mean,
        std=None if measure.is_share else spread.std,
        n=len(values),
        failed=sum(row.is_failed for row in rows),
        paper=paper.printed_number(*place),
        notes=tuple(notes.setdefault(remark, len(notes) + 1) for remark in remarks),
    )


def _row_remarks(rows: Sequence[Row], unit: str) -> list[str]:
    """Notes on the rows of a cell: which failed, and whether they are runs of one kind."""
    found = []
    for row in rows:
        if row.is_failed:
            error = (row.error.strip().splitlines() or ["no message"])[-1]
            where = f"{row.dataset}, {row.method} on {row.encoder}"
            where += f", {row.protocol} {row.class_split}" if row.protocol else ""
            found.append(f"Failed: {where}, seed {row.seed}: {error[:200]}")
    found += dict.fromkeys(f"{row.source}." for row in rows if row.source)
    done = [row for row in rows if row.is_done]
    for name in UNITS[unit][1]:
        if not all(agree(getattr(row, name), getattr(done[0], name)) for row in done):
            found.append(
                f"The runs of this cell differ in {name.replace('_', ' ')}: "
                "they are not runs of one thing."
            )
    return found


def agree(one: object, other: object) -> bool:
    """Whether two fields of rows are equal; of settings those that both versions have."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(one[name] == other[name] for name in one.keys() & other.keys())
    return one == other


def _other_lines(text: TableText, columns: Sequence[Column], notes: dict[str, int]) -> list[Line]:
    """Return the lines of others, each number with the note of its source."""
    lines = []
    for name, numbers in text.published.items():
        theirs = [numbers.get((column.group, column.score)) for column in columns]
        if any(number is not None for number in theirs):
            note = notes.setdefault(text.source, len(notes) + 1)
            cells = (Cell(mean, notes=(note,) if mean is not None else ()) for mean in theirs)
            lines.append(Line(PUBLISHED, (name,), tuple(cells)))
    return lines


def _average(cells: Sequence[Cell]) -> Cell:
    """Mean over the datasets, of ours and of the paper's, where all of them are known.

    Its deviation is that of independent datasets, one run of each.
    """

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None

    n = min((cell.n for cell in cells), default=0)
    squares = mean([None if cell.std is None else cell.std**2 for cell in cells])
    std = None if squares is None else sqrt(squares / len(cells))
    return Cell(mean([cell.mean for cell in cells]), std, n, paper=mean([c.paper for c in cells]))


def _with_marks(lines: Sequence[Line], columns: Sequence[Column]) -> list[Line]:
    """Mark best and runner-up of each marked column and group by what is printed, without †."""
    marks: dict[tuple[int, int], str] = {}
    for group in dict.fromkeys(line.group for line in lines):
        ranked = [i for i, line in enumerate(lines) if line.group == group and line.is_ranked]
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


def _with_tests(
    lines: Sequence[Line], columns: Sequence[Column], measured: Sequence[Values]
) -> list[Line]:
    """Test each marked cell of a dataset against its group's reference on the common seeds."""
    reference = {line.group: measured[i] for i, line in enumerate(lines) if line.reference}
    tests: dict[tuple[int, int], Tests] = {}
    for i, line in enumerate(lines):
        if line.reference or line.group not in reference:
            continue
        for j, column in enumerate(columns):
            if column.marked and column.group != "average":
                own = measured[i][column.group, column.score]
                base = reference[line.group][column.group, column.score]
                d = [own[key] - base[key] for key in own if key in base]
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
