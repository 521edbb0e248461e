"""What follows from the model and the graph of a run, written into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodenova.files import to_json, write_atomically
from nodenova.model.info import ClassInfo
from nodenova.review.kept_map import KeptMap
from nodenova.review.next_labels import next_labels
from nodenova.review.page import review_page
from nodenova.review.predictions import table_content
from nodenova.review.run import DiscoveryRun, Steps, silent

REPORT = "report.html"


def write_findings(
    folder: Path, run: DiscoveryRun, steps: Steps = silent, report: bool = True
) -> None:
    """Write the tables, the suggestions and the page of a run.

    Args:
        folder: Where to.
        run: What was found.
        steps: Called with (steps done, steps) while the map is laid out.
        report: Whether the page is made. One that is not is made when it is asked for; an earlier
            one, which would say something else now, goes.
    """
    table = folder / "predictions.csv"
    write_atomically(table, run.predictions.content(table))
    if report:
        page = review_page(run.page_data(KeptMap(folder, steps)))
        write_atomically(folder / REPORT, page.encode())
    else:
        (folder / REPORT).unlink(missing_ok=True)
    write_atomically(folder / "classes.csv", classes_csv(run.classes))
    write_atomically(folder / "suggestions.json", to_json(run.suggestions.to_json()))
    labels = folder / "labels.csv"
    if run.history.decisions:
        write_atomically(labels, table_content(next_labels(run), labels))
    else:
        labels.unlink(missing_ok=True)


def classes_csv(classes: Sequence[ClassInfo]) -> bytes:
    """A table of the classes: one line each."""
    shown = ["id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure"]
    shown += ["labelled", "cohesion", "nearest", "same_as", "same_as_probability", "two"]

    def value(info: ClassInfo, name: str) -> object:
        found = getattr(info, name)
        return round(found, 4) if isinstance(found, float) else found

    columns: dict[str, list[object]] = {
        name: [value(info, name) for info in classes] for name in shown
    }
    columns["features"] = [" ".join(f.name for f in info.features) for info in classes]
    columns["representatives"] = [
        " | ".join(str(node) for node in info.representatives) for info in classes
    ]
    return table_content(columns, Path("classes.csv"))
