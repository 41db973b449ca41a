"""Strings that may go into a reply: tamed, and marked by type when they come from a candidate.

A kernel's names, notes and compiler messages are data that a hostile author can choose. They are
shown in quotes or as an indented block, without control characters, on one line unless they are a
block, and never longer than a reply can bear; what is left out is counted.
"""

import re
from pathlib import Path, PurePath

_LOOKED_AT = 4  # times what is shown: taming shortens runs of blanks
MARK = "\N{REPLACEMENT CHARACTER}"
_PATH_BEFORE = r"(?:(?<![\w./~-])|(?<=://))"
_PATH_AFTER = r"(?![\w-]|\.\w)"
_SECRET = re.compile(r"\b(?:sk-ant|pcsk|ghp|hf)[-_][\w-]{8,}|(?i:(?<=bearer )\S{8,})")
_CLIPPED = re.compile(r"\.\.\. \[([\d,]+) more characters\]$")
_MARKS = re.compile(f"{MARK}{{4,}}")
_SPACES = re.compile(r"\s+")


class Quoted(str):
    """One line that a candidate, or a tool that speaks of it, wrote."""


class QuotedLines(str):
    """Several lines of the same kind: a place in a source."""


def plain(text: str) -> str:
    """Return `text` on one line: no control characters, no home folder of this user, no key."""
    return _SPACES.sub(" ", _without_places(_visible(text))).strip()


def plain_beginning(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text` on one line, and how many are left out.

    Looks at no more of it than that takes: a message may have millions.
    """
    return clipped(plain(clipped(text, _LOOKED_AT * limit)), limit)


def lines(text: str) -> str:
    """Return `text` with its lines kept, each of them tamed."""
    rows = re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)
    kept = "\n".join(_visible(row.replace("\t", "    ")).rstrip() for row in rows)
    return _without_places(kept).strip("\n")


def clipped(text: str, limit: int) -> str:
    """Return the beginning of `text`, and how many characters are left out; short texts as is."""
    if len(text) <= limit:
        return text
    before = _CLIPPED.search(text)
    length = len(text)
    if before is not None:  # cut once already: count what was left out then
        length = before.start() + int(before[1].replace(",", ""))
        limit = min(limit, before.start())
    return f"{text[:limit]}... [{length - limit:,} more characters]"


def lines_beginning(text: str, most: int, width: int) -> str:
    """Return at most `most` lines of at most `width` characters, and what is left out of them."""
    looked_at = _LOOKED_AT * most * width
    rows = lines(text[:looked_at]).split("\n")
    kept = [clipped(row, width) for row in rows[:most]]
    left_out = max(0, len(rows) - most) + text.count("\n", looked_at)
    if left_out:
        kept.append(f"... [{left_out:,} more lines]")
    elif len(text) > looked_at:
        kept.append(f"... [{len(text) - looked_at:,} more characters]")
    return "\n".join(kept)


def short_id(identity: str) -> str:
    """Return the first 12 hex digits of a hash: enough to tell candidates apart."""
    return identity[:12]


def tune_words(tune: dict[str, int]) -> str:
    """Return tune values as `A=1,B=2`; empty if there are none."""
    return ",".join(f"{name}={value}" for name, value in tune.items())


def file_name(path: str) -> str:
    """Return where a file lies without saying whose machine it is: its last two parts."""
    return "/".join(PurePath(path).parts[-2:]).removeprefix("//")


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return _MARKS.sub(_counted, "".join(map(_harmless, text)))


def _counted(marks: re.Match[str]) -> str:
    return f"{MARK}[{len(marks[0]):,} times]"


def _harmless(letter: str) -> str:
    """Return a letter as it is if it can be seen, spaces as a space, anything else as a mark."""
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else MARK


def _without_places(text: str) -> str:
    home = str(Path.home())
    if home != "/" and home in text:
        text = re.sub(_PATH_BEFORE + re.escape(home) + _PATH_AFTER, "~", text)
    return _SECRET.sub("[left out]", text)
