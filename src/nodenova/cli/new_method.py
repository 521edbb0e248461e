"""nodenova new-method: the beginning of a method of the package, in a checkout of it."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from nodenova.cli.app import RESEARCH, app
from nodenova.errors import SettingError

REGISTRY = Path("src/nodenova/methods/registry.py")
METHOD = '''"""{title}: one sentence that says what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from nodenova.model.model import Model, trained_head
from nodenova.nn.heads import grow
from nodenova.nn.statistics import {statistics}
from nodenova.settings import check_settings, setting
from nodenova.task import NewTask


@dataclass(frozen=True)
class {kind}:
    """Author et al., "Title", venue year.

    The idea, its formulae with the paper's symbols, and what differs from the paper.
    """

    prefers: ClassVar[str] = "gcn"

    epochs: int = setting(200, at_least=1)  # what it does, and the equation it belongs to

    def __post_init__(self) -> None:
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        # A start that runs and finds nothing: old classes as they are, new rows that never win.
        g, h_a = model.frozen_encoder(), grow(trained_head(model, "{name}"), task.num_new)
        ids = torch.from_numpy(task.ids).to(model.device)
        groups = torch.arange(len(ids), device=model.device) % task.num_new
        new = {statistics}.remember(g, task.graph, ids, groups, task.num_new)
        return model.grown(encoder=g, head=h_a, prototypes=model.prototypes.{append}(new))
'''
TEST = '''from __future__ import annotations

import nodenova as nova
from nodenova.methods.{name} import {kind}


def test_it_finds_planted_classes() -> None:
    """On a graph where that is easy. It fails until `discover` does something."""
    easy = nova.synthetic(nodes=300, classes=4, words=80, degree=10, homophily=0.95, topic_share=0.9)
    old, new, exam = nova.split(easy, [0, 1])
    scores = nova.grade(nova.discover(nova.fit(old, "gcn", epochs=50), new, {kind}()), exam).scores()
    assert scores["old"] > 80
    assert scores["new"] > 60
'''


@app.command("new-method", rich_help_panel=RESEARCH)
def new_method(
    name: Annotated[str, typer.Argument(help="Its name on the command line, like my_method.")],
    folder: Annotated[Path, typer.Option(help="The checkout, or a folder in it.")] = Path(),
) -> None:
    """Begin a method of the package: its file, its lines in the registry, and a test that fails until it does something.

    In a checkout of nodenova. A method in a file of your own needs none of this: see `nodenova check-method`.
    """
    root = checkout(folder)
    kind = kind_of(name)
    method, test = root / f"src/nodenova/methods/{name}.py", root / f"tests/methods/test_{name}.py"
    for path in (method, test):
        if path.exists():
            raise SettingError(f"{path} is there already; nothing was written")
    registry = registered((root / REGISTRY).read_text(encoding="utf-8"), name, kind)
    names = {"name": name, "kind": kind, "title": kind, "statistics": "Prototypes", "append": "followed_by"}
    for path, text in ((method, METHOD.format(**names)), (test, TEST.format(**names)), (root / REGISTRY, registry)):
        path.write_text(text, encoding="utf-8")
    typer.echo(f"Written: {method.relative_to(root)}, {test.relative_to(root)}, two lines in {REGISTRY}.")
    typer.echo(
        f"Now: discover() and its docstring; docs/methods/{name}.md; nodenova run --dataset citeseer --method {name}"
    )


def checkout(folder: Path) -> Path:
    """The nearest folder above that is a checkout of nodenova."""
    here = folder.resolve()
    for place in (here, *here.parents):
        if (place / REGISTRY).is_file():
            return place
    raise SettingError(f"{here} is not in a checkout of nodenova: it has no {REGISTRY}")


def kind_of(name: str) -> str:
    """MyMethod for my_method."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise SettingError(f"a method's name is small letters, digits and _, like my_method, not {name!r}")
    return "".join(part.capitalize() for part in name.split("_"))


def registered(registry: str, name: str, kind: str) -> str:
    """The registry with one more method: its import, among the others, and its line, behind the others."""
    if f'"{name}":' in registry:
        raise SettingError(f"there is a method {name} already; nothing was written")
    imports = re.findall(r"^from nodenova\.methods\.[a-z]\w* import \w+\n", registry, re.MULTILINE)
    entry = re.search(r"^METHODS: [^\n]*= \{\n(?:    [^\n]*\n)*", registry, re.MULTILINE)
    if not imports or entry is None:
        raise SettingError(f"{REGISTRY} does not look as it should; nothing was written")
    line = f"from nodenova.methods.{name} import {kind}\n"
    after = max((each for each in imports if each < line), default=None)
    added = registry.replace(entry[0], f'{entry[0]}    "{name}": {kind},\n')
    return added.replace(after, after + line) if after else added.replace(imports[0], line + imports[0])
