"""Going on from an earlier run when its graph has grown: classes keep what they were given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.discovery import check_mixed, discover, method_name
from nodenova.display import plural
from nodenova.errors import SettingError, SplitError
from nodenova.graph import NewTask
from nodenova.growth import (
    MIN_MEAN,
    Change,
    change_of,
    check_refresh,
    check_refreshable,
    refit_encoder,
)
from nodenova.methods import Method
from nodenova.methods.prism import Prism
from nodenova.model.model import FitSignature, Model, Refresh
from nodenova.model.saving import weights_digest
from nodenova.nn.encode_cache import shared_passes
from nodenova.progress import Progress, no_progress
from nodenova.review.user_labels import NO_LABEL, UserLabels, labels_for_graph
from nodenova.runs.folder import DiscoveryFolder
from nodenova.runs.labels import read_labels
from nodenova.runs.run import DiscoveryRun


@dataclass(frozen=True, eq=False)
class Continued:
    """A run that goes on from an earlier one.

    Attributes:
        run: What was found, and all that was known before.
        change: How much the graph had changed; None where the earlier model does not tell.
        refresh: How the representation was fitted anew; None where it stayed.
        notes: What was assumed or left out, a sentence each.
    """

    run: DiscoveryRun
    change: Change | None
    refresh: Refresh | None
    notes: tuple[str, ...]


def continue_run(
    earlier: DiscoveryFolder,
    loaded: UserGraph,
    num_new: int | None = None,
    *,
    method: Method | None = None,
    mixed: bool | None = None,
    refresh: bool | str = "auto",
    labels: Mapping[str, str] | None = None,
    seed: int = 0,
    min_confidence: float = 0.5,
    keep_labels: bool = True,
    none_share: float = 0.0,
    progress: Progress = no_progress,
) -> Continued:
    """Discover in a graph that has grown since an earlier run.

    The reviewed model of the run goes on: ids, names and decisions of its classes stay. New classes
    are looked for among the unlabelled nodes that the earlier run did not have, or among all
    unlabelled ones where it had them all.

    Args:
        earlier: The folder of the earlier run.
        loaded: The grown graph, with labels where its user gives any. They are matched with classes
            by name; nodes that the earlier run had keep the labels they had there. A label that no
            class has is of a known class from now on.
        num_new: How many new classes to look for; None for as many as there seem to be, maybe none.
        method: How; `Prism()` unless given.
        mixed: Whether these nodes may be of classes met so far. None: they may, unless `loaded` was
            told which nodes are new.
        refresh: Whether the representation is fitted anew: "auto" where the graph has changed much,
            or labels name a class that the model does not know.
        labels: Further labels by the id of their node.
        seed: The same seed gives the same result.
        min_confidence: Nodes whose class is less probable than this are unsure.
        keep_labels: Whether labelled nodes keep their labels, and nodes of the earlier run their
            class unless it has become unlikely.
        none_share: As in `DiscoveryRun`.
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Returns:
        The run, for `DiscoveryFolder.write`, and what was done.

    Raises:
        NodenovaError: The run, the graph or a setting cannot be used; it says which.
    """
    check_refresh(refresh)
    method = Prism() if method is None else method
    model, graph = _with_shown_names(earlier), loaded.graph
    was = _classes_before(earlier, graph.node_ids)
    said, names, notes = _labels(earlier, model, loaded, labels or {}, keep_labels)
    further = {c: names[c] for c in range(model.next_id, len(names))}
    ids, mixed = _asked(loaded, said, was, mixed)
    if not loaded.new_named:
        came = " that the earlier run did not have" if (was[ids] == NO_LABEL).all() else ""
        among = plural(len(ids), "unlabelled node")
        notes = (*notes, f"classes are looked for among {among}{came}")
    if mixed:
        check_mixed(method)
    before = earlier.graph() if earlier.keeps_graph else None
    change = None if model.fit_signature is None else change_of(model.fit_signature, graph, before)
    why = _why_refresh(model, change, refresh, further)
    done = None
    with shared_passes():
        digest = weights_digest(model)
        if why is not None:
            model, done = refit_encoder(
                model,
                graph,
                why,
                met=was != NO_LABEL if (was != NO_LABEL).any() else None,
                all_new=None if mixed else ids,
                told=_told(model, said),
                names=further,
                seed=seed,
            )
        task = NewTask(graph, ids, num_new, mixed=mixed)
        model = discover(model, task, method, refresh=False, seed=seed, progress=progress)
        model = model.with_last_stage(replace(model.stages[-1], refresh=done))
        notes += () if done is None else (done.sentence(), *done.notes)
        run = DiscoveryRun(
            title=loaded.name,
            model=model,
            graph=graph,
            facts={
                "Goes on from": earlier.document["title"],
                "Nodes": f"{graph.num_nodes:,}",
                "Nodes that came": f"{int((was == NO_LABEL).sum()):,}",
                "Asked about": plural(len(ids), "unlabelled node"),
                "Method": f"{method_name(method)} on {model.frozen_encoder().spec.name}",
                "Seed": seed,
                "Representation": "as it was" if done is None else done.sentence(),
                **{f"Note {number}": note for number, note in enumerate(notes, start=1)},
            },
            recipe=loaded.recipe,
            given=said,
            given_names=names,
            before=was,
            lineage=(*earlier.document.get("lineage", ()), digest),
            keep_labels=keep_labels,
            min_confidence=min_confidence,
            none_share=none_share,
        )
        _ = run.outputs  # while the pass is shared
    return Continued(run, change, done, notes)


def _with_shown_names(earlier: DiscoveryFolder) -> Model:
    """The reviewed model; classes that nobody has named keep the names they were shown by.

    Models of the version before do not know what they were fitted on; their folder does.
    """
    model = earlier.model()
    if model.fit_signature is None and earlier.keeps_graph:
        model = replace(model, fit_signature=FitSignature.of(earlier.graph()))
    named = zip(model.classes, earlier.names(model), strict=True)
    return replace(model, classes=tuple(replace(c, name=name) for c, name in named))


def _classes_before(earlier: DiscoveryFolder, node_ids: np.ndarray) -> np.ndarray:
    """(N,) ids of the classes that the earlier run put nodes in, -1 for those it did not have."""
    was = earlier.class_of_nodes()
    return np.array([was.get(str(node), NO_LABEL) for node in node_ids.tolist()])


def _labels(
    earlier: DiscoveryFolder,
    model: Model,
    loaded: UserGraph,
    given: Mapping[str, str],
    keep: bool,
) -> tuple[np.ndarray, list[str], tuple[str, ...]]:
    """(N,) the class id of every label, what classes are called by id, and notes."""
    graph, shown = loaded.graph, earlier.names(model)
    hidden = loaded.is_new & loaded.new_named  # labels of new nodes are for grading
    known = np.where(hidden, UNKNOWN, loaded.y).tolist()
    texts = ["" if c == UNKNOWN else loaded.class_names[c] for c in known]
    nodes = [str(node) for node in graph.node_ids.tolist()]
    strange = sorted(set(given) - set(nodes))
    if strange:
        raise SettingError(
            f"{plural(len(strange), 'label is', 'labels are')} of nodes that are not in "
            f"{loaded.name}, first: {strange[0]!r}"
        )
    texts = [given.get(node, text) for node, text in zip(nodes, texts, strict=True)]
    kept = read_labels(earlier.path) if earlier.keeps_graph else None
    then = None
    if kept is not None:
        old = UserLabels(kept["y"], [str(name) for name in kept["names"]])
        then = (earlier.graph().node_ids.tolist(), old)
    names = [] if then is None else list(then[1].names)
    met = {*shown, *model.class_names, *names}
    counts = {text: texts.count(text) for text in sorted(set(texts) - met - {""})}
    new = [text for text, number in counts.items() if number >= MIN_MEAN]
    rest = [text if text in met else "" for text in texts]
    said, _ = labels_for_graph(model, shown, graph.node_ids.tolist(), rest, then, keep)
    class_ids = np.full(len(texts), NO_LABEL) if said is None else said.class_ids.copy()
    names = [] if said is None else list(said.names)
    names += [""] * (model.next_id - len(names))
    for text in new:
        class_ids[[one == text for one in texts]] = len(names)
        names.append(text)
    notes = [
        f"label {text!r} is on one node alone, and is left out"
        for text in counts
        if text not in new
    ]
    return class_ids, names, tuple(notes)


def _asked(
    loaded: UserGraph, said: np.ndarray, was: np.ndarray, mixed: bool | None
) -> tuple[np.ndarray, bool]:
    """Which nodes new classes are looked for among, and whether they may be of known ones."""
    if loaded.new_named:
        return loaded.new_ids, bool(mixed)
    unlabelled = said == NO_LABEL
    came = unlabelled & (was == NO_LABEL)
    ids = np.flatnonzero(came if came.any() else unlabelled)
    if not len(ids):
        raise SplitError(
            f"{loaded.name}: every node has a label and none was said to be of an unknown class; "
            "there is nothing to discover in"
        )
    return ids, mixed is not False


def _told(model: Model, said: np.ndarray) -> np.ndarray:
    """(N,) the class of each label by now; -1 where it was split into several, or is gone."""
    known = UserLabels(said, [""] * (1 + max(int(said.max(initial=-1)), model.next_id)))
    meant = known.class_mask(model)
    ids = np.array([c.id for c in model.classes])
    now = np.where(meant.sum(axis=1) == 1, ids[meant.argmax(axis=1)], NO_LABEL)
    came = said >= model.next_id  # classes that come with their labels
    return np.where(came, said, now[said])


def _why_refresh(
    model: Model, change: Change | None, refresh: bool | str, further: Mapping[int, str]
) -> str | None:
    """Why the representation is to be fitted anew; None where it stays."""
    if further:
        listed = ", ".join(map(repr, further.values()))
        if refresh is False:
            raise SettingError(
                f"labels name classes that the earlier run does not have ({listed}), which takes a "
                "representation that is fitted anew: refresh=False (--refresh never) forbids it"
            )
        check_refreshable(model)
        return f"labels name classes that it did not know ({listed})"
    if refresh is True:
        check_refreshable(model)
        return "it was asked for" if change is None else change.why()
    if refresh is False or change is None or model.frozen_encoder().spec.trainable:
        return None
    return change.why() if change.is_much else None
