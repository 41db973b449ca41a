"""The branches of a candidate's #if that nvcc takes, and the values of names that tell the target.

nvcc's preprocessor is asked, for the device and the architecture at hand; the simulator's compiler
is then given a source without conditions, so that it cannot choose otherwise. Lines keep their
numbers. Includes go to the front: a definition before one could change the simulator's own headers.

What nvcc answers is read by marks that are drawn for each question: a candidate that could write
one, in a string, would choose the simulator's branches itself.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from kopt.config.settings import Settings
from kopt.kernels.record import Diagnostic, source_excerpt
from kopt.kernels.source_lexer import LogicalLine, logical_lines
from kopt.kernels.source_macros import asks_the_compiler
from kopt.kernels.source_names import CONDITIONALS, TARGET_NAMES
from kopt.tools.cuda.compile_job import CompileContext, CompileJob
from kopt.tools.cuda.compiler_log import CANDIDATE_FILE
from kopt.tools.cuda.nvcc import preprocess
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.devices.device import Program

_PLACE = re.compile(r'^# \d+ "([^"]*)"')


@dataclass(frozen=True)
class ChosenSource:
    """A candidate's source as its preprocessor branches have been chosen."""

    text: str
    """Without conditions and includes where `includes` holds them; else the source itself."""
    includes: tuple[tuple[int, str], ...] = ()
    """Line and header of each #include that is taken."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """What names that tell the target are to nvcc."""
    refusal: Diagnostic | None = None
    """Why the two compilers cannot be given the same code."""


def choose_branches(program: Program, settings: Settings) -> ChosenSource:
    """Return the source of `program` with the branches that nvcc takes.

    Raises:
        SetupError: There is no compiler, or it cannot be run in the sandbox.
    """
    source, defines = program.candidate.source, program.plan.defines
    if not _asks(source, frozenset(defines)):
        return ChosenSource(source)
    plan = program.plan
    return _chosen(
        source,
        _Options(program.arch, tuple(sorted(defines.items())), plan.fast_math),
        settings,
    )


_asks = lru_cache(maxsize=64)(asks_the_compiler)


@dataclass(frozen=True)
class _Options:
    """What else decides about the preprocessor's answer."""

    arch: str
    defines: tuple[tuple[str, int], ...]
    fast_math: bool

    def job(self, text: str) -> CompileJob:
        return CompileJob(text, "", self.arch, dict(self.defines), self.fast_math)


@lru_cache(maxsize=64)
def _chosen(source: str, options: _Options, settings: Settings) -> ChosenSource:
    context = CompileContext("nvcc", find_toolchain(settings), settings)
    lines = logical_lines(source)
    names = sorted({t.text for line in lines for t in line.tokens if _tells_target(t.text)})
    mark = f"kopt_{secrets.token_hex(16)}"
    seen = preprocess(options.job(_marked(source, lines, names, mark)), context)
    if seen is None:  # nvcc refuses the source, and the compile stage says why
        return ChosenSource(source)
    taken = {int(number) for number in re.findall(rf"\b{mark}_branch_(\d+)\b", seen)}
    text = _without(source, lines, _untaken(lines, taken))
    rest = logical_lines(text)
    includes = [line for line in rest if _directive(line) == "include"]
    plain = _without(text, rest, {id(line) for line in includes})
    listed = tuple((_line(text, one), one.tokens[2].text) for one in includes)
    changed = None
    if _has_definition_before(rest, includes):
        hoisted = "".join(f"#include {header}\n" for _, header in listed) + plain
        alone = preprocess(options.job(hoisted), context)
        if alone is None or _of_headers(alone) != _of_headers(seen):
            changed = _changed_header(source, rest, includes)
    return ChosenSource(plain, listed, _values(seen, names, mark), changed)


def _tells_target(name: str) -> bool:
    return TARGET_NAMES.fullmatch(name) is not None


def _directive(line: LogicalLine) -> str | None:
    return line.tokens[1].text if line.is_directive and len(line.tokens) > 1 else None


def _line(source: str, line: LogicalLine) -> int:
    return source.count("\n", 0, line.tokens[0].offset) + 1


def _marked(source: str, lines: list[LogicalLine], names: list[str], mark: str) -> str:
    """Return `source` with a mark behind each condition, and the names that tell the target."""
    parts: list[str] = []
    start = 0
    for number, (line, behind) in enumerate(pairwise(lines)):
        if _directive(line) in CONDITIONALS or _directive(line) == "else":
            end = behind.tokens[0].offset
            parts += [source[start:end], f"\n{mark}_branch_{number}\n"]
            start = end
    told = "".join(f'\n{mark}_name "{name}"\n{mark}_value {name}\n' for name in names)
    return "".join((*parts, source[start:], "\n", told))


def _untaken(lines: list[LogicalLine], taken: set[int]) -> set[int]:
    """Return the ids of the conditions themselves and of all lines in branches not taken."""
    dropped: set[int] = set()
    open_branches: list[bool] = []
    for number, line in enumerate(lines):
        name = _directive(line)
        if name == "endif" or name in CONDITIONALS or name == "else":
            dropped.add(id(line))
            if name not in ("if", "ifdef", "ifndef") and open_branches:
                open_branches.pop()
            if name != "endif":
                open_branches.append(number in taken)
        elif not all(open_branches):
            dropped.add(id(line))
    return dropped


def _without(source: str, lines: list[LogicalLine], dropped: set[int]) -> str:
    """Return `source` with blanks for the dropped lines, and their newlines."""
    parts: list[str] = []
    start = 0
    ends = [*(line.tokens[0].offset for line in lines[1:]), len(source)]
    for line, end in zip(lines, ends, strict=True):
        begin = line.tokens[0].offset
        if id(line) in dropped:
            parts += [source[start:begin], re.sub(r"[^\n]", " ", source[begin:end])]
        else:
            parts.append(source[start:end])
        start = end
    return "".join(parts)


def _has_definition_before(lines: list[LogicalLine], includes: list[LogicalLine]) -> bool:
    last = includes[-1].tokens[0].offset if includes else -1
    return any(
        _directive(line) in ("define", "undef") and line.tokens[0].offset < last for line in lines
    )


def _changed_header(
    source: str, lines: list[LogicalLine], includes: list[LogicalLine]
) -> Diagnostic:
    first = next(line for line in lines if _directive(line) in ("define", "undef"))
    behind = next(one for one in includes if one.tokens[0].offset > first.tokens[0].offset)
    number = _line(source, behind)
    return Diagnostic(
        message=f"a #define or #undef above changes what {behind.tokens[2].text} holds",
        line=number,
        excerpt=source_excerpt(source, number),
        hint="put all includes first",
    )


def _of_headers(preprocessed: str) -> list[str]:
    """Return the lines that come from headers, without their numbers."""
    return list(_header_lines(preprocessed))


def _header_lines(preprocessed: str) -> Iterator[str]:
    in_header = False
    for line in preprocessed.splitlines():
        place = _PLACE.match(line)
        if place is not None:
            in_header = place[1] not in (CANDIDATE_FILE, "<command-line>", "<built-in>")
        elif in_header and line.strip():
            yield line


def _values(preprocessed: str, names: list[str], mark: str) -> dict[str, str]:
    """Return what each name that tells the target stands for, where it stands for anything."""
    found: dict[str, str] = {}
    for name in names:
        told = re.search(
            rf'^{mark}_name "{name}"\s*\n{mark}_value (.*)$', preprocessed, re.MULTILINE
        )
        if told is not None and told[1].strip() != name:
            found[name] = told[1].strip()
    return found
