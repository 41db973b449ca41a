"""Sizes and counts as `kopt docs` shows them."""

MB = 1_000_000


def counted(count: int, noun: str) -> str:
    """Return `1 file`, `1,200 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
