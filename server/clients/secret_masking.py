"""The diff of a client's file as it may be shown: secrets of other entries are masked.

What is shown may end in a screenshot or in a model's context, and other servers' tokens are none of
kopt's business. A secret is told by its name, by its place in an address or header, or by its look;
too much is masked rather than too little. References such as `${NAME}` are no secrets and stay.
"""

import difflib
import re
from collections.abc import Callable, Iterator

MASK = "***"

# Lengths are bounded, so that a file of megabytes without blanks is read in one go.
_WORD = (
    r"(?:token|secret|passw|passphrase|passcode|pass(?![a-z])|pwd|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|(?<![a-z])key(?![a-z])|credential|authorization|auth(?![a-z])|bearer|cookie)"
    r"[\w.-]{0,64}"
)
_NAME = r"[\w.-]{0,64}" + _WORD
_STRING = r"""("(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_NAMED = re.compile(
    rf"""((?:^|["'\s,{{+-])["']?{_NAME}["']?\s*[:=]\s*){_STRING}""", re.IGNORECASE | re.MULTILINE
)
_AFTER_FLAG = re.compile(rf"""(["']-{{1,2}}{_NAME}["']\s*,\s*)(?!["']--){_STRING}""", re.IGNORECASE)
_INSIDE = re.compile(rf"""({_WORD}(?:=|\s+=\s*|:\s+))([^\s"'][^"'\r\n]*)""", re.IGNORECASE)
_SCHEME = re.compile(r"""(\b(?:Bearer|Basic)\s+)([^\s"'${}]+)""", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"""((?<=://))([^/\s"'@][^/\s"']*)(?=@)""")
_LONG = re.compile(r"(?<![\w/.~@+-])()([A-Za-z0-9+_.-]{20,}+={0,2})(?![\w/])")
_REFERENCE = re.compile(r"\$\{?\w+(?::\w+)?\}?|\{\w+:\w+\}")
_KNOWN_PREFIX = re.compile(r"sk-|gh[opsu]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|hf_|npm_|eyJ")
_UUID = re.compile(r"(?:[0-9a-f]+-){4}[0-9a-f]{12}", re.IGNORECASE)
_LEAST_PIECE = 16
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def masked_text(text: str) -> str:
    """Return `text` with every secret in it masked; its lines stay as many."""
    for pattern in (_NAMED, _AFTER_FLAG, _IN_ADDRESS, _SCHEME, _INSIDE):
        text = _masked(pattern, _is_value, text)
    return _masked(_LONG, _looks_random, text)


def masked_diff(before: str, after: str, names: tuple[str, str]) -> str:
    """Return the unified diff of two texts called `names`, its secrets masked; "" for no change.

    Lines are compared as they are, so that a changed secret is seen to have changed.
    """
    old, new = _Shown(before), _Shown(after)
    return "".join(_shown_lines(difflib.unified_diff(old.lines, new.lines, *names), old, new))


class _Shown:
    """The lines of a text, and how each is shown."""

    def __init__(self, text: str) -> None:
        self.lines = _lines(text)
        self.masked = _lines(masked_text(text))


def _lines(text: str) -> list[str]:
    """Return the lines of `text`; what else ends a line may stand in a secret, which ends none."""
    *whole, rest = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([rest] if rest else [])]


def _shown_lines(diff: Iterator[str], old: _Shown, new: _Shown) -> Iterator[str]:
    """Yield the diff with masked lines in the place of those that were compared."""
    old_at = new_at = -1  # no hunk yet: the names of the files
    for line in diff:
        hunk = _HUNK.match(line)
        if hunk is not None:
            # An empty side is numbered by the line before it; it has no line to show.
            old_at, new_at = int(hunk[1]) - 1, int(hunk[2]) - 1
            yield line
        elif old_at < 0 and new_at < 0:
            yield line
        else:
            sign = line[0]
            shown = new.masked[new_at] if sign == "+" else old.masked[old_at]
            old_at, new_at = old_at + (sign != "+"), new_at + (sign != "-")
            yield sign + (shown if shown.endswith("\n") else f"{shown}\n")


def _masked(pattern: re.Pattern[str], hides: Callable[[str, str], bool], text: str) -> str:
    def hidden(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if not hides(name, value):
            return match[0]
        quote = value[0] if value[0] in "\"'" else ""
        return f"{name}{quote}{MASK}{quote}"

    return pattern.sub(hidden, text)


def _is_value(name: str, value: str) -> bool:
    """Return whether `value` is a secret: not the name of a variable, nor a reference to one."""
    is_name = re.search(r"[_-]env(?:[_-]var)?\b", name, re.IGNORECASE) is not None
    return not is_name and not _REFERENCE.search(value) and value.strip("\"'") != ""


def _looks_random(_: str, text: str) -> bool:
    """Return whether `text` looks like a token and not like words."""
    if _KNOWN_PREFIX.match(text) or _UUID.fullmatch(text):
        return True
    return any(
        len(piece) >= _LEAST_PIECE and any(map(str.isdigit, piece)) and any(map(str.isalpha, piece))
        for piece in re.split(r"[-_.=]", text)
    )
