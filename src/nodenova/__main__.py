"""`python -m nodenova` is the same as `nodenova`."""

from nodenova.cli import main

main()
