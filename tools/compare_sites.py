"""Do two builds of the site have the same pages, with the same words, and none that is empty?

python tools/compare_sites.py build/site build/site-zensical
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from html import unescape
from pathlib import Path

MIN_WORDS = 20  # a page with fewer has lost what it should say
ARTICLE = re.compile(r"<article\b[^>]*>(.*?)</article>", re.DOTALL)
NOT_FOUND = "404.html"  # each builder's own
LIVE = "live/"  # pages of runs, which both builders copy


def pages_of(site: Path) -> dict[str, Counter[str]]:
    """The words of every page, by its path."""
    found = {path.relative_to(site).as_posix(): path for path in sorted(site.rglob("*.html"))}
    return {name: words_of(path) for name, path in found.items() if is_built(name)}


def is_built(name: str) -> bool:
    """Whether a builder made a page from Markdown."""
    return name != NOT_FOUND and not name.startswith(LIVE)


def words_of(page: Path) -> Counter[str]:
    """How often each word stands in a page, navigation aside."""
    article = ARTICLE.search(page.read_text(encoding="utf-8"))
    text = "" if article is None else re.sub(r"<[^>]+>", " ", article[1])
    return Counter(unescape(text).split())


def differences(first: Path, second: Path) -> list[str]:
    """What is wrong, a sentence each; nothing if the sites are the same."""
    sites = {first: pages_of(first), second: pages_of(second)}
    said = [f"{site}: there is no page" for site, pages in sites.items() if not pages]
    said += [
        f"{site / name}: almost empty, {words.total()} words"
        for site, pages in sites.items()
        for name, words in pages.items()
        if words.total() < MIN_WORDS
    ]
    one, other = sites.values()
    said += [f"{second}: {name} is missing" for name in sorted(one.keys() - other.keys())]
    said += [f"{first}: {name} is missing" for name in sorted(other.keys() - one.keys())]
    for name in sorted(one.keys() & other.keys()):
        apart = (one[name] - other[name]) + (other[name] - one[name])
        if apart:
            example = ", ".join(sorted(apart)[:3])
            said.append(f"{name}: {apart.total()} words are in one site only, such as {example}")
    return said


def main(first: str, second: str) -> None:
    """Print the differences; exit code 1 if there are any."""
    wrong = differences(Path(first), Path(second))
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{len(pages_of(Path(first)))} pages, word for word the same in both builds.")


if __name__ == "__main__":
    main(*sys.argv[1:])
