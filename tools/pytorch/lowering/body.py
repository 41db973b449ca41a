"""The body of one kernel while it is written: lines, names, and what was computed before.

A text that is asked for twice in one scope is computed once. What nothing reads is left out at the
end, so that authors of templates may name indices freely.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .buffers import Buffer
from .cuda_types import loaded
from .sizes import Shape, Size

_DEFINITION = re.compile(r"^\s*const (?:Index|[a-z][a-z ]*) (\w+) = [^;]*;$")
_ATOM = re.compile(r"\w+|-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?f?")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Body:
    """The statements of a kernel, from its opening brace on."""

    lines: list[str] = field(default_factory=list[str])
    buffers: dict[Buffer, str] = field(default_factory=dict[Buffer, str])
    """Buffers that are touched, with the names of their parameters."""
    written: set[Buffer] = field(default_factory=set[Buffer])
    spans: list[Shape] = field(default_factory=list[Shape])
    """What the kernel counts through, beside its buffers."""
    linear: dict[tuple[str, ...], tuple[Shape, str]] = field(
        default_factory=dict[tuple[str, ...], tuple[Shape, str]]
    )
    """Row-major positions that have a name already, by the indices that they consist of."""
    given: dict[object, tuple[tuple[str, ...], str]] = field(
        default_factory=dict[object, tuple[tuple[str, ...], str]]
    )
    """Values that this kernel computes itself: at which indices, under which name."""
    _scopes: list[dict[object, str]] = field(default_factory=lambda: [{}])
    _count: int = 0

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(self.indented(text))

    def indented(self, text: str) -> str:
        """Return a statement as it stands where the next one is added."""
        return f"{'  ' * len(self._scopes)}{text}"

    def let(self, ctype: str, text: str) -> str:
        """Return the name of a constant of this value; a name or a number is its own."""
        if _ATOM.fullmatch(text):
            return text
        key = (ctype, text)
        known = self.known(key)
        if known is None:
            known = self.fresh("j" if ctype == "Index" else "v")
            self.line(f"const {ctype} {known} = {text};")
            self.remember(key, known)
        return known

    def known(self, key: object) -> str | None:
        """Return the name of what was computed in this scope or around it."""
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def remember(self, key: object, name: str) -> None:
        """Keep the name of what was computed in this scope."""
        self._scopes[-1][key] = name

    def fresh(self, prefix: str) -> str:
        """Return a name that nothing has."""
        self._count += 1
        return f"{prefix}{self._count}"

    @contextmanager
    def block(self, head: str, end: str = "}") -> Generator[None]:
        """Write the statements of the `with` block between `head` with a brace and `end`."""
        self.line(f"{head} {{")
        self._scopes.append({})
        yield
        self._scopes.pop()
        self.line(end)

    def pointer(self, buffer: Buffer) -> str:
        """Return the name of the parameter that points to `buffer`."""
        name = f"{buffer.label}_value" if buffer.kind == "scalar" else f"{buffer.label}_data"
        return self.buffers.setdefault(buffer, name)

    def load(self, buffer: Buffer, position: str) -> str:
        """Return the code that names the element at `position`."""
        name = self.pointer(buffer)
        return name if buffer.kind == "scalar" else f"{name}[{position}]"

    def element(self, buffer: Buffer, position: str) -> str:
        """Return the code that reads the element at `position` for arithmetic."""
        return loaded(buffer.dtype, self.load(buffer, position))

    def position(self, index: Sequence[str], shape: Shape) -> str:
        """Return the row-major position of `index` in `shape`."""
        if shape and shape[-1].literal == 1:
            return self.position(index[:-1], shape[:-1])
        known = self.linear.get(tuple(index))
        if known is not None and known[0][1:] == shape[1:]:
            return known[1]
        text = ""
        for at, extent in zip(index, shape, strict=True):
            if text in ("", "0"):
                text = at
                continue
            scaled = (
                f"{text} * {extent.factor}" if " " not in text else f"({text}) * {extent.factor}"
            )
            if extent.literal == 1:
                scaled = text
            text = scaled if at == "0" else f"{scaled} + {at}"
        return text or "0"

    def is_same_place(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Return whether two indices are those of one element."""
        return tuple(one) == tuple(other)

    def split(self, position: str, shape: Shape) -> tuple[str, ...]:
        """Return the indices of a row-major position in `shape`."""
        result: list[str] = []
        stride: Size | None = None
        for place in reversed(range(len(shape))):
            extent = shape[place]
            if extent.literal == 1:
                result.append("0")
                continue
            text = position if stride is None else f"{position} / {stride.factor}"
            if any(size.literal != 1 for size in shape[:place]):
                text += f" % {extent.factor}"
            result.append(self.let("Index", text))
            stride = extent if stride is None else extent * stride
        return tuple(reversed(result))

    def text(self) -> str:
        """Return the statements; definitions that nothing reads are left out."""
        return "\n".join(without_unused(self.lines))

    def unused(self, buffer: Buffer, text: str) -> bool:
        """Return whether no statement of `text` names the parameter of `buffer`."""
        return re.search(rf"\b{self.buffers[buffer]}\b", text) is None


def without_unused(statements: Sequence[str]) -> list[str]:
    """Return the statements without definitions that no later one reads."""
    lines = list(statements)
    counts: dict[str, int] = {}
    for line in lines:
        for word in _WORD.findall(line):
            counts[word] = counts.get(word, 0) + 1
    for place in reversed(range(len(lines))):
        found = _DEFINITION.match(lines[place])
        if found is not None and counts[found[1]] == 1:
            for word in _WORD.findall(lines[place]):
                counts[word] -= 1
            del lines[place]
    return lines
