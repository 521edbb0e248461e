"""A saved model, and the graph to use it on: of its run, of a dataset or of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from nodenova.cli import files
from nodenova.cli.app import check_saved, err, loading, print_notes
from nodenova.errors import SettingError

if TYPE_CHECKING:
    import numpy as np

    from nodenova.graph import Graph
    from nodenova.model.model import Model
    from nodenova.review.run import DiscoveryRun
    from nodenova.review.user_labels import UserLabels

# How a note on nodes to discover in ends, which says nothing where nothing is discovered.
ABOUT_NEW = "as none were named"


@dataclass(frozen=True, eq=False)
class Given:
    """A model, and what to use it on.

    Attributes:
        model: Which.
        graph: With the features that the model knows.
        names: What its classes are called.
        labels: What the user said of nodes: in a run, by the ids of its nodes, and in files.
        notes: What did not match.
        run: The run of the model, with the graph that it keeps; None where there is none.
        asked: (n,) numbers of the nodes that came, where they were added; else None.
    """

    model: Model
    graph: Graph
    names: Sequence[str]
    labels: UserLabels | None = None
    notes: Sequence[str] = ()
    run: DiscoveryRun | None = None
    asked: np.ndarray | None = None

    def fits_none(self, share: float | None) -> np.ndarray | None:
        """(N,) which nodes without a label fit none of the classes; None if nobody asks.

        Args:
            share: As --none-share.

        Raises:
            SettingError: There are no labelled nodes that could tell.
        """
        from nodenova.review.held_out import spare_fit

        share = (self.run.none_share if self.run else 0.0) if share is None else share
        files.check_none_share(share)
        if share == 0:
            return None
        judged = None if self.run is None else self.run.held_out
        fit = spare_fit(self.model, self.model.embed(self.graph), judged, share)
        assert fit is not None
        return fit < 0 if self.labels is None else (fit < 0) & ~self.labels.labelled


def given_graph(
    run_path: Path,
    seed: int | None,
    dataset: str | None,
    data_root: Path | None,
    graph: Path | None,
    nodes: Path | None,
    edges: Path | None,
    quiet: bool,
    relabel: bool,
    add: bool = False,
    **options: Unpack[files.FileOptions],
) -> Given:
    """The saved model and the graph to use it on: of the run, of a dataset or of files."""
    check_saved(run_path)
    files_given = graph is not None or nodes is not None or edges is not None
    if dataset is not None and files_given:
        raise SettingError("give either --dataset or files of your own, not both")
    with loading(quiet):
        from nodenova.bench.folder import RunFolder
        from nodenova.io.datasets import load_dataset
        from nodenova.io.foreign import is_table
        from nodenova.io.table_encoder import TableEncoder
        from nodenova.model.loading import load_model
        from nodenova.review.added import with_added
        from nodenova.review.folder import DiscoveryFolder
        from nodenova.review.later import later_graph, same_graph
        from nodenova.review.place import is_discovery

    own = DiscoveryFolder(run_path) if is_discovery(run_path) else None
    if own is not None:
        model = own.model()
    else:
        model = (
            load_model(run_path)
            if (run_path / "model.json").is_file()
            else RunFolder.open(run_path).model(seed)
        )
    called = model.class_names if own is None else own.names(model)
    if dataset is not None:
        return Given(model, load_dataset(dataset, data_root).graph, called)
    if not files_given:
        if own is None:
            raise SettingError(
                f"{run_path} keeps no graph: give --dataset NAME, --graph FILE, "
                "or --nodes FILE and --edges FILE"
            )
        run = own.run()
        same = same_graph(run, relabel)
        return Given(model, same.graph, called, same.labels, run=run)
    known, recipe = (None, None) if own is None else own.features()
    if recipe is None and model.recipe is not None:
        recipe = TableEncoder.from_json(model.recipe)
    asked = None
    if add:
        assert own is not None
        reading = {**own.document.get("reading", {}), **_said(options)}
        if not options.get("label_column"):
            reading.pop("label_column", None)
        with files.Reading(err, show=not quiet):
            loaded, asked = with_added(own.graph(), nodes, edges, recipe, **reading)
    else:
        if recipe is not None and (graph is None or is_table(graph)):
            options["recipe"] = recipe
        loaded = files.load_files(graph, nodes, edges, show=not quiet, **options)
    earlier = own.run() if own is not None and own.keeps_graph else None
    # A model of `nodenova run` is graded by labels of the file; they are no user's word.
    is_told = own is not None or options.get("label_column") is not None
    later = later_graph(
        model, called, loaded, features=known, earlier=earlier, relabel=relabel, is_told=is_told
    )
    notes = [*(note for note in loaded.notes if not note.endswith(ABOUT_NEW)), *later.notes]
    if not quiet:
        print_notes(notes)
    return Given(model, later.graph, called, later.labels, notes, earlier, asked)


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that say something."""
    return {name: value for name, value in options.items() if value}
