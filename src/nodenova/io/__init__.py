"""Reading graphs from files and objects. Phase 2 may not import it, because it reads labels."""
