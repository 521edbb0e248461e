"""Files and folders: written whole or not at all, read through one gate."""
