"""What may be an answer at all: filters as they are asked for, checked, and as SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from kopt.config.errors import ToolError
from kopt.tools.docs.chunking.tags import known_archs, known_dtypes
from kopt.tools.docs.code_tokens import arch_tag
from kopt.tools.docs.indexing.entries import symbol_name
from kopt.tools.docs.library.pins import KNOWN_LIBRARIES
from kopt.tools.docs.own.corpus import SOURCES
from kopt.tools.docs.query_text import plain_text
from kopt.tools.docs.records import Kind, SearchRequest

FIRST_WITH_ITS_OWN = 90
"""The first architecture with instructions that later ones lack."""


@dataclass(frozen=True)
class Filters:
    """What may be an answer at all; hashable, as caches are kept by it."""

    sources: tuple[str, ...] | None = None
    """Only these; None for all."""
    without: tuple[str, ...] = ()
    kind: str | None = None
    arch: str | None = None
    """As a tag: sm90."""
    dtype: str | None = None
    symbol: str | None = None
    """As `entries.symbol_name` writes it."""

    def admits(self, source: str) -> bool:
        """Say whether a source may answer."""
        is_chosen = self.sources is None or source in self.sources
        return is_chosen and source not in self.without


def filters_of(request: SearchRequest, built: Iterable[str]) -> Filters:
    """Return the filters of a request.

    Args:
        request: What is asked.
        built: Sources of the library index; none if it is not built.

    Raises:
        ToolError: A value is unknown, or of a library that is not in the index; the message lists
            what is known, or says how to build it.
    """
    names = [name.strip() for name in (request.source or "").split(",")]
    chosen = tuple(dict.fromkeys(name for name in names if name))
    present = [*SOURCES, *built]
    for source in chosen:
        if source in KNOWN_LIBRARIES and source not in present:
            raise ToolError(f"source {source!r} is not in the index; {how_to_build(source)}")
        _known("source", source, present)
    check_left_out(request.without, built)
    if request.kind:
        _known("kind", request.kind, get_args(Kind))
    if request.dtype:
        _known("dtype", request.dtype, known_dtypes())
    arch = arch_tag(request.arch) if request.arch else None
    if request.arch and arch not in known_archs():
        _known("arch", request.arch, [name.replace("sm", "sm_") for name in known_archs()])
    return Filters(
        sources=chosen or None,
        without=tuple(sorted(set(request.without))),
        kind=request.kind,
        arch=arch,
        dtype=request.dtype,
        symbol=symbol_name(plain_text(request.symbol)) if request.symbol else None,
    )


def check_left_out(sources: Iterable[str], built: Iterable[str]) -> None:
    """See that `sources`, which are to be left out, can be: a misspelled one would not be.

    Raises:
        ToolError: One is unknown; the message lists what is known.
    """
    known = [*SOURCES, *dict.fromkeys((*KNOWN_LIBRARIES, *built))]
    for source in sources:
        _known("source", source, known)


def barring_archs(arch: str) -> tuple[str, ...]:
    """Return the architectures whose code `arch` does not run, as tags.

    What is written for sm_80 runs on all later ones; from sm_90 on an architecture has
    instructions that no other has (wgmma, tcgen05), so its code is taken for bound to it.
    """
    number = int(arch.removeprefix("sm"))
    return tuple(
        other
        for other in known_archs()
        if other != arch and int(other.removeprefix("sm")) >= min(number, FIRST_WITH_ITS_OWN)
    )


def running_archs(arch: str) -> tuple[str, ...]:
    """Return the architectures whose code `arch` runs, its own included, as tags."""
    barred = barring_archs(arch)
    return tuple(other for other in known_archs() if other not in barred)


def how_to_build(source: str) -> str:
    """Return the command that adds a known library to the index, with what it is."""
    return f"kopt docs build --source {source} adds it: {KNOWN_LIBRARIES[source].holds}"


def conditions(filters: Filters, sources: Sequence[str]) -> tuple[str, list[str]]:
    """Return an SQL condition on the columns of `chunk`, and its values; "" where all may answer.

    Args:
        filters: What may be an answer.
        sources: Those of the index that is asked.
    """
    terms: list[str] = []
    values: list[str] = []
    admitted = [source for source in sources if filters.admits(source)]
    if len(admitted) < len(sources):
        terms.append(f"chunk.source in ({','.join('?' * len(admitted))})")
        values += admitted
    if filters.kind:
        terms.append("chunk.kind = ?")
        values.append(filters.kind)
    if filters.arch:
        barred = barring_archs(filters.arch)
        is_barred = " or ".join("instr(piece.arch, ?)" for _arch in barred) or "false"
        of_pieces = "in (select piece.first from chunk as piece where"  # shown as one function
        terms.append(
            f"(chunk.first {of_pieces} instr(piece.arch, ?))"
            f" or chunk.first not {of_pieces} {is_barred}))"
        )
        values += [f" {arch} " for arch in (filters.arch, *barred)]
    if filters.dtype:
        terms.append("instr(chunk.dtype, ?)")
        values.append(f" {filters.dtype} ")
    if filters.symbol:
        terms.append("chunk.id in (select chunk from symbol where name = ?)")
        values.append(filters.symbol)
    return " and ".join(terms), values


def _known(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ToolError(f"{name} {value[:60]!r} is unknown; known: {', '.join(known)}")
