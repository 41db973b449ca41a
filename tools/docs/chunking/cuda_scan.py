"""CUDA C++ as units by the brace scanner: without a grammar, but with an eye for directives.

Of an `#if` with braces the scanner follows one branch, where a grammar sees brackets that do not
match.
"""

from collections.abc import Sequence
from dataclasses import replace

from kopt.tools.docs.cuda_chunks import code_items

from .cuda_names import (
    before_body,
    function_kind,
    function_name,
    signature_of,
    type_name,
    without_comments,
)
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
    units: list[Unit] = []
    for item in code_items(text):
        at, end = item.start_line + first - 1, item.end_line + first - 1
        code_at = next((line for line in range(at, end + 1) if source.is_code[line - 1]), at)
        start = source.comment_start(code_at)
        signature = signature_of(_head(source, code_at, end))
        is_function = item.kind in ("kernel", "device", "host")
        name = function_name(signature) if is_function else type_name(signature)
        units.append(
            Unit(
                kind=function_kind(signature) if is_function else item.kind,
                symbol=name or item.symbol or None,
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
    return with_members(unit, scanned_units(source, brace + 1, unit.end_line - 1), brace)


def with_members(unit: Unit, members: Sequence[Unit], head_line: int) -> list[Unit]:
    """Return a type without those of `members` that are long, and these as `Owner::member`.

    Args:
        unit: The type.
        members: What is in it, in order.
        head_line: Where its body begins.
    """
    kept: list[Unit] = []
    last = head_line
    for member in members:
        is_long = member.lines > LONG_MEMBER or member.kind == "kernel"
        if is_long and member.kind != "decl" and last < member.start_line:
            symbol = f"{unit.symbol}::{member.symbol}"
            scope = (*unit.scope, unit.symbol or "")
            kept.append(replace(member, symbol=symbol, scope=scope))
            last = member.end_line
    folded = tuple((member.start_line, member.end_line) for member in kept)
    return [replace(unit, folded=folded), *kept]


def _head(source: SourceLines, first: int, last: int) -> str:
    lines = source.lines[first - 1 : min(last, first + _LONGEST_HEAD)]
    return before_body(without_comments("\n".join(lines)[:_LONGEST_HEAD_CHARACTERS]))
