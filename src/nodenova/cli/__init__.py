"""The command line: a thin layer over the library, and the only place that prints.

One file a group of commands.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from nodenova.cli.app import app, fail, renamed_option
from nodenova.errors import NodenovaError

__all__ = ["app", "main"]

# Importing a file adds its commands; --help lists them in this order.
_COMMANDS = (
    "demo",
    "inspect_graph",
    "prepare",
    "discover",
    "review",
    "diff",
    "predict",
    "run",
)
for _name in (*_COMMANDS, "bench", "new_method"):
    import_module(f"nodenova.cli.{_name}")

# Lines of docstrings are as long as lines of code; help is as wide as the terminal.
for _command in app.registered_commands:
    _said = inspect.getdoc(_command.callback) or ""
    _command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", _said)

# Options and words that go with the next release.
OLD_FLAGS = {"--unsure-below": "--min-confidence", "--visibility": "--setting"}
OLD_WORDS = {("--setting", "induced"): "inductive"}


def in_todays_words(arguments: Sequence[str]) -> list[str]:
    """Arguments with options by the names they have now.

    What was called otherwise is said on standard error.

    Examples:
        >>> in_todays_words(["run", "--setting", "induced", "--seeds=3"])
        ['run', '--setting', 'inductive', '--seeds=3']
    """
    now: list[str] = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if flag in OLD_FLAGS:
            renamed_option(flag, OLD_FLAGS[flag])
            flag = OLD_FLAGS[flag]
        value = OLD_WORDS.get((flag, value), value)
        word = OLD_WORDS.get((now[-1] if now else "", argument))
        now.append(word or flag + equals + value)
    return now


def main() -> None:
    """Run the command line.

    Exit code 2 for wrong input or usage, 1 when the machine fails, 130 for Ctrl-C.
    """
    sys.argv[1:] = in_todays_words(sys.argv[1:])
    try:
        app()
    except NodenovaError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{error.filename or 'writing'}: {error.strerror or error}", 1)
