"""Near matches of an unknown name, for messages that ask "did you mean ...?".

Light, because `kopt --help` and every reader of YAML stand on it.
"""

from collections.abc import Iterable, Sequence

from .counted import few_of

_MOST_NAMED = 40
"""More names than these fill a terminal and hide the message."""
_LONGEST = 200
"""Characters of a name that are compared: difflib's time grows with the square of its length."""


def close_names(
    name: str, known: Iterable[str], most: int = 3, likeness: float = 0.6
) -> tuple[str, ...]:
    """Return the names that are spelled most like `name`, the likest first.

    Args:
        name: What was written.
        known: What could have been meant.
        most: How many are returned at most.
        likeness: The ratio of difflib from which a name is returned, 0 to 1.
    """
    from difflib import get_close_matches  # imported by a misspelt name only

    return tuple(get_close_matches(name[:_LONGEST], list(known), n=most, cutoff=likeness))


def did_you_mean(names: Sequence[str]) -> str:
    """Return "did you mean a or b?"."""
    return f"did you mean {either(names)}?"


def near_matches(name: str, known: Iterable[str]) -> str:
    """Return "did you mean a or b?", else what is known, a long list cut short."""
    options = sorted(known)
    close = close_names(name, options)
    return did_you_mean(close) if close else f"known: {few_of(options, _MOST_NAMED) or 'none'}"


def either(names: Sequence[str]) -> str:
    """Return `names` as alternatives: "a", "a or b", "a, b or c"."""
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
