"""Pictures that pages and the bench share.

Where nodes lie on a map, curves and confusion matrices as SVG, colors.
"""
