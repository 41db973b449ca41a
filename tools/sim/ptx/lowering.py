"""Inline PTX of a source as C++ in its place: lines keep their numbers, the rest stays as it is.

A statement of which one instruction is not known here stays too, and the simulator refuses it.
"""

from collections.abc import Iterator

from .arithmetic import ARITHMETIC
from .asm_statement import AsmOperand, AsmStatement, asm_statements
from .conversions import CONVERSIONS
from .groups import GROUPS
from .memory import MEMORY
from .ptx_text import PtxError, PtxInstruction, PtxLabel, PtxText, read_ptx
from .values import Values
from .words import WORDS

_HANDLERS = ARITHMETIC | WORDS | CONVERSIONS | MEMORY | GROUPS


def lower_ptx(source: str) -> str:
    """Return `source` with the `asm` statements that are understood as C++."""
    if "asm" not in source:
        return source
    parts: list[str] = []
    done = 0
    for statement in asm_statements(source):
        code = lowered(statement)
        if code is not None and statement.start >= done:
            replaced = source[statement.start : statement.end]
            parts += [source[done : statement.start], code, _line_ends(replaced)]
            done = statement.end
    return "".join((*parts, source[done:]))


def lowered(statement: AsmStatement) -> str | None:
    """Return a statement as C++ on one line; None if it is not understood."""
    try:
        return _code(statement)
    except PtxError:
        return None


def _line_ends(text: str) -> str:
    """Return as many line ends as `text` has, spliced where its own are."""
    return "".join(
        "\\\n" if line.rstrip(" \t\r").endswith("\\") else "\n" for line in text.split("\n")[:-1]
    )


def _code(statement: AsmStatement) -> str:
    ptx = read_ptx(statement.text)
    numbered = {f"%{n}": f"kopt_ptx_{n}" for n in range(len(statement.operands))}
    own = {name: f"kopt_ptx_r_{_plain(name)}" for name in ptx.registers}
    values = Values(numbered | own)
    lines = [f"__label__ {', '.join(map(_label, ptx.labels))};"] if ptx.labels else []
    lines += [_entered(n, one) for n, one in enumerate(statement.operands)]
    lines += [f"std::uint64_t {name} = 0;" for name in own.values()]
    lines += _steps(ptx, values)
    lines += [
        f"kopt_sim::ptx_out_{one.kind}({one.expression}, kopt_ptx_{n});"
        for n, one in enumerate(statement.operands)
        if one.is_written
    ]
    return f"do {{ {' '.join(lines)} }} while (0)"


def _entered(number: int, operand: AsmOperand) -> str:
    name = f"kopt_ptx_{number}"
    if not operand.is_read:
        return f"std::uint64_t {name} = 0;"
    return f"std::uint64_t {name} = kopt_sim::ptx_in_{operand.kind}({operand.expression});"


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
    handler = _HANDLERS.get(one.opcode)
    if handler is None:
        raise PtxError(one.opcode)
    return handler(one, values)


def _branch(one: PtxInstruction, ptx: PtxText) -> str:
    if len(one.operands) != 1 or one.operands[0] not in ptx.labels:
        raise PtxError("a branch out of the statement")
    return f"goto {_label(one.operands[0])};"


def _label(name: str) -> str:
    return f"kopt_ptx_l_{_plain(name)}"


def _plain(name: str) -> str:
    return name.replace("%", "p_").replace("$", "d_")
