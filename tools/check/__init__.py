"""Correctness: oracle outputs, gates and the check stage."""
