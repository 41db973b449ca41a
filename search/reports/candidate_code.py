"""The code of a candidate: its source, and what it changes of its parent's, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal

from .contents import Contents

_KINDS: dict[str, Literal["ins", "del", "b"]] = {"+": "ins", "-": "del", "@": "b"}


@dataclass(frozen=True)
class CodeLine:
    """One line of a difference, with the HTML element that shows its kind."""

    kind: Literal["ins", "del", "b", ""]
    """Added, removed, a place, or unchanged."""
    text: str


@dataclass(frozen=True)
class CandidateCode:
    """What is shown of one candidate's code."""

    seq: int
    parent: int | None
    """The candidate that it is compared with; None for the start."""
    tune_changes: str
    """`BLOCK 256 to 512`: values that differ from its parent's; empty without any."""
    changes: tuple[CodeLine, ...]
    """Lines that differ from its parent's, with their neighbors; () for the same source."""
    source: str
    source_of: int | None
    """An earlier candidate with the same source; None if it is the first with it."""


def candidate_code(contents: Contents, seq: int) -> CandidateCode:
    """Return the code of candidate `seq`."""
    entry, source = contents.report.population[seq], contents.sources[seq]
    parent = entry.parents[0] if entry.parents else None
    before = None if parent is None else contents.report.population[parent]
    first = next(one.seq for one in contents.report.population if one.candidate == entry.candidate)
    return CandidateCode(
        seq=seq,
        parent=parent,
        tune_changes="" if before is None else _tune_changes(before.tune, entry.tune),
        changes=()
        if parent is None
        else changes(contents.sources[parent], source, (f"#{parent}", f"#{seq}")),
        source=source,
        source_of=None if first == seq else first,
    )


def changes(before: str, after: str, names: tuple[str, str]) -> tuple[CodeLine, ...]:
    """Return the unified difference of two sources; () if they are the same."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""))
    head, rest = lines[:2], lines[2:]
    told = [CodeLine("b", line) for line in head]
    return (*told, *(CodeLine(_KINDS.get(line[:1], ""), line) for line in rest))


def _tune_changes(before: dict[str, int], after: dict[str, int]) -> str:
    def words() -> Iterator[str]:
        for name, value in after.items():
            if before.get(name) != value:
                known = before.get(name)
                yield f"{name} {value}" if known is None else f"{name} {known} to {value}"

    return ", ".join(words())
