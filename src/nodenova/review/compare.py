"""Two runs of `nodenova discover` compared."""

from __future__ import annotations

from pathlib import Path

from nodenova.growth.diff import RunDiff, Snapshot, diff
from nodenova.model.saving import read_document
from nodenova.review.folder import DiscoveryFolder
from nodenova.review.predictions import table_content


def snapshot(folder: DiscoveryFolder) -> Snapshot:
    """What a run says of its nodes: its predictions.csv, its model, its lineage.

    Args:
        folder: Of the run.

    Raises:
        StorageError: It has no table of predictions.
    """
    class_of, model = folder.class_of_nodes(), folder.model()
    names = zip(model.classes, folder.names(model), strict=True)
    return Snapshot(
        names={c.id: name for c, name in names},
        kinds={c.id: c.kind for c in model.classes},
        class_of=class_of,
        edits=model.edits,
        digest=read_document(folder.model_folder)["sha256"],
        lineage=tuple(folder.document.get("lineage", ())),
        title=str(folder.path),
    )


def diff_runs(before: Path, after: Path) -> RunDiff:
    """How a later run differs from an earlier one; see `nodenova.diff`.

    Args:
        before: The folder of the earlier run.
        after: That of the later one.

    Raises:
        StorageError: One of them is not the folder of a run.
        SettingError: They have no node in common.
    """
    return diff(snapshot(DiscoveryFolder(before)), snapshot(DiscoveryFolder(after)))


def moves_table(found: RunDiff, path: Path) -> bytes:
    """The nodes that moved as a file, Parquet if its name ends so, else CSV."""
    columns: dict[str, list[object]] = {
        "node": [move.node for move in found.moves],
        "class_before": [move.before_id for move in found.moves],
        "name_before": [move.before for move in found.moves],
        "class": [move.after_id for move in found.moves],
        "name": [move.after for move in found.moves],
    }
    return table_content(columns, path)
