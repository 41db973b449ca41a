"""Suites of problems: suite.yaml, one record a task, scores as the field counts them."""
