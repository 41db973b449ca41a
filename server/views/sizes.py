"""Sizes of files in words."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024.0


def size_words(size_bytes: int) -> str:
    """Return `1.8 GiB`."""
    size = float(size_bytes)
    for unit in _UNITS[:-1]:
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"
