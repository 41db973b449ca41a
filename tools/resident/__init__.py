"""The caller's side of a resident evaluator: a process that keeps a GPU's workers between calls."""
