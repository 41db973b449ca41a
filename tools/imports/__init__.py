"""Benchmarks of others as suites: their checkouts read, each task imported as `kopt new` does."""
