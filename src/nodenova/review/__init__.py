"""The review application: what was found, shown to a person, and what that person decides."""
