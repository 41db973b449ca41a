"""PTX text as instructions: guards, opcodes with their modifiers, operands, registers, labels.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, sections 4 and 5.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s*\.(\w+)\s+(.+)", re.DOTALL)
_NAME = r"%{0,2}[A-Za-z_$][\w$]*"
_LABEL = re.compile(rf"\s*({_NAME})\s*:(?!:)")
_INSTRUCTION = re.compile(
    rf"(?:@(?P<negated>!?)(?P<guard>{_NAME}|%\d+)\s+)?(?P<opcode>[a-z]\w*(?:[.:]+\w+)*)\s*"
    r"(?P<operands>.*)",
    re.DOTALL,
)


class PtxError(Exception):
    """The text is none that is understood here."""


@dataclass(frozen=True)
class PtxInstruction:
    """One instruction; `%0` stands for operand 0 of its statement."""

    opcode: str
    """The first word: ld, add, cvt."""
    modifiers: tuple[str, ...]
    """The words behind it, `shared::cta` as one."""
    operands: tuple[str, ...]
    guard: str = ""
    """The predicate that it runs under; empty: always."""
    is_negated: bool = False


@dataclass(frozen=True)
class PtxLabel:
    """The target of branches."""

    name: str


@dataclass(frozen=True)
class PtxText:
    """The text of one statement."""

    registers: Mapping[str, str]
    """The names that it declares, with their types."""
    steps: tuple[PtxInstruction | PtxLabel, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels."""
        return tuple(one.name for one in self.steps if isinstance(one, PtxLabel))


def read_ptx(text: str) -> PtxText:
    """Return the instructions of a statement's text.

    Raises:
        PtxError: It is not understood.
    """
    registers: list[tuple[str, str]] = []
    steps: list[PtxInstruction | PtxLabel] = []
    pieces = _pieces(_COMMENT.sub(" ", text))
    for number, piece in enumerate(pieces, 1):
        rest = piece
        while match := _LABEL.match(rest):
            steps.append(PtxLabel(match[1]))
            rest = rest[match.end() :]
        rest = rest.strip()
        if not rest:
            continue
        if number == len(pieces):
            raise PtxError("an instruction without a semicolon")
        declared = _REGISTERS.fullmatch(rest)
        if declared is not None:
            registers += [(name.strip(), declared[1]) for name in declared[2].split(",")]
        else:
            steps.append(_instruction(rest))
    found = PtxText(dict(registers), tuple(steps))
    names = [name for name, _ in registers]
    if len(found.registers) != len(names) or not all(re.fullmatch(_NAME, one) for one in names):
        raise PtxError("registers that are declared twice, or by a count")
    if len(set(found.labels)) != len(found.labels):
        raise PtxError("a label that stands twice")
    return found


def _pieces(text: str) -> list[str]:
    """Return what stands between semicolons, without the braces of blocks.

    A brace opens a block where an instruction may begin, and a vector elsewhere.
    """
    pieces: list[list[str]] = [[]]
    vector, begins, depth = False, True, 0
    for letter in text:
        if letter in "{}" and begins:
            depth += 1 if letter == "{" else -1
            if depth < 0:
                break
            continue
        if letter == "}" and not vector:
            raise PtxError("a block that ends within an instruction")
        vector = (vector or letter == "{") and letter != "}"
        begins = begins if letter.isspace() else letter in ":;"
        if letter == ";":
            pieces.append([])
        else:
            pieces[-1].append(letter)
    if depth != 0:
        raise PtxError("a block that is not closed, or closed twice")
    return ["".join(piece) for piece in pieces]


def _instruction(text: str) -> PtxInstruction:
    match = _INSTRUCTION.fullmatch(text)
    if match is None:
        raise PtxError(f"{text[:60]!r} is no instruction")
    opcode, *modifiers = match["opcode"].split(".")
    operands = tuple(_split(match["operands"]))
    guard = match["guard"] or ""
    return PtxInstruction(opcode, tuple(modifiers), operands, guard, match["negated"] == "!")


def _split(text: str) -> list[str]:
    """Return the operands between commas outside of brackets, without blanks."""
    if not text.strip():
        return []
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return ["".join(part.split()) for part in parts]
