"""The body of a kernel whose threads read and write several neighbours of a row at a time.

What is computed for the element `col` of a row is written inside a loop over `v`, the elements of a
pack. A load whose position is `col` plus what does not change inside the pack becomes one load of
the pack before that loop.
"""

import re
from collections.abc import Container, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .body import Body, without_unused
from .buffers import Buffer
from .sizes import Shape, Size

_WORD = re.compile(r"[A-Za-z_]\w*")
_OPAQUE = re.compile(r"[?%<>&|]| - | / ")
_NUMBER = r"(?:\d+|KOPT_\w+|Index\((?:\d+|KOPT_\w+)\)|\((?:[\d\s+*/()-]|KOPT_\w+|Index\b)*\))"
_CONSTANT = re.compile(_NUMBER)
_QUOTIENT = re.compile(rf"\bcol / ({_NUMBER})(?!\w)")
_REMAINDER = re.compile(rf"\(?col % ({_NUMBER})\)?")
_LOCAL = re.compile(r"\b(?:col|at|v|[a-z]+\d\w*)\b(?!\()")
"""Names of the loop over a pack, and those that `fresh` makes."""


@dataclass(frozen=True)
class Pack:
    """Neighbours in a row of a buffer, as many as a thread reads at a time."""

    name: str
    buffer: Buffer
    base: str
    """Position of the first of them, from `first`, its place in the row."""


@dataclass(frozen=True)
class RowNumber:
    """One element of a buffer for a whole row, or for all of them, which is read at the start."""

    name: str
    buffer: Buffer
    position: str


@dataclass
class RowBody(Body):
    """The statements of a kernel that makes rows."""

    packs: dict[tuple[Buffer, str], Pack] = field(default_factory=dict[tuple[Buffer, str], Pack])
    numbers: dict[tuple[Buffer, str], RowNumber] = field(
        default_factory=dict[tuple[Buffer, str], RowNumber]
    )
    """What is read at the start, by where it is."""
    divisors: set[str] = field(default_factory=set[str])
    """Constants that must be multiples of a pack's length."""
    is_tile: bool = False
    """Whether places are taken apart by division: what is the same for a pack is named before it,
    and packs are as long as the divisors allow."""
    _definitions: dict[str, str] = field(default_factory=dict[str, str])
    """What each name stands for that is defined inside the loop over a pack."""
    _same: dict[str, str] = field(default_factory=dict[str, str])
    """What is the same for a whole pack: the statements that come before its loop, by name."""
    _loose: set[Buffer] = field(default_factory=set[Buffer])
    """Buffers of which single elements are read."""
    scattered: set[Buffer] = field(default_factory=set[Buffer])
    """These buffers are read element by element, not by packs."""
    _outside: set[str] = field(default_factory=lambda: {"row", "first"})
    """Positions that have a name before the first loop."""
    _depth: int | None = None
    """How many scopes are open right inside the loop over a pack; None outside of it."""
    _is_closed: bool = False
    """Whether loops have begun, so that names are defined too late for the first load."""

    def let(self, ctype: str, text: str) -> str:
        """Return the name of a constant of this value, before the loop if a pack has one value."""
        if self.is_tile and self._depth == len(self._scopes) and self._is_same(text):
            name = self._named_before(ctype, text)
        else:
            name = super().let(ctype, text)
        if ctype == "Index" and name != text:
            if self._depth is not None:
                self._definitions[name] = text
            elif not self._is_closed:
                self._outside.add(name)
        return name

    def _is_same(self, text: str) -> bool:
        """Return whether a pack has one value of `text`, which depends on `first`."""
        rest, count = _QUOTIENT.subn("first", text)
        used = set(_WORD.findall(rest)) & self._same.keys()
        is_name = text in used
        return bool(count or used) and not is_name and set(_LOCAL.findall(rest)) <= used

    def _named_before(self, ctype: str, text: str) -> str:
        given = self._from_first(text)
        for name, line in self._same.items():
            if line == f"const {ctype} {name} = {given};":
                return name
        name = self.fresh("j" if ctype == "Index" else "v")
        self._same[name] = f"const {ctype} {name} = {given};"
        return name

    def _from_first(self, text: str) -> str:
        """Return `text` with `col / n`, the same for a whole pack, as `first / n`."""
        self.divisors.update(_QUOTIENT.findall(text))
        return _QUOTIENT.sub(lambda found: f"first / {found[1]}", text)

    def before(self, text: str) -> list[str]:
        """Return the statements on whole packs whose names `text` needs, in their order."""
        needed, names = set[str](), set(_WORD.findall(text))
        for name in reversed(self._same):
            if name in names:
                needed.add(name)
                names.update(_WORD.findall(self._same[name]))
        return [line for name, line in self._same.items() if name in needed]

    def is_known_early(self, pack: Pack) -> bool:
        """Return whether nothing is loaded to know where a pack is."""
        return not any("_data[" in line for line in self.before(pack.base))

    def begin(self) -> None:
        """Say that the loops begin: what is named from here on is not known to the first loads."""
        self._is_closed = True

    @contextmanager
    def lanes(self, position: str) -> Generator[None]:
        """Write the loop over the elements of a pack; `position` is that of the element `col`."""
        self.line("#pragma unroll")
        with self.block("for (int v = 0; v < VEC; ++v)"):
            place = len(self.lines)
            self._definitions = {"at": position}
            self._depth = len(self._scopes)
            yield
            self._depth = None
            self.lines[place:] = without_unused(self.lines[place:])
            for name, text in (("Index at", position), ("Index col", "first + v")):
                if re.search(rf"(?<!\.)\b{name.split()[1]}\b", "\n".join(self.lines[place:])):
                    self.lines.insert(place, f"{'  ' * len(self._scopes)}const {name} = {text};")

    def load(self, buffer: Buffer, position: str) -> str:
        """Return the code that names the element at `position`: of a pack where that can be."""
        pack = self.pack(buffer, position)
        number = self._number(buffer, position) if pack is None else None
        if number is not None:
            return number.name
        if pack is None:
            self._loose.add(buffer)
            if buffer.kind != "scalar" and not set(_LOCAL.findall(position)) <= self._same.keys():
                self.scattered.add(buffer)
        return f"{pack.name}.at[v]" if pack else super().load(buffer, position)

    def _number(self, buffer: Buffer, position: str) -> RowNumber | None:
        """Return the element at `position` if that is known at the start; None if it is not."""
        found = self.numbers.get((buffer, position))
        if found is not None or buffer.kind != "in" or self.is_tile:
            return found
        words = {one for one in _WORD.findall(position) if not one.startswith("KOPT_")}
        known = {*self._outside, "Index"} - {"first"}
        if self._depth != len(self._scopes) or not words <= known:
            return None  # under a condition, or within a row
        self.pointer(buffer)
        count = sum(one.buffer is buffer for one in self.numbers.values())
        name = f"{buffer.label}_number{count + 1 if count else ''}"
        return self.numbers.setdefault((buffer, position), RowNumber(name, buffer, position))

    def element(self, buffer: Buffer, position: str) -> str:
        """Return the code that reads the element at `position` for arithmetic."""
        pack = self.pack(buffer, position)
        if pack is not None and buffer.dtype == "bfloat16":
            return f"op::widened({pack.name}, v)"
        return super().element(buffer, position)

    def position(self, index: Sequence[str], shape: Shape) -> str:
        """Return the row-major position of `index` in `shape`; `col / 16, col % 16` is `col`."""
        places: list[str] = []
        extents: list[Size] = []
        for at, extent in zip(index, shape, strict=True):
            parts = (f"col/{extent.code}", f"col%{extent.code}")
            if places and (self.meaning(places[-1]), self.meaning(at)) == parts:
                places[-1], extents[-1] = "col", extents[-1] * extent
            else:
                places.append(at)
                extents.append(extent)
        return super().position(places, tuple(extents))

    def is_same_place(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Return whether two indices are those of one element, or of one group of a pack's."""
        ours, theirs = (
            [re.sub(r"\bcol\b", "first", self.meaning(at)) for at in index]
            for index in (one, other)
        )
        return ours == theirs

    def meaning(self, text: str) -> str:
        """Return what an index stands for, without spaces and parentheses."""
        return re.sub(r"[\s()]", "", self._replaced(text))

    def reads_only(self, buffer: Buffer, base: str) -> bool:
        """Return whether all that is read of `buffer` are packs at the position `base`."""
        bases = [found for one, found in self.packs if one is buffer]
        return buffer not in self._loose and all(found == base for found in bases)

    def pack(self, buffer: Buffer, position: str) -> Pack | None:
        """Return the pack in which the element at `position` is number `v`; None for no pack."""
        if self._depth != len(self._scopes) or buffer in self.written:
            return None  # under a condition, or of what this kernel writes
        base = self.base(position)
        if base is None:
            return None
        self.pointer(buffer)
        count = sum(one.buffer is buffer for one in self.packs.values())
        name = f"{buffer.label}_pack{count + 1 if count else ''}"
        return self.packs.setdefault((buffer, base), Pack(name, buffer, base))

    def base(self, position: str) -> str | None:
        """Return the position of a pack's first element; None if `position` runs otherwise."""
        terms = self._terms(position)
        own = [one for one in terms if one == "col" or (self.is_tile and _REMAINDER.fullmatch(one))]
        if len(own) != 1:
            return None
        others = [one for one in terms if one not in (own[0], "0")]
        if self.is_tile:
            others = [self._from_first(one) for one in others]
        divisors = _REMAINDER.findall(own[0])
        for term in others:
            words = set(_WORD.findall(term))
            known = {one for one in words if one.startswith("KOPT_") or one == "Index"}
            if not words <= self._outside | known | set(self._same):
                return None
            constants = [one for one in _factors(term) if _CONSTANT.fullmatch(one)]
            if not constants:
                return None
            divisors.append(" * ".join(constants))
        self.divisors.update(divisors)
        return " + ".join((*others, own[0].replace("col", "first")))

    def _terms(self, text: str) -> list[str]:
        """Return what is added up in `text`, names of the loop replaced by what they stand for."""
        if _OPAQUE.search(_outermost(text)):
            return [f"({self._replaced(text, self._same)})"]
        terms: list[str] = []
        for term in _parted(text, " + "):
            if term in self._definitions and term not in self._same:
                terms += self._terms(self._definitions[term])
            else:
                terms.append(self._replaced(term, self._same))
        return terms

    def _replaced(self, text: str, kept: Container[str] = ()) -> str:
        """Return `text` with what names of the loop stand for, but for those that are kept."""

        def meaning(found: re.Match[str]) -> str:
            name = found[0]
            if name in kept or name not in self._definitions:
                return name
            return f"({self._replaced(self._definitions[name], kept)})"

        return _WORD.sub(meaning, text)


def _factors(term: str) -> list[str]:
    return _parted(term, " * ")


def _parted(text: str, sign: str) -> list[str]:
    """Return the parts of `text` between signs that stand in no parentheses."""
    parts, depth, start = list[str](), 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and text.startswith(sign, place):
            parts.append(text[start:place])
            start = place + len(sign)
    return [*parts, text[start:]]


def _outermost(text: str) -> str:
    """Return `text` without what stands in parentheses."""
    kept, depth = "", 0
    for character in text:
        depth -= character == ")"
        kept += character if depth == 0 else ""
        depth += character == "("
    return kept
