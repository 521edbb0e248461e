"""A model: what is known of the classes met so far, how it is edited and how it is stored."""
