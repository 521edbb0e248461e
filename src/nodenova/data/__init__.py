"""Where labels live.

Phase 2 cannot reach a label: nothing in `discovery`, `methods`, `prism`, `model`, `encoders`, `nn`
or `losses` may import from here.
"""
