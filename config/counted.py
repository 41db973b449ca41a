"""Numbers with their noun, and long lists of names cut short, for facts that people read."""

from collections.abc import Sequence


def counted(number: float, noun: str) -> str:
    """Return `number`, with 3 digits unless it is whole by type, and `noun` to fit: `1,200 files`.

    Args:
        number: How many.
        noun: In the singular, with a regular plural: block.
    """
    digits = f"{number:,}" if isinstance(number, int) else f"{number:.3g}"
    return f"{digits} {noun}" if digits == "1" else f"{digits} {noun}s"


def few_of(names: Sequence[str], most: int = 10) -> str:
    """Return the first of `names` and how many more there are: `a, b and 3 more`."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{rest}"
