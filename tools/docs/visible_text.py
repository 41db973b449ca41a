"""Text as a person sees it, and about how many tokens a model counts in it."""

import unicodedata

BYTES_PER_TOKEN = 3
"""Mean over code and prose, rounded down so that the estimate is rather too high."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_BLANK = frozenset(
    chr(code)
    for codes in (
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xFFF0, 0xFFF9),
        range(0xE0000, 0xE1000),
    )
    for code in codes
)
"""Letters and marks by their category that nothing draws: variation selectors, fillers."""


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a language model counts in `text`."""
    return -(-len(text.encode("utf-8", errors="replace")) // BYTES_PER_TOKEN)


def shown(text: str) -> str:
    """Return `text` without what a terminal or a reader would obey instead of seeing.

    Control characters, bidirectional overrides and letters that nothing draws become the
    replacement character: a model would read what no person sees.
    """
    invisible = {
        ord(letter): "\N{REPLACEMENT CHARACTER}"
        for letter in set(text)
        if letter not in "\n\t" and is_invisible(letter)
    }
    return text.translate(invisible) if invisible else text


def is_invisible(letter: str) -> bool:
    """Say whether nobody sees `letter`, blanks of every width aside."""
    return unicodedata.category(letter) in _INVISIBLE or letter in _BLANK
