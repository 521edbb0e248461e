"""What models, classes and runs look like in a notebook: small tables, and the page as a widget."""
