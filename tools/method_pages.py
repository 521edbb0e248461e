"""Pages that are found, not listed (a hook of MkDocs, named in mkdocs.yml).

In the navigation `methods/*` stands for the pages of all methods, in the order in which they are
registered, and any other `folder/*` for the pages of that folder by name. In docs/methods.md the
line `--8<-- "methods/*.md"` becomes a table: a line from the front matter of each method's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REGISTRIES = ("methods/registry.py", "supervised/__init__.py")
HERE = '--8<-- "methods/*.md"'


def on_config(config: Any) -> Any:
    config["nav"] = list(expanded(config["nav"]))
    return config


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    return markdown.replace(HERE, overview()) if HERE in markdown else markdown


def expanded(nav: list[Any]) -> Iterator[Any]:
    """A navigation with every `folder/*` replaced by the folder's pages."""
    for entry in nav:
        if isinstance(entry, dict):
            yield {t: list(expanded(e)) if isinstance(e, list) else e for t, e in entry.items()}
        elif entry.endswith("/*"):
            yield from pages_of(entry.removesuffix("/*"))
        else:
            yield entry


def pages_of(folder: str) -> list[str]:
    by_name = sorted(path.stem for path in DOCS.glob(f"{folder}/*.md"))
    names = registered() if folder == "methods" else by_name
    return [f"{folder}/{name}.md" for name in names]


def registered() -> list[str]:
    """Names of all methods, read from the source: the site is built without PyTorch."""
    sources = [(ROOT / "src/nodenova" / path).read_text(encoding="utf-8") for path in REGISTRIES]
    return [name for text in sources for name in re.findall(r'^    "(\w+)": \w+,$', text, re.M)]


def overview() -> str:
    lines = ["| | name | in a sentence |", "|---|---|---|"]
    for name in registered():
        page = f"methods/{name}.md"
        text = (DOCS / page).read_text(encoding="utf-8")
        said = re.search(r"\A---\ndescription: ((?:[^:\n]|:\S)+)\n---\n+# (.+)\n", text)
        if said is None:  # with a colon in it the front matter would be no YAML
            raise ValueError(f"docs/{page} has to begin with a description (no colon) and a title")
        lines.append(f"| [{said[2]}]({page}) | `{name}` | {said[1]} |")
    return "\n".join(lines)
