"""A number with its noun, for facts that people read: `1 block`, `2 blocks`."""


def counted(number: float, noun: str) -> str:
    """Return `number`, with 3 digits unless it is whole by type, and `noun` to fit: `1,200 files`.

    Args:
        number: How many.
        noun: In the singular, with a regular plural: block.
    """
    digits = f"{number:,}" if isinstance(number, int) else f"{number:.3g}"
    return f"{digits} {noun}" if digits == "1" else f"{digits} {noun}s"
