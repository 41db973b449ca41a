"""What may be an answer at all: filters as they are asked for, checked, and as SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.tools.docs.words.tags import known_archs

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
    """An architecture as a tag, e.g. sm90."""
    dtype: str | None = None
    symbol: str | None = None
    """A symbol as `entries.symbol_name` writes it."""

    def admits(self, source: str) -> bool:
        """Say whether a source may answer."""
        is_chosen = self.sources is None or source in self.sources
        return is_chosen and source not in self.without


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


def conditions(filters: Filters, sources: Sequence[str]) -> tuple[str, list[str]]:
    """Return an SQL condition on `chunk` in an index of `sources`, and its values; "" for all."""
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
