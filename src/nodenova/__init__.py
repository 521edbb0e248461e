"""nodenova: discover new classes of nodes on a graph.

The names in __init__.pyi are loaded on first use: `nodenova --help` does not import PyTorch.
"""

import lazy_loader

__version__ = "1.0.0rc1"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
