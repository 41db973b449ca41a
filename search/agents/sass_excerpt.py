"""A part of a candidate's machine code, short enough to be read in a conversation."""

from pathlib import Path

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.record import ToldRecord
from kopt.tools.cuda.nvdisasm import list_instructions
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.facts.compile_facts import named_builds
from kopt.tools.facts.fitting import Facts
from kopt.tools.facts.wording import Quoted, QuotedLines

from .candidate_writer import MAX_SUBMITTED_BYTES

MOST_SHOWN = 80
"""Instructions of one excerpt."""
_AROUND = 4
"""Instructions shown before and after each that is looked for."""
_INSTRUCTION_BYTES = 16


class ToolCase(ToldRecord):
    """A source that a tool is asked about."""

    source: str = Field(min_length=1, max_length=MAX_SUBMITTED_BYTES)
    """The complete file, from `/* kopt: 1` on."""
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    """Declared tune values; those left out have their default."""


class SassQuestion(ToolCase):
    """A source, and which part of its machine code is asked for."""

    function: str = Field(default="", max_length=200)
    """One kernel of the file; empty: the first."""
    find: str = Field(default="", max_length=40)
    """Show what is around the opcodes that begin so, e.g. LDG or BAR; empty: from `first` on."""
    first: int = Field(default=0, ge=0)
    """Number of the first instruction to show."""


def sass_excerpt(compiled: CompileResult, question: SassQuestion, settings: Settings) -> Facts:
    """Return instructions with their addresses, which branches name.

    Raises:
        ToolError: No such function, or no nvdisasm on this machine.
        InfraError: nvdisasm cannot read the cubin.
    """
    build = named_builds(compiled)[0]
    cubin = Path(build.cubin_path).read_bytes()
    listing = list_instructions(cubin, find_toolchain(settings), settings)
    if listing is None:
        raise ToolError("machine code cannot be shown: nvdisasm is not installed here")
    name = question.function or next(iter(listing))
    if name not in listing:
        raise ToolError(f"no function {name!r}; there are {', '.join(listing)}")
    instructions = listing[name]
    places = _places(instructions, question)
    return {
        "function": Quoted(name),
        "arch": build.arch,
        "instructions": len(instructions),
        "shown": len(places),
        "sass": QuotedLines(_text(instructions, places) or "nothing of what was asked for"),
    }


def _places(instructions: tuple[str, ...], question: SassQuestion) -> list[int]:
    """Return which instructions to show, in their order."""
    rest = range(question.first, len(instructions))
    if not question.find:
        return list(rest[:MOST_SHOWN])
    shown: dict[int, None] = {}
    for at in rest:
        text = instructions[at]
        opcode = text.partition(" ")[2] if text[0] == "@" else text
        if opcode.startswith(question.find.upper()):
            around = range(max(at - _AROUND, 0), min(at + _AROUND + 1, len(instructions)))
            shown.update(dict.fromkeys(around))
    return sorted(shown)[:MOST_SHOWN]


def _text(instructions: tuple[str, ...], places: list[int]) -> str:
    rows: list[str] = []
    before = None
    for at in places:
        if before is not None and at != before + 1:
            rows.append("...")
        rows.append(f"{at * _INSTRUCTION_BYTES:04x}  {instructions[at]}")
        before = at
    return "\n".join(rows)
