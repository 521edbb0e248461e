"""Reports: a run folder as one HTML page that opens offline. Reads rows and models, never trains."""
