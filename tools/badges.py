"""Write the badges of the README as SVG files, from pyproject.toml: no network shows or makes them.

python tools/badges.py
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/images/badges"
HEIGHT = 20
CHARACTER = 6.6  # mean width of a letter in pixels


def badges(root: Path = ROOT) -> dict[str, tuple[str, str]]:
    """(left text, right text) by the name of the file."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = (root / "src/nodenova/__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.+)"', source, re.M)[0]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return {
        "version": ("nodenova", version),
        "python": ("python", f"{pythons[0]} – {pythons[-1]}"),
        "license": ("license", project["license"]),
        "typed": ("types", "mypy strict"),
    }


def badge(left: str, right: str) -> str:
    """A badge of two texts.

    >>> badge("python", "3.11").count("<text")
    2
    """
    a, b = (round(CHARACTER * len(text)) + 12 for text in (left, right))
    style = 'font-family="system-ui,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{a + b}" height="{HEIGHT}" role="img" '
        f'aria-label="{left}: {right}"><title>{left}: {right}</title>'
        f'<clipPath id="r"><rect width="{a + b}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{a}" height="{HEIGHT}" fill="#555"/>'
        f'<rect x="{a}" width="{b}" height="{HEIGHT}" fill="#3949ab"/></g>'
        f'<g {style}><text x="{a / 2:g}" y="14">{left}</text>'
        f'<text x="{a + b / 2:g}" y="14">{right}</text></g></svg>\n'
    )


def pages(root: Path = ROOT) -> dict[Path, str]:
    """Content of every badge by its path."""
    return {
        root / FOLDER.relative_to(ROOT) / f"{name}.svg": badge(*texts)
        for name, texts in badges(root).items()
    }


def main() -> None:
    """Write the files that changed."""
    for path, text in pages().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"Written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
