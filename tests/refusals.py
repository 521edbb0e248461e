"""What every refusal is: an error of ours, in one sentence."""

from __future__ import annotations

from nodenova.errors import NodenovaError


def one_sentence(error: BaseException, most: int = 300) -> str:
    """The message of an error, after a check that it is one line of at most `most` characters."""
    text = str(error)
    assert isinstance(error, NodenovaError), repr(error)
    assert "\n" not in text
    assert len(text) <= most, text
    return text
