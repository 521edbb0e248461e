"""The command line: a thin layer over the library, and the only place that prints."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

from nodenova.cli.app import app, fail
from nodenova.errors import NodenovaError

__all__ = ["app", "main"]

# Importing a file adds its commands; --help lists them in this order.
_FILES = (
    "demo",
    "inspect_graph",
    "prepare",
    "discover",
    "review",
    "predict",
    "run",
    "bench",
    "protocols",
    "tune",
    "new_method",
)
for _name in _FILES:
    import_module(f"nodenova.cli.{_name}")

# Docstrings are wrapped like code; help fills the terminal.
_apps = [app, *(group.typer_instance for group in app.registered_groups)]
for _command in (each for one in _apps if one for each in one.registered_commands):
    _text = inspect.getdoc(_command.callback) or ""
    _command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", _text)


def main() -> None:
    """Run the command line; exit with 2 for wrong input, 1 if the machine fails, 130 for Ctrl-C."""
    try:
        app()
    except NodenovaError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{error.filename or 'writing'}: {error.strerror or error}", 1)
