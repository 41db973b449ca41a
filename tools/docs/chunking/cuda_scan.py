"""CUDA C++ as units by the brace scanner: without a grammar, but with an eye for directives.

Of an `#if` with braces the scanner follows one branch, where a grammar sees brackets that do not
match.
"""

from collections.abc import Sequence
from dataclasses import replace

from .brace_scanner import blanked, code_items
from .cuda_names import before_body, named_by, signature_of
from .sizes import disjoint
from .units import SourceLines, Unit, plain_comment

LONG_TYPE = 90
"""Lines; longer types are given member by member."""
LONG_MEMBER = 10
"""Lines; longer members of a long type are units of their own."""
_LONGEST_HEAD = 60
"""Lines."""
_LONGEST_HEAD_CHARACTERS = 6_000


def scanned_units(source: SourceLines, first: int = 1, last: int | None = None) -> list[Unit]:
    """Return what the scanner finds in lines `first` to `last`, in order."""
    text = "\n".join(source.lines[first - 1 : last])
    code = blanked(text).split("\n")
    units: list[Unit] = []
    for item in code_items(text):
        at, end = item.start_line + first - 1, item.end_line + first - 1
        code_at = next((line for line in range(at, end + 1) if source.is_code[line - 1]), at)
        start = source.comment_start(code_at)
        head, has_body = _head(code[code_at - first : end - first + 1])
        signature = signature_of(head)
        named = named_by(signature) if has_body else None
        units.append(
            Unit(
                kind=named[0] if named else "decl",
                symbol=named[1] if named else item.symbol or None,
                start_line=start,
                end_line=end,
                scope=tuple(name for part in item.scope for name in part.split("::")),
                comment=plain_comment(source.lines[start - 1 : code_at - 1]),
                signature=signature,
            )
        )
    return units


def opened(unit: Unit, source: SourceLines) -> list[Unit]:
    """Return `unit`; a long type without its long members, and these."""
    if unit.kind != "struct" or unit.lines <= LONG_TYPE:
        return [unit]
    lines = range(unit.start_line, unit.end_line + 1)
    brace = next((at for at in lines if "{" in source.lines[at - 1] and source.is_code[at - 1]), 0)
    if not brace:
        return [unit]
    members: list[Unit] = []
    for member in scanned_units(source, brace + 1, unit.end_line - 1):
        is_long = member.lines > LONG_MEMBER or member.kind == "kernel"
        if is_long and member.kind != "decl" and member.start_line > brace:
            symbol = f"{unit.symbol}::{member.symbol}"
            scope = (*unit.scope, unit.symbol or "")
            members.append(replace(member, symbol=symbol, scope=scope))
    members = disjoint(members)
    folded = tuple((member.start_line, member.end_line) for member in members)
    return [replace(unit, folded=folded), *members]


def _head(lines: Sequence[str]) -> tuple[str, bool]:
    """Return (what stands before the body, whether there is one); `lines` hold code alone."""
    text = "\n".join(lines[:_LONGEST_HEAD])[:_LONGEST_HEAD_CHARACTERS]
    head = before_body(text)
    return head, text.startswith("{", len(head))
