"""Text that a terminal, an editor or a browser shows as it stands.

Control characters (C0, C1 and what begins an ANSI sequence) and invisible ones (changes of writing
direction, zero-width characters, further line ends) can make a text look like another one.
"""

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_plain(text: str, but: str = "") -> bool:
    """Return whether `text` has no control character and no invisible one, those in `but` aside."""
    return text.isprintable() or not any(_is_unseen(letter, but) for letter in text)


def plain(text: str, but: str = "\n\t") -> str:
    """Return `text` with a replacement character for each that `is_plain` refuses."""
    if is_plain(text, but):
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if _is_unseen(letter, but) else letter for letter in text
    )


def _is_unseen(letter: str, but: str) -> bool:
    return letter not in but and unicodedata.category(letter) in _UNSEEN
