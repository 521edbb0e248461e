"""Pictures that pages and the bench share: where nodes lie on a map, curves and confusion matrices as SVG, colours."""
