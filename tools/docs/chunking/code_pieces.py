"""A long item in pieces of 90 lines that overlap, so that each can be quoted and ranked."""

MOST_LINES = 90
OVERLAP_LINES = 8


def pieces(start_line: int, end_line: int) -> list[tuple[int, int]]:
    """Return the (first, last) lines of the pieces; one piece up to MOST_LINES lines."""
    found: list[tuple[int, int]] = []
    first = start_line
    while end_line - first + 1 > MOST_LINES:
        found.append((first, first + MOST_LINES - 1))
        first += MOST_LINES - OVERLAP_LINES
    return [*found, (first, end_line)]
