"""The rounds of a run: what one process does to it, phase by phase, all decided from its store."""
