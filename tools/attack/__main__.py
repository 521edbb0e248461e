"""`python -m tools.attack`."""

import sys

from .run import main

sys.exit(main())
