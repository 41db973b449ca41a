"""The handlers of PTX instructions: each writes one instruction as C++ statements."""

from collections.abc import Callable

from .ptx_text import PtxError, PtxInstruction
from .values import TYPES, Values

Handler = Callable[[PtxInstruction, Values], str]
"""Raises `PtxError` for a form of the instruction that it does not know."""
IGNORED = frozenset({"ftz", "volatile", "aligned", "noftz"})
"""Modifiers that change nothing here: denormal numbers are kept, and no access is left out."""


def operands(one: PtxInstruction, *counts: int) -> tuple[str, ...]:
    """Return the operands of an instruction that may have so many of them.

    Raises:
        PtxError: It has another number.
    """
    if len(one.operands) not in counts:
        raise PtxError(f"{one.opcode} with {len(one.operands)} operands")
    return one.operands


def type_of(one: PtxInstruction, *allowed: str) -> str:
    """Return the last modifier, which is the type.

    Raises:
        PtxError: It is none of `allowed`, or no type.
    """
    kind = one.modifiers[-1] if one.modifiers else ""
    if kind not in TYPES or (allowed and kind not in allowed):
        raise PtxError(f"{one.opcode} of type {kind or 'none'}")
    return kind


def only(one: PtxInstruction, *allowed: str) -> None:
    """Return if every modifier before the type is allowed or ignored.

    Raises:
        PtxError: One is not.
    """
    for modifier in one.modifiers[:-1]:
        if modifier not in allowed and modifier not in IGNORED:
            raise PtxError(f"{one.opcode}.{modifier}")
