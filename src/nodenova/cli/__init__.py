"""The command line: a thin layer over the library, and the only place that prints. One file a group of commands."""

from __future__ import annotations

from importlib import import_module

from nodenova.cli.app import app, fail
from nodenova.errors import NodenovaError

__all__ = ["app", "main"]

# Importing a file adds its commands; --help lists them in this order.
for _name in ("demo", "files", "discover", "predict", "run", "bench", "new_method"):
    import_module(f"nodenova.cli.{_name}")


def main() -> None:
    """Run the command line: exit code 2 for wrong input or usage, 1 when the machine fails, 130 for Ctrl-C."""
    try:
        app()
    except NodenovaError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{error.filename or 'writing'}: {error.strerror or error}", 1)
