"""A source without its comments: what a compiler sees of it, with every line where it was.

Comments do not compute, and may say anything to whoever reads them. The header, the comment that
opens a candidate, is kept but for its note: it is the launch plan.
"""

import re
from collections.abc import Iterator

from kopt.kernels.source_lexer import logical_lines

_HEADER_END = "*/"
_LEAST_LETTERS = 3  # of a whole line: a bracket stands everywhere
_PART_LETTERS = 12  # of a part of one: `int` and `float sum` stand everywhere, too
_REMARK = re.compile(r"(?:^|(?<=\s))#.*?(?=\*/|$)")
_BLANKED = re.compile(r"(?!\\\r?\n)[^\n]")  # all but the ends of lines, and what continues them


def without_comments(source: str) -> str:
    """Return `source` with blanks in place of comments; of the header only its note goes."""
    end = source.find(_HEADER_END)
    body_from = 0 if end < 0 else end + len(_HEADER_END)
    shown = [_without_note(source[:body_from])]
    at = body_from
    for start, stop in _spans(source):
        if stop > at:
            shown += [_BLANKED.sub(" ", source[at:start]), source[max(start, at) : stop]]
            at = stop
    return "\n".join(line.rstrip() for line in "".join(shown).split("\n"))


def _without_note(header: str) -> str:
    """Return a header without what its author says: the note, and what follows a # sign."""
    shown: list[str] = []
    is_note = False
    for line in header.split("\n"):
        if line[:1].strip():
            is_note = line.startswith("note:")
        shown.append("" if is_note and not line.endswith(_HEADER_END) else _REMARK.sub("", line))
    return "\n".join(shown)


def quotes(source: str, line: str) -> bool:
    """Return whether `line`, whatever its blanks, is a line of `source` or a telling part of one.

    Args:
        source: As `without_comments` gives it.
        line: What is said to stand there.
    """
    wanted = _squeezed(line)
    letters = sum(letter.isalnum() for letter in wanted)
    rows = map(_squeezed, source.split("\n"))
    if letters < _PART_LETTERS:
        return letters >= _LEAST_LETTERS and wanted in rows
    return any(wanted in row for row in rows)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _spans(source: str) -> Iterator[tuple[int, int]]:
    """Yield where each token begins and ends; one with a splice inside ends where the next begins.

    So more is shown than is code where in doubt, never less.
    """
    tokens = [token for line in logical_lines(source) for token in line.tokens]
    nexts = [*(token.offset for token in tokens[1:]), len(source)]
    for token, following in zip(tokens, nexts, strict=True):
        end = token.offset + len(token.text)
        yield token.offset, end if source[token.offset : end] == token.text else following
