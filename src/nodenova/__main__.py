"""`python -m nodenova` is the same as `nodenova`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C is answered also while it is being imported."""
    try:
        from nodenova.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped; nothing was written\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
