"""Characters that make a text look like another one."""

import pytest

from kopt.config.plain_text import is_plain, plain


@pytest.mark.parametrize("text", ["", "1.25x", "a b", "größer — 数"])
def test_what_is_seen_stays(text: str) -> None:
    assert is_plain(text) and plain(text) == text


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x7f", "\x85", "\x9b", "\u202e", "\u2028"])
def test_what_is_unseen_is_replaced(letter: str) -> None:
    assert not is_plain(f"a{letter}b")
    assert plain(f"a{letter}b\n\t") == "a\N{REPLACEMENT CHARACTER}b\n\t"


def test_a_line_is_one_line() -> None:
    assert plain("a\nb", "") == "a\N{REPLACEMENT CHARACTER}b"
