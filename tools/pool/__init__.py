"""The evaluators of a Ray cluster as one device here; Ray itself is in a process of its own."""
