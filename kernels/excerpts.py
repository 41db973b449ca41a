"""A source line with a caret below it, for diagnostics."""

MAX_WIDTH = 120


def source_excerpt(source: str, line: int, column: int | None = None) -> str | None:
    """Return line `line` of `source`, and below it a caret at `column` if there is one.

    A long line is cut to the part around the column. None if `source` has no such line.

    Args:
        source: The whole text.
        line: 1-based.
        column: 1-based, in characters.
    """
    lines = source.split("\n")
    if not 1 <= line <= len(lines):
        return None
    text = lines[line - 1].rstrip("\r").replace("\t", " ")
    # What a terminal obeys instead of showing it must not come from a source.
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    start = 0
    if len(text) > MAX_WIDTH:
        start = max(0, min((column or 1) - MAX_WIDTH // 2, len(text) - MAX_WIDTH))
        text = text[start : start + MAX_WIDTH]
    if column is None:
        return text
    return f"{text}\n{' ' * (column - 1 - start)}^"
