"""Several machines as one, by Ray: joining them, a graph split by rows over them."""
