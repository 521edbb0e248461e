"""The site is plain Markdown that two builders build alike: nothing of ours runs inside them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from nodenova import METHODS
from nodenova.supervised import LABELLED
from tools import badges, compare_sites, gallery, site_pages
from tools.compare_sites import MIN_WORDS, differences
from tools.site_pages import FOLDERS, ROOT_PAGES, overview, registered, stale, write

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def navigation() -> list[str]:
    """Every page in the navigation, in its order."""

    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        return [page for part in parts for page in pages(part)]  # type: ignore[attr-defined]

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return pages(config["nav"])


def test_builders_need_no_plug_in_of_ours() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert "hooks" not in config
    plugins = [next(iter(p)) if isinstance(p, dict) else p for p in config["plugins"]]
    assert plugins == ["search", "mkdocstrings"]
    # No page that only such a plug-in could fill.
    filled = [path.name for path in DOCS.rglob("*.md") if "--8<--" in path.read_text("utf-8")]
    assert filled == []


def test_every_page_is_in_the_navigation_once() -> None:
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(navigation()) == pages


def test_pages_that_follow_from_other_files_are_up_to_date() -> None:
    """If not: `make docs`, or `python tools/site_pages.py`, writes them."""
    assert stale() == []


def test_methods_are_listed_in_the_order_of_the_registry() -> None:
    names = [*METHODS, *LABELLED]
    assert registered() == names
    assert [p for p in navigation() if p.startswith("methods/")] == [
        f"methods/{name}.md" for name in names
    ]
    lines = overview().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == names
    assert ["†" in line.split("|")[1] for line in lines] == [name in LABELLED for name in names]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The parts of a checkout that pages follow from."""
    for name in ("mkdocs.yml", *ROOT_PAGES):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "*.svg"))
    for path in site_pages.REGISTRIES:
        (tmp_path / "src/nodenova" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src/nodenova" / path, tmp_path / "src/nodenova" / path)
    write(tmp_path)
    return tmp_path


def test_a_change_elsewhere_makes_pages_stale_until_they_are_written(copy: Path) -> None:
    assert stale(copy) == []
    changelog = copy / "CHANGELOG.md"
    changelog.write_text("Read [how](docs/files.md), [more](CONTRIBUTING.md#x).\n", "utf-8")
    (copy / "docs/decisions/0999-more.md").write_text("# 999. More\n", "utf-8")
    (copy / "docs/reproducibility.md").unlink()
    assert write(copy) == ["docs/reproducibility.md", "docs/changelog.md", "mkdocs.yml"]
    assert stale(copy) == []
    page = (copy / "docs/changelog.md").read_text("utf-8")
    assert page.endswith("Read [how](files.md), [more](contributing.md#x).\n")
    lines = (copy / "mkdocs.yml").read_text("utf-8").splitlines()
    before = max(line for line in lines if re.search(r"decisions/00", line))
    assert lines[lines.index(before) + 1].strip() == "- decisions/0999-more.md"


def test_a_new_method_is_listed_once_its_page_says_what_it_does(copy: Path) -> None:
    registry = copy / "src/nodenova/methods/registry.py"
    text = registry.read_text("utf-8")
    before = '        "autonovel": Entry('
    registry.write_text(text.replace(before, f'        "mine": Entry("m:M", "Mine"),\n{before}'))
    page = copy / "docs/methods/mine.md"
    page.write_text("---\ndescription: what: it does\n---\n\n# Mine\n", "utf-8")
    with pytest.raises(ValueError, match=r"docs/methods/mine\.md has to begin with a description"):
        write(copy)
    page.write_text("---\ndescription: what it does\n---\n\n# Mine\n", "utf-8")
    assert write(copy) == ["docs/methods.md", "mkdocs.yml"]
    assert "| [Mine](methods/mine.md) | `mine` | what it does |" in (
        copy / "docs/methods.md"
    ).read_text("utf-8")
    assert (
        "      - methods/sword.md\n      - methods/mine.md\n" in (copy / "mkdocs.yml").read_text()
    )


def test_a_folder_that_the_navigation_lists_twice_or_never_is_refused(copy: Path) -> None:
    text = (copy / "mkdocs.yml").read_text("utf-8")
    assert set(FOLDERS) == {"methods", "decisions", "experiments"}
    with pytest.raises(ValueError, match="docs/experiments in one place, not in 2"):
        site_pages.listed(f"{text}  - Again:\n      - experiments/prism.md\n", copy)


def test_the_gallery_shows_every_picture_and_stays_small() -> None:
    page = (DOCS / "gallery.md").read_text("utf-8")
    shown = re.findall(r"!\[[^]]+\]\((images/gallery/[\w-]+\.png)\)", page)
    assert shown == [f"images/gallery/{name}.png" for name in gallery.PICTURES]
    assert {path.name for path in gallery.IMAGES.iterdir()} == {Path(name).name for name in shown}
    assert sum((DOCS / name).stat().st_size for name in shown) <= gallery.MAX_BYTES
    assert page.startswith(gallery.HEAD)
    for name in gallery.PICTURES:
        assert f"\n## {gallery.heading_of(name)}\n\n" in page


def test_the_gallery_has_live_pages_that_stay_small_and_load_nothing() -> None:
    page = (DOCS / "gallery.md").read_text("utf-8")
    linked = {Path(name) for name in re.findall(r"\]\((live/[\w-]+\.html)\)", page)}
    names = {
        gallery.live_name(picture.title) for picture in gallery.PICTURES.values() if picture.is_live
    }
    assert linked == {Path("live") / name for name in names}
    assert {path.name for path in gallery.LIVE.iterdir()} == names
    assert sum((DOCS / path).stat().st_size for path in linked) <= gallery.MAX_LIVE_BYTES
    for path in linked:
        text = (DOCS / path).read_text("utf-8")
        assert not re.search(r"""(?:src|href)=["']?https?:""", text)
        assert "Content-Security-Policy" in text


def test_every_page_is_there_as_markdown_and_in_llms_txt(tmp_path: Path) -> None:
    number = site_pages.publish(tmp_path)
    listed = re.findall(
        r"^- \[[^]]+\]\((\S+\.md)\)", (tmp_path / "llms.txt").read_text("utf-8"), re.M
    )
    assert listed == navigation()
    assert number == len(listed)
    assert all((tmp_path / page).read_bytes() == (DOCS / page).read_bytes() for page in listed)
    assert (tmp_path / "llms.txt").read_text("utf-8").startswith("# nodenova\n\n> Discover")


def test_a_summary_is_a_description_or_the_first_sentence() -> None:
    assert site_pages.summary("---\ndescription: what\n---\n\n# T\n\nText.\n") == ("T", "what")
    page = "<!-- by a tool -->\n\n# T\n\n"
    page += "```python\ncode\n```\n\n| a |\n\nOne [link](a.md)\nhere. Two.\n"
    assert site_pages.summary(page) == ("T", "One link here.")
    assert site_pages.summary("# T\n\n## U\n") == ("T", "")


def test_badges_are_up_to_date_and_need_no_network() -> None:
    """If not: `python tools/badges.py`."""
    made = badges.pages()
    assert {path: path.read_text("utf-8") for path in made} == made
    assert set(badges.FOLDER.iterdir()) == made.keys()
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme)
    assert {str(path.relative_to(ROOT)) for path in made} <= set(shown)
    assert not [image for image in shown if "://" in image]


def site(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        path = folder / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<nav>menu</nav><article class='x'>{text}</article>", "utf-8")
    return folder


LONG = "<p>word &amp; " * MIN_WORDS


def test_sites_with_the_same_pages_and_words_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = site(tmp_path / "one", index=LONG, about=f"<h1>About</h1>{LONG}")
    other = site(tmp_path / "other", index=LONG, about=f"<h1 id='a'>About</h1>\n{LONG}")
    site(tmp_path / "other", **{"404": "not here", "live/run": "a page of a run"})
    assert differences(one, other) == []
    compare_sites.main(str(one), str(other))
    assert "2 pages, word for word the same" in capsys.readouterr().out


def test_a_lost_page_an_empty_page_and_a_lost_word_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = site(tmp_path / "one", index=LONG, a=LONG, b=f"{LONG} kept", c=LONG)
    other = site(tmp_path / "other", index=LONG, b=LONG, c="", d=LONG)
    said = differences(one, other)
    assert said[0] == f"{other / 'c.html'}: almost empty, 0 words"
    assert f"{other}: a.html is missing" in said
    assert f"{one}: d.html is missing" in said
    assert "b.html: 1 words are in one site only, such as kept" in said
    with pytest.raises(SystemExit, match="1"):
        compare_sites.main(str(one), str(other))
    assert "a.html is missing" in capsys.readouterr().err
    assert differences(one, tmp_path / "nowhere")[0] == f"{tmp_path / 'nowhere'}: there is no page"
