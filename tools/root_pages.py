"""Files from the root of the repository as pages of the site: a hook of MkDocs, in mkdocs.yml.

A page that says `--8<-- "CONTRIBUTING.md"` is that file, with its links as seen from docs/.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = {
    "REPRODUCIBILITY.md": "reproducibility.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    asked = re.fullmatch(r'--8<-- "([A-Z]+\.md)"', markdown.strip())
    if asked is None:
        return markdown
    text = (ROOT / asked[1]).read_text(encoding="utf-8")
    text = text.replace("](docs/", "](").replace("\\<", "&lt;")
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text
