"""docs/results/choices.md: settings chosen by hiding old classes, from results/choices.jsonl.

The rows are written by tools/choose.py. A setting replaces a default if its mean gain in H over all
hidden splits is above zero by two standard errors, if it is significant among all settings that
were tried (paired t, Holm), and if it does not cost All significantly. One that is not better than
noise changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodenova.bench.render import markdown
from nodenova.bench.titles import DATASETS, ENCODERS, METHODS
from nodenova.bench.tune import with_standard_error
from nodenova.evaluation.scores import Spread, number
from nodenova.evaluation.significance import holm, paired_t

CHOICES = Path(__file__).resolve().parent.parent / "results/choices.jsonl"
LEVEL = 0.05
Document = dict[str, Any]


@dataclass(frozen=True)
class Tried:
    """A setting against the default, over the hidden splits of all graphs."""

    settings: str
    gain: Spread  # of H, with its standard error
    p: float  # of the gain of H, corrected among the settings of the study
    gain_all: Spread
    p_all: float

    @property
    def replaces_the_default(self) -> bool:
        """Whether the rule above takes it."""
        is_better = (self.gain.mean or 0.0) > 2 * (self.gain.std or 0.0) and self.p < LEVEL
        return is_better and not ((self.gain_all.mean or 0.0) < 0 and self.p_all < LEVEL)


def read_choices(path: Path = CHOICES) -> list[Document]:
    """Return the searches, one per method, encoder and graph."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def studies(documents: Sequence[Document]) -> dict[tuple[str, str], list[Document]]:
    """Return the searches by method and encoder, in the order of the tables."""
    found: dict[tuple[str, str], list[Document]] = {}
    for each in documents:
        found.setdefault((each["method"], each["encoder"]), []).append(each)
    order = list(METHODS)
    for graphs in found.values():
        names = list(DATASETS)
        graphs.sort(key=lambda d: names.index(d["dataset"]) if d["dataset"] in names else 99)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))


def tried(graphs: Sequence[Document]) -> list[Tried]:
    """Return all settings of a study but the default, in their order."""
    names = list(dict.fromkeys(line["settings"] for g in graphs for line in g["lines"][1:]))
    apart = {score: [_apart(graphs, name, score) for name in names] for score in ("h", "all")}
    p = {score: holm([paired_t(each) for each in apart[score]]) for score in apart}
    each = zip(names, apart["h"], p["h"], apart["all"], p["all"], strict=True)
    return [
        Tried(name, with_standard_error(h), p_h, with_standard_error(a), p_a)
        for name, h, p_h, a, p_a in each
    ]


def _apart(graphs: Sequence[Document], settings: str, score: str) -> list[float]:
    """Differences of a score to the default, for every hidden split of every graph."""
    found = []
    for graph in graphs:
        values = {line["settings"]: line["values"][score] for line in graph["lines"]}
        base = values[graph["lines"][0]["settings"]]
        found += [a - b for a, b in zip(values.get(settings, ()), base, strict=False)]
    return found


def verdict(graphs: Sequence[Document]) -> str:
    """Return what the rule chooses, in a sentence with its numbers."""
    found = tried(graphs)
    taken = [each for each in found if each.replaces_the_default]
    best = max(taken or found, key=lambda each: each.gain.mean or 0.0)
    title, gain = METHODS[graphs[0]["method"]], best.gain.mean or 0.0
    means = f"H {_signed(best.gain)} over {best.gain.n} hidden splits, {_p(best.p)}; "
    means += f"All {_signed(best.gain_all)}, {_p(best.p_all)}"
    if taken:
        return f"**{title}: `{best.settings}` is chosen** ({means})."
    if gain <= 0:
        return f"**{title}: the default is chosen**; no setting has a higher mean of H."
    is_sure = gain > 2 * (best.gain.std or 0.0) and best.p < LEVEL
    why = "which costs All" if is_sure else "which is within the noise"
    stays = f"**{title}: the default stays.** The highest mean of H has `{best.settings}`"
    return f"{stays} ({means}), {why}."


def _signed(spread: Spread) -> str:
    error = "" if spread.std is None else f" ± {number(spread.std)}"
    return f"{spread.mean or 0.0:+.1f}{error}".replace("-", "−")


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}"


def study_table(graphs: Sequence[Document]) -> str:
    """One line per setting: All and H on each graph, and the gains over all graphs."""
    base = graphs[0]["lines"][0]["settings"]
    found = {each.settings: each for each in tried(graphs)}
    lines = []
    for name in (base, *found):
        line = [f"`{name}`" if name != base else base]
        for graph in graphs:
            values = {ln["settings"]: ln["values"] for ln in graph["lines"]}.get(name)
            pair = [with_standard_error(values[score]) for score in ("all", "h")] if values else []
            line.append(" · ".join(f"{number(s.mean)} ± {number(s.std)}" for s in pair) or "–")
        if name in found:
            its = found[name]
            gains = (f"{_signed(its.gain)}, {_p(its.p)}", f"{_signed(its.gain_all)}")
            line += [*gains, "yes" if its.replaces_the_default else "no"]
        else:
            line += ["–", "–", "–"]
        lines.append(line)
    heads = [f"{_title(g)} All · H, n = {len(g['hidden'])}" for g in graphs]
    return markdown(
        ["settings", *heads, "gain of H, all graphs", "gain of All", "by the rule"], lines
    )


def _title(graph: Document) -> str:
    return str(DATASETS.get(graph["dataset"], graph["dataset"]))


def hidden_text(graphs: Sequence[Document]) -> str:
    """Return how many splits and seeds each graph has."""
    return ", ".join(
        f"{_title(g)} {len(g['hidden'])} splits with {len(g['seeds'])} "
        f"seed{'s' if len(g['seeds']) > 1 else ''}"
        for g in graphs
    )


def choices_page() -> str:
    """Return the sections of all studies."""
    parts = []
    for (method, encoder), graphs in studies(read_choices()).items():
        usual = ", ".join(f"{k}={v}" for k, v in graphs[0].get("defaults", {}).items())
        parts.append(
            f"## {METHODS[method]}, {ENCODERS.get(encoder, encoder)}\n\n{verdict(graphs)}\n\n"
            f"Hidden: {hidden_text(graphs)}. Defaults when this was run: {usual}.\n\n"
            f"{study_table(graphs)}"
        )
    return "\n\n".join(parts)


def choices_lines() -> str:
    """Return the verdicts as a list, for REPRODUCIBILITY.md."""
    return "\n".join(f"- {verdict(graphs)}" for graphs in studies(read_choices()).values())
