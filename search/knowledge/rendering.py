"""A base as the YAML that people read and compare: a line an item, in a stable order.

`base.yaml` is kept small: what ships with kopt and how much is said of where something was seen
give way, in this order, and the items with the fewest tries at last. The truth is in the store;
`kopt kb export` writes everything.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import exp

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.flow_yaml import Value, flow_mapping, scalar
from kopt.search.knowledge.records import Entry, Evidence, Note, Pair, Prior, State, Technique

FORMAT = "kopt.knowledge/1"
SIZE_LIMIT = 50_000
"""Bytes of base.yaml, about what one prompt can hold of it."""
_HEAD = """\
# What kopt has learned. kopt kb show explains it, kopt kb import takes in what others have learned.
# This file is rendered from samples.sqlite: edits here do not last. Gains are natural logarithms of
# speed ratios, 0.18 is 1.2x faster; a prior is documented, never measured. See docs/knowledge.md.
"""
_LEFT_OUT = "# {} items with the fewest tries are left out here; kopt kb export has them.\n"


@dataclass(frozen=True)
class _Detail:
    """How much is said."""

    digits: int
    seen: int
    """References and kernels of an evidence line, notes of an entry."""
    is_seed_told: bool
    """Whether what ships with kopt is described and names its sources."""


_COMPLETE = _Detail(digits=6, seen=4, is_seed_told=True)
_DETAILS = (
    _Detail(digits=4, seen=4, is_seed_told=True),
    _Detail(digits=4, seen=4, is_seed_told=False),
    _Detail(digits=3, seen=1, is_seed_told=False),
    _Detail(digits=3, seen=0, is_seed_told=False),
)


@dataclass(frozen=True)
class _Line:
    """A line of the file."""

    text: str
    rank: tuple[int, int] | None = None
    """Tries and version of evidence, whose lowest gives way first; None: stays."""


def render_complete(base: KnowledgeBase) -> str:
    """Return `base` as kopt.knowledge/1 with everything that another base can use."""
    return _HEAD + "".join(line.text for line in _lines(base, base, _COMPLETE))


def render_small(base: KnowledgeBase, seed: KnowledgeBase) -> str:
    """Return `base` as kopt.knowledge/1 in at most SIZE_LIMIT bytes; `seed` is what ships."""
    lines: list[_Line] = []
    for detail in _DETAILS:
        lines = list(_lines(base, seed, detail))
        if _excess(lines) <= 0:
            break
    return _HEAD + _fitted(lines)


def _excess(lines: Iterable[_Line]) -> int:
    """Return by how many bytes the file would be too large."""
    return len(_HEAD) + sum(len(line.text.encode()) for line in lines) - SIZE_LIMIT


def _fitted(lines: list[_Line]) -> str:
    excess = _excess(lines)
    if excess <= 0:
        return "".join(line.text for line in lines)
    excess += len(_LEFT_OUT)
    left_out: set[int] = set()
    for _, place in sorted((line.rank, i) for i, line in enumerate(lines) if line.rank):
        if excess <= 0:
            break
        left_out.add(place)
        excess -= len(lines[place].text.encode())
    kept = (line.text for i, line in enumerate(lines) if i not in left_out)
    return "".join(kept) + _LEFT_OUT.format(len(left_out))


def _lines(base: KnowledgeBase, seed: KnowledgeBase, detail: _Detail) -> Iterator[_Line]:
    yield _Line(f"schema: {FORMAT}\nversion: {base.version}\norigin: {base.origin}\n")
    yield _Line(f"origins: {flow_mapping(base.origins, detail.digits)}\n")
    yield _Line("states:\n")
    for state in base.states.values():
        is_brief = not detail.is_seed_told and seed.states.get(state.id) == state
        yield _Line(
            f"  {scalar(state.id)}: {flow_mapping(_state(state, is_brief), detail.digits)}\n"
        )
    yield _Line("techniques:\n")
    for one in base.techniques.values():
        is_brief = not detail.is_seed_told and seed.techniques.get(one.id) == one
        yield _Line(
            f"  {scalar(one.id)}: {flow_mapping(_technique(one, is_brief), detail.digits)}\n"
        )
    yield from _entry_lines(base, seed, detail)
    yield _Line("pairs:\n")
    for key, pair in base.pairs.items():
        known = seed.pairs.get(key)
        for line in _item_lines(pair, f"{pair.before} before {pair.after}", known, detail):
            yield replace(line, text=f"  {line.text}")


def _entry_lines(base: KnowledgeBase, seed: KnowledgeBase, detail: _Detail) -> Iterator[_Line]:
    yield _Line("entries:\n")
    state = None
    for key, entry in base.entries.items():
        if entry.state != state:
            state = entry.state
            yield _Line(f"  {scalar(state)}:\n")
        for line in _item_lines(entry, " + ".join(entry.techniques), seed.entries.get(key), detail):
            yield replace(line, text=f"    {line.text}")


def _item_lines(
    item: Entry | Pair, name: str, known: Entry | Pair | None, detail: _Detail
) -> Iterator[_Line]:
    """Yield the line of an entry or a pair itself, then one for each body of its evidence."""
    is_brief = not detail.is_seed_told and known is not None and known.prior == item.prior
    fields = _prior(item.prior, is_brief)
    if isinstance(item, Entry) and item.is_deprecated:
        fields["deprecated"] = True
    if fields or not item.evidence:
        yield _Line(f"{scalar(name)}: {flow_mapping(fields, detail.digits)}\n")
    for arch, origins in item.evidence.items():
        for origin, evidence in origins.items():
            shown = flow_mapping(_evidence(evidence, detail.seen), detail.digits)
            ratio = f"  # {exp(evidence.mean):.2f}x" if evidence.weight else ""
            text = f"{name} on {arch} by {origin}: {shown}{ratio}\n"
            yield _Line(text, (evidence.tries, evidence.version))
    if isinstance(item, Entry) and detail.seen:
        for number, note in enumerate(item.notes[-detail.seen :], start=1):
            yield _Line(f"{name} note {number}: {flow_mapping(_note(note), detail.digits)}\n")


def _state(state: State, is_brief: bool) -> dict[str, Value]:
    told = {} if is_brief else {"description": state.description, "source": state.source}
    return {
        "bottleneck": state.bottleneck,
        "suspects": state.suspects,
        "traits": state.traits,
        "inherits": state.inherits or "",
        "discovered": state.is_discovered,
        **told,
    }


def _technique(technique: Technique, is_brief: bool) -> dict[str, Value]:
    told = {"description": technique.description, "source": technique.source}
    return {
        "family": technique.family,
        "category": technique.category,
        "needs": technique.needs,
        "prepares": technique.prepares,
        "discovered": technique.is_discovered,
        **({} if is_brief else told),
    }


def _prior(prior: Prior | None, is_brief: bool) -> dict[str, Value]:
    if prior is None:
        return {}
    source = "seed" if is_brief else prior.source
    return {"prior": prior.gain, "weight": prior.weight, "source": source}


def _note(note: Note) -> dict[str, Value]:
    return {"text": note.text, "version": note.version, "evidence": note.evidence}


def _evidence(evidence: Evidence, seen: int) -> dict[str, Value]:
    return {
        "tries": evidence.tries,
        "gained": evidence.gained,
        "lost": evidence.lost,
        "within_noise": evidence.within_noise,
        "failed": evidence.failed,
        "weight": evidence.weight,
        "mean": evidence.mean,
        "m2": evidence.m2,
        "version": evidence.version,
        "kernels": evidence.kernels[-seen:] if seen else (),
        "seen": evidence.seen[-seen:] if seen else (),
    }
