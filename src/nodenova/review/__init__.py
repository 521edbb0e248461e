"""The review page: discovered classes, the evidence for them, and the decisions about them."""
