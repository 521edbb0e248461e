"""Users' files, in and out. Labels pass through here: phase 2 may not import it."""
