"""Models on a hub of models (Hugging Face, or a server with its interface), with a model card."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodenova.display import percent, plural
from nodenova.errors import NodenovaError, SettingError, StorageError, brief, first_line
from nodenova.files.atomic import write_atomically
from nodenova.model.info import NEXT_TO, ClassInfo, anonymous, without_ids
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import WEIGHTS, save_model
from nodenova.runs.run import DiscoveryRun
from nodenova.settings import check_arguments

CARD = "README.md"
MESSAGE = "Model and card of nodenova"
HEAD = """\
---
library_name: nodenova
tags: [nodenova, graph-ml, node-classification, novel-class-discovery]
---

# {title}

A model of [nodenova](https://pypi.org/project/nodenova/): it predicts {classes} of the nodes of a
graph.

## How to use it

```python
import nodenova as nova

model = nova.from_hub("{repo_id}")
graph = nova.load_graph(nodes="nodes.csv", edges="edges.csv", recipe=model.recipe).graph
model.predict(graph)
```
"""


def push_to_hub(
    source: Any,
    repo_id: str,
    *,
    private: bool = True,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Push a model to a hub of models, with a model card that is made from its run.

    The graph, the ids and the labels stay here. What the model discloses is in its card.

    Args:
        source: A fitted `NodeDiscoverer`, a run that `nova.open_run` opened, a `DiscoveryRun`, or
            a `Model`, whose card has no numbers.
        repo_id: Name of the repository, such as me/shop-classes; made if it is not there.
        private: Whether a repository that is made is private.
        revision: Branch of the repository; its main branch by default.
        token: Token of the hub; the stored login by default.
        endpoint: Address of the hub; Hugging Face by default.

    Returns:
        The address of the repository.

    Raises:
        SettingError: If the package huggingface_hub is not installed, or the source is no model.
        StorageError: If the hub cannot be reached or refuses.

    Examples:
        >>> found = nova.NodeDiscoverer().fit("shops.csv")  # doctest: +SKIP
        >>> nova.push_to_hub(found, "me/shop-classes")  # doctest: +SKIP
        'https://hub.example/me/shop-classes'
    """
    check_arguments(push_to_hub, locals())
    run = getattr(source, "run_", source)
    if not isinstance(run, DiscoveryRun | Model) and hasattr(run, "push_to_hub"):
        options = {"private": private, "revision": revision, "token": token, "endpoint": endpoint}
        address: str = run.push_to_hub(repo_id, **options)
        return address
    if not isinstance(run, DiscoveryRun | Model):
        raise SettingError(
            "a model comes from a fitted NodeDiscoverer, an opened run, a DiscoveryRun or a "
            f"Model, not from {type(source).__name__}"
        )
    hub = _import_hub()
    card = model_card(run, repo_id)
    # Classes of structure are named after a node.
    model = _without_ids(run.model if isinstance(run, DiscoveryRun) else run)
    with tempfile.TemporaryDirectory() as folder, _hub_errors(repo_id):
        save_model(model, Path(folder) / "model")
        write_atomically(Path(folder) / "model" / CARD, card.encode())
        api = hub.HfApi(endpoint=endpoint, token=token)
        made = api.create_repo(repo_id, private=private, exist_ok=True)
        files = sorted(path for path in (Path(folder) / "model").iterdir() if path.is_file())
        api.create_commit(
            repo_id,
            [hub.CommitOperationAdd(path.name, path.read_bytes()) for path in files],
            commit_message=MESSAGE,
            revision=revision,
        )
        return str(made)


def from_hub(
    repo_id: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Model:
    """Load a model from a hub of models.

    Nothing that comes from there is executed, and damage is detected by a hash, as for
    `nova.load_model`.

    Args:
        repo_id: Name of the repository, such as me/shop-classes.
        revision: Branch, tag or commit; the main branch by default.
        token: Token of the hub; the stored login by default.
        endpoint: Address of the hub; Hugging Face by default.

    Returns:
        The model.

    Raises:
        SettingError: If the package huggingface_hub is not installed.
        StorageError: If the hub cannot be reached or refuses, or the repository holds no model.

    Examples:
        >>> model = nova.from_hub("me/shop-classes")  # doctest: +SKIP
        >>> later = model.predict(graph)  # doctest: +SKIP
    """
    check_arguments(from_hub, locals())
    hub = _import_hub()
    with tempfile.TemporaryDirectory() as folder:
        with _hub_errors(repo_id):
            hub.snapshot_download(
                repo_id,
                revision=revision,
                token=token,
                endpoint=endpoint,
                local_dir=folder,
                allow_patterns=["model.json", WEIGHTS],
            )
        try:
            return load_model(folder)
        except StorageError as error:
            raise StorageError(f"{repo_id}: {str(error).replace(folder, repo_id)}") from None


def model_card(source: DiscoveryRun | Model, repo_id: str) -> str:
    """The card of a model as Markdown: its classes, how far to trust them, what it discloses."""
    run = source if isinstance(source, DiscoveryRun) else None
    model = source.model if isinstance(source, DiscoveryRun) else source
    infos = [without_ids(info) for info in (model.class_info() if run is None else run.classes)]
    new = sum(info.is_new for info in infos)
    found = plural(new, "discovered class", "discovered classes")
    title = repo_id.rpartition("/")[2] if run is None else run.title
    classes = f"{len(infos) - new:,} known and {found}"
    parts = [HEAD.format(title=_plain(title), classes=classes, repo_id=repo_id)]
    parts += ["## Classes\n", _class_table(infos)]
    if run is not None:
        scores = run.held_out_scores
        trust = [run.verdict, "" if scores is None else scores.sentence]
        trust.append("Confidence is the mean probability of the class over its nodes.")
        parts += ["\n## How far to trust it\n", "\n\n".join(_plain(one) for one in trust if one)]
        parts += ["\n\n## How it was made\n", _facts(run.facts)]
    lines = "\n".join(f"- {note}" for note in disclosures(_without_ids(model)))
    parts += ["\n## What it discloses\n", lines, ""]
    return "\n".join(parts)


def disclosures(model: Model) -> list[str]:
    """Sentences on what a saved model discloses about the data that it was made of."""
    names = None if model.fit_signature is None else model.fit_signature.feature_names
    hubs = [name for name in names or () if name.startswith(NEXT_TO)]
    named = [c.name for c in model.classes if anonymous(c.id, c.name) != c.name]
    if hubs or named:
        what = "its features are links to these nodes" if hubs else "a class is named after one"
        number = plural(max(len(hubs), len(named)), "node")
        notes = [
            "the model holds no graph and no label of a node",
            f"it holds ids of {number}: {what}",
        ]
    else:
        notes = ["the model holds no graph, no node id and no label of a node"]
    if model.recipe is not None:
        notes.append("it holds words and category values of your columns, rare ones too")
    elif names is not None:
        notes.append("it holds the names of the features")
    return notes


def _without_ids(model: Model) -> Model:
    """The model without names of classes that are made of the id of a node."""
    classes = (replace(c, name=anonymous(c.id, c.name)) for c in model.classes)
    return replace(model, classes=tuple(classes))


def _class_table(infos: Sequence[ClassInfo]) -> str:
    rows = ["| class | name | kind | nodes | confidence | typical |", "|---|---|---|---|---|---|"]
    for info in infos:
        words = ", ".join(word.name for word in info.keywords[:5])
        size = "–" if info.size is None else f"{info.size:,}"
        cells = (str(info.id), _plain(info.name), info.kind, size, percent(info.confidence))
        rows.append(f"| {' | '.join(cells)} | {_plain(words)} |")
    return "\n".join(rows) + "\n"


def _facts(facts: Mapping[str, object]) -> str:
    """Facts of a run without its notes, which may name files and nodes."""
    kept = {name: fact for name, fact in facts.items() if not re.fullmatch(r"Note \d+", name)}
    return "".join(f"- {_plain(name)}: {_plain(str(fact))}\n" for name, fact in kept.items())


def _plain(text: str) -> str:
    """Text in which Markdown and HTML see no markup."""
    words = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|`*_\[\]#])", r"\\\1", words)


def _import_hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise SettingError(
            "models on a hub need huggingface_hub: pip install 'nodenova[hub]'"
        ) from None
    return huggingface_hub


@contextmanager
def _hub_errors(repo_id: str) -> Iterator[None]:
    """Turn errors of the hub's library into one sentence."""
    try:
        yield
    except NodenovaError:
        raise
    except Exception as error:  # its library has no common base of errors
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise StorageError(f"{brief(repo_id)} on the hub: {reason}") from error
