"""A base as the YAML that people read and compare: a line an item, in a stable order.

`base.yaml` is kept small. First what ships with kopt gives way, which every reader has, then where
something was seen, then the names of numbers, and at last the items with the fewest tries. The
truth is in the store; `kopt kb export` writes everything.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp

from .base import Held, Item, KnowledgeBase
from .records import (
    NOTE_LIMIT,
    OUTCOMES,
    SEEN_LIMIT,
    Evidence,
    KnowledgeEntry,
    State,
    Technique,
)

Value = str | int | float | bool | Sequence[str]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*")
_RESERVED = {"null", "true", "false"}


def flow_mapping(items: Mapping[str, Value], digits: int) -> str:
    """Return `{key: value, ...}` without what is empty, zero or false; floats with `digits`."""
    shown = (f"{key}: {_value(value, digits)}" for key, value in items.items() if value)
    return f"{{{', '.join(shown)}}}"


def scalar(text: str) -> str:
    """Return `text` plain where that is unmistakable, else in double quotes."""
    if _PLAIN.fullmatch(text) and text not in _RESERVED:
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _value(value: Value, digits: int) -> str:
    if isinstance(value, str):
        return scalar(value)
    if isinstance(value, bool):
        return "true"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return f"[{', '.join(map(scalar, value))}]"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() and character != "\ufeff":
        return character
    return f"\\U{ord(character):08X}"


FORMAT = "kopt.knowledge/1"
SEED_KEY = "seed"
"""Key of a file that leaves out what ships with kopt."""
EVIDENCE_NUMBERS = ("tries", *OUTCOMES, "weight", "mean", "m2", "version")
"""In this order where evidence is a mere list of numbers."""
SIZE_LIMIT = 50_000
"""Bytes of base.yaml, about what one prompt can hold of it."""
_HEAD = """\
# What kopt has learned. kopt kb show explains it, kopt kb import takes in what others have learned.
# This file is rendered from samples.sqlite: edits here do not last. Gains are natural logarithms of
# speed ratios, 0.18 is 1.2x faster; a prior is documented, never measured. See docs/knowledge.md.
# Lists of nine: tries, gained, lost, within noise, failed, weight, mean, m2, version.
"""
_LEFT_OUT = "# {} items with the fewest tries are left out here; kopt kb export has them.\n"


@dataclass(frozen=True)
class _Detail:
    """How many details are written."""

    digits: int
    is_seed_told: bool
    """Whether what ships with kopt, and is as it ships, stands there too."""
    seen: int
    """References and kernels of an evidence line."""
    notes: int
    """Notes of an entry, the latest."""
    is_named: bool = True
    """Whether the numbers of evidence have their names."""


_COMPLETE = _Detail(digits=6, is_seed_told=True, seen=SEEN_LIMIT, notes=NOTE_LIMIT)
_DETAILS = (
    _Detail(digits=4, is_seed_told=True, seen=SEEN_LIMIT, notes=NOTE_LIMIT),
    _Detail(digits=4, is_seed_told=False, seen=SEEN_LIMIT, notes=NOTE_LIMIT),
    _Detail(digits=3, is_seed_told=False, seen=1, notes=1),
    _Detail(digits=3, is_seed_told=False, seen=0, notes=1),
    _Detail(digits=3, is_seed_told=False, seen=0, notes=0, is_named=False),
)


@dataclass(frozen=True)
class _Line:
    """A line of the file."""

    text: str
    rank: tuple[int, int] | None = None
    """Tries and version, whose lowest gives way first, a prior before evidence; None: stays."""


def render_complete(base: KnowledgeBase) -> str:
    """Return `base` as kopt.knowledge/1 with everything that another base can use."""
    return _HEAD + "".join(line.text for line in _lines(base, base, _COMPLETE))


def render_small(base: KnowledgeBase, seed: KnowledgeBase) -> str:
    """Return `base` as kopt.knowledge/1 in at most SIZE_LIMIT bytes; `seed` is what ships."""
    lines: list[_Line] = []
    for detail in _DETAILS:
        lines = list(_lines(base, seed, detail))
        if _excess(lines) <= 0:
            return _HEAD + "".join(line.text for line in lines)
    count = len(lines)
    if _excess(line for line in lines if line.rank is None) > -SIZE_LIMIT // 2:
        # Names and descriptions that others flooded it with do not crowd out what was tried.
        lines = list(_lines(_without_discovered(base, seed), seed, _DETAILS[-1]))
    kept = _fitted(lines)
    return _HEAD + "".join(line.text for line in kept) + _LEFT_OUT.format(count - len(kept))


def _excess(lines: Iterable[_Line]) -> int:
    """Return by how many bytes the file would be too large."""
    return len(_HEAD) + sum(len(line.text.encode()) for line in lines) - SIZE_LIMIT


def _fitted(lines: list[_Line]) -> list[_Line]:
    """Return the lines that there is room for, those with the fewest tries left out."""
    excess = _excess(lines) + len(_LEFT_OUT)
    left_out: set[int] = set()
    for _, place in sorted((line.rank, i) for i, line in enumerate(lines) if line.rank):
        if excess <= 0:
            break
        left_out.add(place)
        excess -= len(lines[place].text.encode())
    return [line for i, line in enumerate(lines) if i not in left_out]


def _without_discovered(base: KnowledgeBase, seed: KnowledgeBase) -> KnowledgeBase:
    """Return what `base` says of the states and techniques that ship."""
    known = seed.techniques.keys()
    kept: list[Item] = [*seed.states.values(), *seed.techniques.values()]
    kept += [
        entry
        for entry in base.entries.values()
        if entry.state in seed.states and known >= set(entry.techniques)
    ]
    kept += [pair for pair in base.pairs.values() if known >= set(pair.key)]
    return base.with_items(kept)


def _lines(base: KnowledgeBase, seed: KnowledgeBase, detail: _Detail) -> Iterator[_Line]:
    yield _Line(f"schema: {FORMAT}\nversion: {base.version}\norigin: {base.origin}\n")
    yield _Line(f"origins: {flow_mapping(base.origins, detail.digits)}\n")
    if not detail.is_seed_told:
        yield _Line(f"{SEED_KEY}: left_out\n")
    yield _Line("states:\n")
    for state in base.states.values():
        yield from _described_line(state, seed.states.get(state.id), detail)
    yield _Line("techniques:\n")
    for technique in base.techniques.values():
        yield from _described_line(technique, seed.techniques.get(technique.id), detail)
    yield _Line("entries:\n")
    for state_id, entries in groupby(base.entries.values(), key=lambda entry: entry.state):
        yield _Line(f"  {scalar(state_id)}:\n")
        for entry in entries:
            yield from _item_lines(entry, base.origin, seed.entries.get(entry.key), detail)
    yield _Line("pairs:\n")
    for pair in base.pairs.values():
        yield from _item_lines(pair, base.origin, seed.pairs.get(pair.key), detail)


def _described_line(
    item: State | Technique, known: State | Technique | None, detail: _Detail
) -> Iterator[_Line]:
    if item == known and not detail.is_seed_told:
        return
    fields = item.model_dump(exclude={"id", "is_discovered", "description", "source"})
    last = {"description": item.description, "source": item.source}
    shown = flow_mapping({**fields, "discovered": item.is_discovered, **last}, detail.digits)
    yield _Line(f"  {scalar(item.id)}: {shown}\n")


def _item_lines(item: Held, own: str, known: Held | None, detail: _Detail) -> Iterator[_Line]:
    """Yield the line of an entry or a pair itself, then those of its evidence and its notes.

    The evidence of the base's `own` origin does not name it; `known` is what ships of that name.
    """
    indent = "    " if isinstance(item, KnowledgeEntry) else "  "
    is_shipped = known is not None and known.prior == item.prior
    if item.is_deprecated or (item.prior and (detail.is_seed_told or not is_shipped)):
        prior = {} if item.prior is None else item.prior.model_dump()
        fields = {"prior": prior.pop("gain", 0.0), **prior, "deprecated": item.is_deprecated}
        rank = None if is_shipped or item.is_deprecated else (0, 0)
        yield _Line(
            f"{indent}{scalar(item.local_name)}: {flow_mapping(fields, detail.digits)}\n", rank
        )
    for arch, origins in item.evidence.items():
        for origin, evidence in origins.items():
            by = "" if origin == own else f" by {origin}"
            ratio = f"  # {exp(evidence.mean):.2f}x" if evidence.weight and detail.is_named else ""
            told = f"{_evidence_text(evidence, detail)}{ratio}\n"
            rank = evidence.tries, evidence.version
            yield _Line(f"{indent}{item.local_name} on {arch}{by}: {told}", rank)
    latest = item.notes[-detail.notes :] if detail.notes else ()
    for number, note in enumerate(latest, start=1):
        shown = flow_mapping(note.model_dump(), detail.digits)
        yield _Line(f"{indent}{item.local_name} note {number}: {shown}\n")


def _evidence_text(evidence: Evidence, detail: _Detail) -> str:
    numbers: dict[str, Value] = {name: getattr(evidence, name) for name in EVIDENCE_NUMBERS}
    if not detail.is_named:
        return f"[{', '.join(_value(number, detail.digits) for number in numbers.values())}]"
    where = {"kernels": evidence.kernels, "seen": evidence.seen}
    last = {name: names[-detail.seen :] for name, names in where.items() if detail.seen}
    return flow_mapping({**numbers, **last}, detail.digits)
