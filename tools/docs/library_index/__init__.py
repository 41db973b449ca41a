"""The index over production code: built once by `kopt docs build`, then read by every search."""
