"""A number with its noun, for facts that people read: `1 block`, `2 blocks`."""


def counted(number: float, noun: str) -> str:
    """Return `number` in full if it is whole by type, else with 3 digits, and `noun` to fit.

    Args:
        number: How many.
        noun: In the singular, with a regular plural: block.
    """
    digits = str(number) if isinstance(number, int) else f"{number:.3g}"
    return f"{digits} {noun}" if digits == "1" else f"{digits} {noun}s"
