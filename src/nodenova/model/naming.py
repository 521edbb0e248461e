"""What a class is called before anybody has named it: its strongest features, in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nodenova.model.classes import unused_names

NAME_WORDS = 3
# Words that say nothing of a class: articles, pronouns, prepositions, conjunctions, auxiliaries.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about above after against all also am an and any are as at be because been before
        being below between both but by can could did do does doing down during each few for
        from further had has have having he her here hers him his how i if in into is it its
        itself just me more most my no nor not now of off on once only or other our out over own
        per same she should so some such than that the their them then there these they this
        those through to too under until up upon very via was we were what when where which
        while who whom why will with within without would you your
        """,
    )
)
_CUT = re.compile(r"(.*?)>=[-+.\deE]+$")  # year>=1998: a number in steps
_PART = re.compile(r".*\[\d+\]$")  # emb[17]: one part of a vector, or emb[17]>=0.3 with the above


def spoken(feature: str, is_word: bool, is_high: bool) -> tuple[int, str] | None:
    """How a feature is said in a name, and how gladly: words 0, categories 1, numbers 2, vectors 3.

    Args:
        feature: Its name: a word, column=value, column>=number, column[part], or a measurement.
        is_word: Whether nodes have it or not; else it is a measurement.
        is_high: Whether the class has more of it than others.

    Returns:
        None for what says nothing: a stop word, or the rest of a category.

    Examples:
        >>> spoken("genus", True, True), spoken("maintainer=GNU R", True, True)
        ((0, 'genus'), (1, 'GNU R'))
        >>> spoken("year>=1998", True, True), spoken("emb[17]", False, False)
        ((2, 'high year'), (3, 'low emb[17]'))
        >>> spoken("via", True, True), spoken("maintainer=other", True, True)
        (None, None)
    """
    high = "high" if is_high else "low"
    cut = _CUT.fullmatch(feature)
    column = cut[1] if cut else feature
    if _PART.fullmatch(column):
        return 3, f"{high} {column}"
    if cut or not is_word:
        return 2, f"{high} {column}"
    column, equals, value = feature.partition("=")
    if equals and column:
        return None if value in ("", "other") else (1, value)
    return None if feature.lower() in STOP_WORDS else (0, feature)


def name_of(features: Iterable[tuple[int, str]], taken: Sequence[str]) -> str:
    """The first few features in words, one of each stem, and more where that name is taken.

    Args:
        features: What `spoken` gave, the strongest first. Words go before categories, these before
            numbers; parts of a vector are named only where there is nothing else.
        taken: Names that other classes have.

    Examples:
        >>> name_of([(2, "high year"), (0, "tree"), (0, "trees"), (1, "GNU R")], [])
        'tree, GNU R, high year'
        >>> name_of([(3, "high emb[3]"), (0, "tree")], ["tree"])
        'tree (2)'
    """
    told = sorted(features, key=lambda one: one[0])
    if any(tier < 3 for tier, _ in told):
        told = [one for one in told if one[0] < 3]
    stems: dict[str, str] = {}
    for _, word in told:
        stems.setdefault(word.lower().removesuffix("s"), word)
    different = list(stems.values())
    if not different:
        return ""
    for length in range(min(NAME_WORDS, len(different)), len(different) + 1):
        name = ", ".join(different[:length])
        if name not in taken:
            return name
    return unused_names([name], taken)[0]
