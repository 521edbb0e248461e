"""Put what a tool measured into a page, between `<!-- NAME -->` and `<!-- /NAME -->`."""

from __future__ import annotations

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Replace what is between the marks of `name`."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    content = page.read_text()
    if begin not in content or end not in content:
        raise SystemExit(f"{page} has no place for {name}: {begin} ... {end}")
    before, rest = content.split(begin, 1)
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{rest.split(end, 1)[1]}")
