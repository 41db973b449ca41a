"""What to try next: suggestions, fitting notes, documents read for a run."""
