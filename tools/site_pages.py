"""Write what pages of the site repeat: `make docs` does it first, a test holds it true.

The site is plain Markdown, so that MkDocs and Zensical build the same pages without a plug-in of
ours. Three things in it follow from elsewhere: pages that are files from the root of the
repository, with links as seen from docs/; the table of all methods in docs/methods.md, a line from
the front matter of each method's page; and the parts of the navigation that list a whole folder.

    python tools/site_pages.py                   # the pages
    python tools/site_pages.py build/site        # beside the built pages: their Markdown, llms.txt
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOT_PAGES = {
    "REPRODUCIBILITY.md": "reproducibility.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
REGISTRIES = ("methods/registry.py", "supervised/__init__.py")
FOLDERS = ("methods", "decisions", "experiments")  # listed whole in the navigation
TABLE = re.compile(r"(?<=<!-- methods -->\n\n).*?(?=\n\n<!-- /methods -->)", re.DOTALL)


def pages(root: Path = ROOT) -> dict[str, str]:
    """What the files have to say, by path from the root."""
    made = {f"docs/{page}": root_page(root, name) for name, page in ROOT_PAGES.items()}
    methods = (root / "docs/methods.md").read_text(encoding="utf-8")
    made["docs/methods.md"] = TABLE.sub(lambda _: overview(root), methods)
    made["mkdocs.yml"] = listed((root / "mkdocs.yml").read_text(encoding="utf-8"), root)
    return made


def root_page(root: Path, name: str) -> str:
    """A file from the root as a page: its links lead from docs/."""
    text = (root / name).read_text(encoding="utf-8")
    text = text.replace("](docs/", "](").replace("\\<", "&lt;")
    for other, page in ROOT_PAGES.items():
        text = text.replace(f"]({other}", f"]({page}")
    return f"<!-- Written by tools/site_pages.py from {name}: edit that. -->\n\n{text}"


def registered(root: Path = ROOT) -> list[str]:
    """Names of all methods, in the order of the registries."""
    texts = [(root / "src/nodenova" / path).read_text(encoding="utf-8") for path in REGISTRIES]
    return [name for text in texts for name in re.findall(r'^        "(\w+)": Entry\(', text, re.M)]


def overview(root: Path = ROOT) -> str:
    """The table of all methods, in the order in which they are registered."""
    lines = ["| | name | in a sentence |", "|---|---|---|"]
    for name in registered(root):
        page = f"methods/{name}.md"
        text = (root / "docs" / page).read_text(encoding="utf-8")
        said = re.search(r"\A---\ndescription: ((?:[^:\n]|:\S)+)\n---\n+# (.+)\n", text)
        if said is None:  # with a colon in it the front matter would be no YAML
            raise ValueError(f"docs/{page} has to begin with a description (no colon) and a title")
        lines.append(f"| [{said[2]}]({page}) | `{name}` | {said[1]} |")
    return "\n".join(lines)


def listed(config: str, root: Path = ROOT) -> str:
    """The configuration, with every page of FOLDERS in the navigation."""
    for folder in FOLDERS:
        found = sorted(path.stem for path in (root / "docs" / folder).glob("*.md"))
        names = registered(root) if folder == "methods" else found
        lines = "".join(f"      - {folder}/{name}.md\n" for name in names)
        config, times = re.subn(rf"(?:^      - {folder}/\S+\n)+", lines, config, flags=re.M)
        if times != 1:
            raise ValueError(f"mkdocs.yml has to list docs/{folder} in one place, not in {times}")
    return config


def stale(root: Path = ROOT) -> list[str]:
    """The files that do not say what they have to."""
    made = pages(root)
    return [path for path, text in made.items() if _text(root / path) != text]


def write(root: Path = ROOT) -> list[str]:
    """Write the files that are stale; their paths."""
    made, old = pages(root), stale(root)
    for path in old:
        (root / path).write_text(made[path], encoding="utf-8", newline="\n")
    return old


def navigation(config: str) -> list[tuple[str, list[str]]]:
    """Sections of the navigation, each with the paths of its pages."""
    nav = config.partition("\nnav:\n")[2]
    parts = re.findall(r"^  - (.+):\n((?:      - .+\n?)+)", nav, re.M)
    return [(title, re.findall(r"(\S+\.md)$", lines, re.M)) for title, lines in parts]


def summary(text: str) -> tuple[str, str]:
    """Title of a page and its description or first sentence.

    >>> summary("# Title\\n\\nOne [link](a.md)\\nhere. Two.\\n")
    ('Title', 'One link here.')
    """
    described = re.search(r"\A---\ndescription: (.+)\n---\n", text)
    unwanted = r"\A---\n.*?\n---\n|<!--.*?-->|^```.*?^```$"
    body = re.sub(unwanted, "", text, flags=re.S | re.M).strip()
    title, _, rest = body.partition("\n")
    if described:
        return title.removeprefix("# "), described[1]
    first = next((part for part in rest.split("\n\n") if re.match(r"\s*[\w`*]", part)), "")
    plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(first.split()))
    return title.removeprefix("# "), re.split(r"(?<=[.!?]) (?=[A-Z])", plain)[0].rstrip(":")


def publish(site: Path, root: Path = ROOT) -> int:
    """Put every page as Markdown into a built site, and llms.txt, which lists them; their number.

    A page `files.html` has its text in `files.md`.
    """
    docs = root / "docs"
    config = (root / "mkdocs.yml").read_text(encoding="utf-8")
    description = re.findall(r"^site_description: (.+)$", config, re.M)[0]
    lines = ["# nodenova", "", f"> {description}"]
    number = 0
    for title, paths in navigation(config):
        lines += ["", f"## {title}", ""]
        for path in paths:
            name, first = summary((docs / path).read_text(encoding="utf-8"))
            lines.append(f"- [{name}]({path})" + (f": {first}" if first else ""))
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(docs / path, site / path)
            number += 1
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return number


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__" and len(sys.argv) > 1:
    print(f"{publish(Path(sys.argv[1]))} pages as Markdown, and llms.txt, in {sys.argv[1]}")
elif __name__ == "__main__":
    for written in write():
        print(f"Written: {written}")
