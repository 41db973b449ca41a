"""What a candidate's macros may do, directive by directive, in source order.

Every compiler must see the same macros with the same values. Headers define other macros for nvcc
than for a CPU compiler, so a macro counts as the candidate's own only from its own definition on.
A condition that rests on other names, and an #include behind a definition, which could change the
header, are settled by nvcc alone: the simulator compiles what nvcc's preprocessor has chosen
(tools/sim/branches.py). Stringizing would tell what a name of CUDA expands to, pasting could spell
a hidden name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .source_lexer import LogicalLine, Token, logical_lines
from .source_names import (
    CONDITIONALS,
    HIDEABLE_NAMES,
    HIDEABLE_PREFIXES,
    TARGET_NAMES,
    protected_macro,
)

Finding = tuple[int, str, str | None]
"""Offset in the source, message, hint."""

_CONDITION_WORDS = frozenset({"defined", "true", "false", "and", "or", "not"})
_PASTE = frozenset({"##", "%:%:"})
_PREFIXES_OF_STRINGS = frozenset({"R", "L", "u", "U", "u8", "LR", "uR", "UR", "u8R"})


def macro_findings(lines: Iterable[LogicalLine], declared: frozenset[str]) -> Iterator[Finding]:
    """Yield what is refused in the directives of `lines`.

    Args:
        lines: The whole source.
        declared: Macros that the compilers are given: tune names and KOPT_<AXIS>.
    """
    directives = _Directives(declared)
    for line in lines:
        if line.is_directive and len(line.tokens) > 1:
            yield from directives.read(line)


def asks_the_compiler(source: str, declared: frozenset[str]) -> bool:
    """Return whether nvcc's preprocessor must say what `source` comes to.

    Args:
        source: The candidate.
        declared: Macros that the compilers are given: tune names and KOPT_<AXIS>.
    """
    directives = _Directives(declared)
    for line in logical_lines(source):
        if any(TARGET_NAMES.fullmatch(token.text) for token in line.tokens):
            return True
        if line.is_directive and len(line.tokens) > 1:
            for _ in directives.read(line):
                pass
    return directives.asks


@dataclass
class _Branches:
    """An #if that is open: what was certain before it, and at the end of each branch so far."""

    before: frozenset[str]
    ends: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    has_else: bool = False


class _Directives:
    """What the directives read so far have defined."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self._certain: frozenset[str] = declared  # own whichever branches are taken
        self._open: list[_Branches] = []
        self._bodies: dict[str, frozenset[str]] = {}
        self._has_definitions = False
        self.asks = False
        self._guard: str | None = None  # the name that the directive before asked for by #ifndef

    def read(self, line: LogicalLine) -> Iterator[Finding]:
        name = line.tokens[1].text
        operands = line.tokens[2:]
        guard, self._guard = self._guard, None
        self.asks |= name == "include" and self._has_definitions
        if name in CONDITIONALS:
            yield from self._condition(line)
            if name == "ifndef" and len(operands) == 1:
                self._guard = operands[0].text
        elif name in ("define", "undef") and operands:
            yield from self._definition(line, guard)
        self._branch(name)

    def _branch(self, name: str) -> None:
        """Follow which names are defined in every branch."""
        if name in ("if", "ifdef", "ifndef"):
            self._open.append(_Branches(self._certain))
        elif name in ("else", "endif") or name in CONDITIONALS:
            if not self._open:
                return
            branches = self._open[-1]
            branches.ends.append(self._certain)
            branches.has_else |= name == "else"
            self._certain = branches.before
            if name == "endif":
                self._open.pop()
                if branches.has_else:
                    self._certain = branches.ends[0].intersection(*branches.ends)

    def _definition(self, line: LogicalLine, guard: str | None) -> Iterator[Finding]:
        directive, macro, *body = line.tokens[1:]
        self._has_definitions = True
        reason = protected_macro(macro.text)
        if macro.text in self._declared and not (
            directive.text == "define" and guard == macro.text
        ):
            reason = "the header comment declares it"
        if reason:
            yield macro.offset, f"#{directive.text} of {macro.text} is not allowed: {reason}", None
        if directive.text == "undef":
            return
        parameters = _parameters(body)
        names = {token.text for token in body if token.kind == "identifier"}
        if body and body[0].offset == macro.offset + len(macro.text):
            names -= parameters  # else the parenthesis may belong to the value
        self._certain |= {macro.text}
        self._bodies[macro.text] = self._bodies.get(macro.text, frozenset()) | names
        yield from _pastes(body, parameters)
        if parameters:
            yield from _stringized(body)

    def _condition(self, line: LogicalLine) -> Iterator[Finding]:
        for token in line.tokens[2:]:
            if token.kind != "identifier" or token.text in _CONDITION_WORDS:
                continue
            unknown = self._unknown_below(token.text)
            self.asks |= unknown is not None
            if unknown is not None and unknown.startswith("KOPT_"):
                message = f"#{line.tokens[1].text} tests {unknown}, which nothing defines"
                yield token.offset, message, "KOPT_<AXIS> exists for the axes of `specialize`"

    def _unknown_below(self, name: str) -> str | None:
        """Return the first macro that `name` rests on and that is not the candidate's own."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current in seen or current in _CONDITION_WORDS:
                continue
            seen.add(current)
            if current not in self._certain:
                return current
            waiting += sorted(self._bodies.get(current, ()), reverse=True)
        return None


def _parameters(body: list[Token]) -> frozenset[str]:
    """Return the parameter names of a macro; more than these if it is no function."""
    if not body or body[0].text != "(":
        return frozenset()
    names: set[str] = set()
    for token in body[1:]:
        if token.text == ")":
            break
        names.add(token.text)
    return frozenset({*names, "__VA_ARGS__"})


def _pastes(body: list[Token], parameters: frozenset[str]) -> Iterator[Finding]:
    """Refuse ## unless its first operand is literal text that cannot begin a hidden name."""
    for index, token in enumerate(body):
        is_first = index < 2 or body[index - 2].text not in _PASTE
        if token.text not in _PASTE or not is_first:
            continue
        left = body[index - 1] if index else token
        if left.text == "," and index + 1 < len(body) and body[index + 1].text == "__VA_ARGS__":
            continue
        if left.kind != "identifier" or left.text in parameters or _could_hide(left.text):
            message = "## may only extend a name whose first part stands in the macro itself"
            yield token.offset, message, "write kernel_##name, not a##b or _##name"


def _stringized(body: list[Token]) -> Iterator[Finding]:
    for token in body:
        if token.text == "#" and token.kind == "punctuation":
            message = "# in a macro, which makes a string of what a name stands for, is not allowed"
            yield token.offset, message, "write the string itself"


def _could_hide(prefix: str) -> bool:
    """Whether pasting behind `prefix` can make a forbidden name or a string."""
    begins_forbidden = any(
        name.startswith(prefix) or prefix.startswith(name) for name in HIDEABLE_PREFIXES
    ) or any(name.startswith(prefix) for name in HIDEABLE_NAMES)
    return prefix.startswith("_") or begins_forbidden or prefix in _PREFIXES_OF_STRINGS
