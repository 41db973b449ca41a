"""One step of a search: a single round on a run, and its result."""
