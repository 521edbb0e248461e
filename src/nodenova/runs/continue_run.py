"""A run continued on a graph that has grown: classes keep their ids, names and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.discovery import check_mixed, method_name, refit_if_in_doubt, search
from nodenova.display import plural
from nodenova.errors import SettingError, SplitError
from nodenova.graph import NewTask
from nodenova.growth import MIN_MEAN, check_refresh, may_refit, refit_if_changed
from nodenova.methods import Method
from nodenova.methods.prism import Prism
from nodenova.model.model import FitSignature, Model, Refresh
from nodenova.model.saving import weights_digest
from nodenova.nn.encode_cache import shared_passes
from nodenova.progress import Progress
from nodenova.review.user_labels import NO_LABEL, UserLabels, labels_for_graph
from nodenova.runs.apply import read_labels
from nodenova.runs.numbers import preview_numbers
from nodenova.runs.revise import number_note, start_revision, undecided_classes
from nodenova.runs.run import DiscoveryRun

if TYPE_CHECKING:
    from nodenova.runs.folder import RunFolder


def continue_run(
    earlier: RunFolder,
    loaded: UserGraph,
    num_new: int | None,
    *,
    method: Method | None,
    mixed: bool | None,
    refresh: bool | str,
    revise: bool,
    labels: Mapping[str, str] | None,
    seed: int,
    min_confidence: float,
    keep_labels: bool,
    none_share: float,
    progress: Progress,
) -> tuple[DiscoveryRun, Refresh | None, tuple[str, ...]]:
    """The run on a grown graph, its refit, and notes; see `RunFolder.continue_with`."""
    check_refresh(refresh)
    method = Prism() if method is None else method
    loaded = loaded.canonical()
    graph = loaded.graph
    with earlier.reading():  # all that is needed of the earlier run, in one state
        model = _named_model(earlier)
        earlier_ids = _earlier_ids(earlier, graph.node_ids)
        label_ids, names, notes = _labels(earlier, model, loaded, labels or {}, keep_labels)
        before = earlier.stored_graph if earlier.keeps_graph else None
        title, lineage = earlier.document["title"], earlier.document.get("lineage", ())
        moves = (*earlier.earlier_moves, *earlier.history.moves)
    added = {c: names[c] for c in range(model.next_id, len(names))}
    given: dict[str, Any] = {"names": added, "seed": seed}
    current = _current_ids(model, label_ids)
    freed_ids = [c.id for c in undecided_classes(model, current)] if revise else None
    ids, mixed = _nodes_to_search(loaded, label_ids, earlier_ids, mixed, freed_ids)
    if not loaded.new_named:
        came = " that came since" if (earlier_ids[ids] == NO_LABEL).all() else ""
        notes += (f"searching {plural(len(ids), 'unlabelled node')}{came} for new classes",)
    if mixed:
        check_mixed(method)
    met = earlier_ids != NO_LABEL
    task = NewTask(graph, ids, num_new, mixed=mixed)
    find = partial(search, method=method, seed=seed, progress=progress)
    anchors: dict[str, Any] = {"met": met if met.any() else None, "all_new": None if mixed else ids,
               "label_ids": current}  # fmt: skip
    with shared_passes():
        digest = weights_digest(model)
        numbers = None
        if revise:
            start = start_revision(model, graph, current, earlier_ids, refresh=refresh, **given)
            task = replace(task, ids=ids[~start.examples[ids]])
            found, done = find(start.model, task), start.refresh
            model = start.finish(found, earlier_ids[met], found.predict(graph)[met])
            notes += (start.sentence(model),)
            # Nodes keep the classes that were decided on; the others are assigned again.
            stay = np.isin(earlier_ids, start.decided_ids)
            earlier_ids = np.where(stay, earlier_ids, NO_LABEL)
        else:
            known, done = refit_if_changed(model, graph, refresh, before=before, **anchors, **given)
            if done is None and num_new is None and may_refit(model, graph, refresh, before):
                known, done = refit_if_in_doubt(known, task, seed=seed, **anchors)
            found = find(known, task, refresh=done)
            note = number_note(model, found, graph, current, earlier_ids, **given) if mixed else ""
            notes += (note,) if note else ()
            model = found
            numbers = preview_numbers(known, model, task, method, seed=seed, progress=progress)
        notes += () if done is None else (done.sentence(), *done.notes)
        facts = {
            "Continues": title,
            "Nodes": f"{graph.num_nodes:,}",
            "Nodes that came": f"{int((~met).sum()):,}",
            "Searched": plural(len(ids), "unlabelled node"),
            "Method": f"{method_name(method)} on {model.frozen_encoder().spec.name}",
            "Seed": seed,
            "Representation": "unchanged" if done is None else done.sentence(),
        }
        run = DiscoveryRun.of_graph(
            loaded,
            model,
            facts,
            notes,
            label_ids=label_ids,
            label_names=names,
            earlier_ids=earlier_ids,
            lineage=(*lineage, digest),
            earlier_moves=moves,
            keep_labels=keep_labels,
            min_confidence=min_confidence,
            none_share=none_share,
            numbers=numbers,
        )
        _ = run.outputs  # while the pass is shared
    return run, done, notes


def _named_model(earlier: RunFolder) -> Model:
    """The reviewed model, in which classes without a name have the names that were shown."""
    model = earlier.model
    if model.fit_signature is None and earlier.keeps_graph:  # a model of the previous version
        model = replace(model, fit_signature=FitSignature.of(earlier.stored_graph))
    named = zip(model.classes, earlier.class_names, strict=True)
    return replace(model, classes=tuple(replace(c, name=name) for c, name in named))


def _earlier_ids(earlier: RunFolder, node_ids: np.ndarray) -> np.ndarray:
    """(N,) class ids of the nodes in the earlier run, -1 for nodes that came since."""
    class_of = earlier.class_of_nodes()
    return np.array([class_of.get(str(node), NO_LABEL) for node in node_ids.tolist()])


def _labels(
    earlier: RunFolder,
    model: Model,
    loaded: UserGraph,
    further: Mapping[str, str],
    keep: bool,
) -> tuple[np.ndarray, list[str], tuple[str, ...]]:
    """(N,) class id of every label, names of these classes by id, and notes."""
    graph, class_names = loaded.graph, earlier.class_names
    hidden = loaded.is_new & loaded.new_named  # labels of new nodes are for grading
    known = np.where(hidden, UNKNOWN, loaded.y).tolist()
    texts = ["" if c == UNKNOWN else loaded.class_names[c] for c in known]
    nodes = [str(node) for node in graph.node_ids.tolist()]
    unknown = sorted(set(further) - set(nodes))
    if unknown:
        raise SettingError(
            f"{plural(len(unknown), 'label is', 'labels are')} of nodes that are not in "
            f"{loaded.name}, first: {unknown[0]!r}"
        )
    texts = [further.get(node, text) for node, text in zip(nodes, texts, strict=True)]
    stored = read_labels(earlier.path, earlier.graph) if earlier.keeps_graph else None
    then = None
    if stored is not None:
        old = UserLabels(stored["y"], [str(name) for name in stored["names"]])
        then = (earlier.stored_graph.node_ids.tolist(), old)
    names = [] if then is None else list(then[1].names)
    met = {*class_names, *model.class_names, *names}
    counts = {text: texts.count(text) for text in sorted(set(texts) - met - {""})}
    new = [text for text, number in counts.items() if number >= MIN_MEAN]
    rest = [text if text in met else "" for text in texts]
    labels, _ = labels_for_graph(model, class_names, graph.node_ids.tolist(), rest, then, keep)
    class_ids = np.full(len(texts), NO_LABEL) if labels is None else labels.class_ids.copy()
    names = [] if labels is None else list(labels.names)
    names += [""] * (model.next_id - len(names))
    for text in new:
        class_ids[[one == text for one in texts]] = len(names)
        names.append(text)
    notes = [f"label {text!r} is on 1 node only and is ignored" for text in counts
             if text not in new]  # fmt: skip
    return class_ids, names, tuple(notes)


def _nodes_to_search(
    loaded: UserGraph,
    label_ids: np.ndarray,
    earlier_ids: np.ndarray,
    mixed: bool | None,
    freed_ids: Sequence[int] | None = None,
) -> tuple[np.ndarray, bool]:
    """Nodes to search for new classes, and whether they may belong to known ones.

    `freed_ids` are the ids of the classes to be revised, None if nothing is.
    """
    unlabelled = label_ids == NO_LABEL
    again = np.isin(earlier_ids, freed_ids or ()) & unlabelled
    if loaded.new_named:
        return np.union1d(loaded.new_ids, np.flatnonzero(again)), bool(mixed)
    came = unlabelled & (earlier_ids == NO_LABEL)
    if freed_ids is not None:
        came = came | again if mixed is False else unlabelled
    ids = np.flatnonzero(came if came.any() else unlabelled)
    if not len(ids):
        raise SplitError(
            f"{loaded.name}: every node has a label and none was named as new; "
            "there are no nodes to search for new classes"
        )
    return ids, mixed is not False


def _current_ids(model: Model, label_ids: np.ndarray) -> np.ndarray:
    """(N,) class id of each label by now; -1 if its class was split into several or is gone."""
    names = [""] * (1 + max(int(label_ids.max(initial=-1)), model.next_id))
    meant = UserLabels(label_ids, names).class_mask(model)
    ids = np.array([c.id for c in model.classes])
    now = np.where(meant.sum(axis=1) == 1, ids[meant.argmax(axis=1)], NO_LABEL)
    added = label_ids >= model.next_id  # classes that come with their labels
    return np.where(added, label_ids, now[label_ids])
