"""Inline PTX of a source as C++ in its place: lines keep their numbers, the rest stays as it is.

A statement of which one instruction is not known here stays too, and the simulator refuses it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from .arithmetic import ARITHMETIC
from .asm_statement import AsmOperand, AsmStatement, asm_statements
from .conversions import CONVERSIONS
from .copies import COPIES
from .groups import GROUPS
from .matrices import MATRICES
from .mbarriers import MBARRIERS
from .memory import MEMORY
from .ptx_text import PtxError, PtxInstruction, PtxLabel, PtxText, read_ptx
from .tensor_products import TENSOR_MEMORY
from .values import Values
from .warpgroups import WARPGROUPS, sums_of, sums_place
from .words import WORDS

_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERAND = re.compile(r"%\d+")
_GLOBAL = re.compile(
    r"(?<![\w:.])((?:kopt_sim|std)(?=::)|(?:threadIdx|blockIdx|blockDim|gridDim)(?=\.)"
    r"|__half2?\b|__nv_bfloat162?\b|float2\b|[A-Za-z_]\w*(?=\())"
)
"""Functions, types and variables that a handler writes: all of them are global."""
_HANDLERS = {
    **(ARITHMETIC | WORDS | CONVERSIONS | MEMORY | COPIES | MBARRIERS),
    **(GROUPS | MATRICES | WARPGROUPS | TENSOR_MEMORY),
}

_UNWRITTEN = "0xfeedfacefeedfaceull"
"""A register that nothing was written to: no value that a kernel counts on."""


def lower_ptx(source: str) -> str:
    """Return `source` with the `asm` statements that are understood as C++."""
    if "asm" not in source:
        return source
    parts: list[str] = []
    done = 0
    for statement in asm_statements(source):
        code = lowered(statement)
        if code is not None:
            # Spliced, so that a directive goes on behind a comment with ends of lines.
            line_ends = "\\\n" * source.count("\n", statement.start, statement.end)
            parts += [source[done : statement.start], code, line_ends]
            done = statement.end
    return "".join((*parts, source[done:]))


def lowered(statement: AsmStatement) -> str | None:
    """Return a statement as C++ on one line; None if it is not understood."""
    bare = tuple(replace(one, expression="") for one in statement.operands)
    try:
        own_words = set(_NAME.findall(_code(replace(statement, operands=bare))))
        return None if own_words & statement.replaced else _code(statement)
    except PtxError:
        return None


def unknown_instruction(text: str) -> str:
    """Return the first instruction of a statement's text that is not understood; empty: none."""
    try:
        ptx = read_ptx(text)
    except PtxError:
        return ""
    values = _values(ptx, set(_OPERAND.findall(text)))
    for step in ptx.steps:
        try:
            list(_steps(replace(ptx, steps=(step,)), values))
        except PtxError:
            if isinstance(step, PtxInstruction) and step.opcode != "bra":
                return ".".join((step.opcode, *step.modifiers))
    return ""


def _values(ptx: PtxText, operands: Iterable[str]) -> Values:
    numbered = {name: f"kopt_ptx_{name[1:]}" for name in operands}
    own = {name: f"kopt_ptx_r_{_plain(name)}" for name in ptx.registers}
    predicates = frozenset(name for name, kind in ptx.registers.items() if kind == "pred")
    return Values(numbered | own, predicates)


def _code(statement: AsmStatement) -> str:
    ptx = read_ptx(statement.text)
    if not ptx.steps:
        return _bound_only(statement)
    kinds = {f"%{n}": one.kind for n, one in enumerate(statement.operands)}
    later = sums_of(ptx.steps)
    of_statement = [(f"%{n}", one) for n, one in enumerate(statement.operands)]
    _refuse_other_sums(dict(of_statement), later)
    own = [(name, one) for name, one in of_statement if name not in later]
    values = replace(_values(ptx, [name for name, _ in own]), kinds=kinds)
    lines = [f"__label__ {', '.join(map(_label, ptx.labels))};"] if ptx.labels else []
    lines += [
        f"auto& {sums_place(name)} = ({one.expression});"
        if name in later
        else _entered(int(name[1:]), one)
        for name, one in of_statement
    ]
    lines += [f"::std::uint64_t {values.names[name]} = {_UNWRITTEN};" for name in ptx.registers]
    lines += _steps(ptx, values)
    lines += [
        f"::kopt_sim::ptx_out_{one.kind}(kopt_ptx_place_{name[1:]}, kopt_ptx_{name[1:]});"
        for name, one in own
        if one.is_written
    ]
    return f"do {{ {' '.join(lines)} }} while (0)"


def _refuse_other_sums(operands: Mapping[str, AsmOperand], later: Iterable[str]) -> None:
    """Refuse sums of a product that are no operands of 32 bits which the statement writes."""
    for name in later:
        one = operands.get(name)
        if one is None or not one.is_written or one.kind not in ("f", "r"):
            raise PtxError(f"{name} as a sum")


def _bound_only(statement: AsmStatement) -> str:
    """Return a statement without instructions, which pins values: it neither reads nor writes them.

    What it alone writes holds no value to count on.
    """
    lines: list[str] = []
    for n, one in enumerate(statement.operands):
        unwritten = one.is_written and not one.is_read
        lines.append(_entered(n, one) if unwritten else f"static_cast<void>({one.expression});")
        if unwritten:
            lines.append(f"::kopt_sim::ptx_out_{one.kind}(kopt_ptx_place_{n}, kopt_ptx_{n});")
    return f"do {{ {' '.join(lines)} }} while (0)"


def _entered(number: int, operand: AsmOperand) -> str:
    """Return what evaluates an operand, once, before the first instruction."""
    name, place = f"kopt_ptx_{number}", f"kopt_ptx_place_{number}"
    bound = f"auto& {place} = ({operand.expression}); " if operand.is_written else ""
    if not operand.is_read:
        return f"{bound}::std::uint64_t {name} = {_UNWRITTEN};"
    read = place if operand.is_written else operand.expression
    return f"{bound}::std::uint64_t {name} = ::kopt_sim::ptx_in_{operand.kind}({read});"


def _steps(ptx: PtxText, values: Values) -> Iterator[str]:
    for step in ptx.steps:
        if isinstance(step, PtxLabel):
            yield f"{_label(step.name)}:;"
            continue
        code = _branch(step, ptx) if step.opcode == "bra" else _written(step, values)
        if step.guard:
            negated = "!" if step.is_negated else ""
            code = f"if ({values.predicate(negated + step.guard)}) {{ {code} }}"
        yield code


def _written(one: PtxInstruction, values: Values) -> str:
    """Return an instruction as C++ in which no name of the candidate takes another's place."""
    handler = _HANDLERS.get(one.opcode)
    if handler is None:
        raise PtxError(one.opcode)
    return _GLOBAL.sub(r"::\1", handler(one, values))


def _branch(one: PtxInstruction, ptx: PtxText) -> str:
    if len(one.operands) != 1 or one.operands[0] not in ptx.labels:
        raise PtxError("a branch out of the statement")
    return f"goto {_label(one.operands[0])};"


def _label(name: str) -> str:
    return f"kopt_ptx_l_{_plain(name)}"


def _plain(name: str) -> str:
    return name.replace("%", "p_").replace("$", "d_")
