"""nodenova new-method: start a new method in a checkout of nodenova."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from nodenova.cli.app import RESEARCH, app
from nodenova.errors import SettingError

REGISTRY = Path("src/nodenova/methods/registry.py")
METHOD = '''"""{kind}: one sentence about the idea."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from nodenova.model.model import Model, trained_head
from nodenova.nn.heads import grow
from nodenova.nn.class_memory import Memory
from nodenova.settings import check_settings, setting
from nodenova.graph import NewTask


@dataclass(frozen=True)
class {kind}:
    """Author et al., "Title", venue year.

    The idea, its formulae with the paper's symbols, and what differs from the paper.

    Attributes:
        epochs: Number of epochs.
    """

    prefers: ClassVar[str] = "gcn"

    epochs: int = setting(200, at_least=1)

    def __post_init__(self) -> None:
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        # A start that runs and finds nothing: the old classes, and new rows that never win.
        g, h_a = model.frozen_encoder(), grow(trained_head(model, "{name}"), task.num_new)
        ids = torch.from_numpy(task.ids).to(model.device)
        groups = torch.arange(len(ids), device=model.device) % task.num_new
        new = Memory.remember(g, task.graph, ids, groups, task.num_new)
        return model.grown(encoder=g, head=h_a, memory=model.memory.append(new))
'''
TEST = '''from __future__ import annotations

import nodenova as nova
from nodenova.methods.{name} import {kind}


def test_it_finds_planted_classes() -> None:
    """It fails until `discover` finds something. Then raise the bar to what your method reaches."""
    planted = nova.synthetic(300, 4, words=80, degree=10, homophily=0.95, topic_share=0.9)
    old, new, exam = nova.split(planted, [0, 1])
    model = nova.discover(nova.fit(old, "gcn", epochs=50), new, {kind}())
    assert nova.grade(model, exam).scores()["new"] > 40  # chance: 25, never new: 0
'''
PAGE = """---
description: TODO what it does, in half a sentence without a colon
---

# {kind}

**Idea.** TODO Author et al., venue year. The idea, for readers who do not know the paper.

**When to use it.** TODO Compared with which methods, and its drawbacks.

## Formulas, differences from the paper, settings

::: nodenova.methods.{name}.{kind}
"""


@app.command("new-method", rich_help_panel=RESEARCH)
def new_method(
    name: Annotated[str, typer.Argument(help="Name on the command line, such as my_method.")],
    folder: Annotated[Path, typer.Option(help="Checkout of nodenova, or a folder in it.")] = Path(),
) -> None:
    """Start a new method in a checkout: its file, its registry entry, its page and a test.

    The test fails until the method finds something. A method in a file of your own needs none of
    this: see `nodenova check-method`.
    """
    root = checkout(folder)
    kind = class_name(name)
    new = {
        f"src/nodenova/methods/{name}.py": METHOD,
        f"docs/methods/{name}.md": PAGE,
        f"tests/methods/test_{name}.py": TEST,
    }
    for path in new:
        if (root / path).exists():
            raise SettingError(f"{root / path} exists already; nothing was written")
    registry = add_entry((root / REGISTRY).read_text(encoding="utf-8"), name, kind)
    for path, template in new.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(template.format(name=name, kind=kind), encoding="utf-8")
    (root / REGISTRY).write_text(registry, encoding="utf-8")
    typer.echo(f"Written: {', '.join(new)},\nand its entry in {REGISTRY}.")
    typer.echo(f"Now: discover() and its docstring; the page; nodenova check-method {name}")


def checkout(folder: Path) -> Path:
    """Return the checkout of nodenova that a folder is in."""
    here = folder.resolve()
    for place in (here, *here.parents):
        if (place / REGISTRY).is_file():
            return place
    raise SettingError(f"{here} is not in a checkout of nodenova: it has no {REGISTRY}")


def class_name(name: str) -> str:
    """Return the class name of a method: MyMethod for my_method."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        rule = "the name of a method is lowercase letters, digits and _, such as my_method"
        raise SettingError(f"{rule}, not {name!r}")
    return "".join(part.capitalize() for part in name.split("_"))


def add_entry(registry: str, name: str, kind: str) -> str:
    """Return the text of the registry with the entry of a new method behind the others."""
    if f'"{name}":' in registry or f':{kind}"' in registry:
        raise SettingError(f"{name} or {kind} exists already; nothing was written")
    end = "    }\n)  # fmt: skip\n"
    if registry.count(end) != 1:
        raise SettingError(f"{REGISTRY} has no table of methods; nothing was written")
    entry = f'Entry("nodenova.methods.{name}:{kind}", "{kind}", epochs=200)'
    return registry.replace(end, f'        "{name}": {entry},\n{end}')
