"""Reports of `kopt kb show`: all states of a base, or one state in full."""

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import pooled
from kopt.search.knowledge.records import (
    Evidence,
    KnowledgeEntry,
    Note,
    Pair,
    Prior,
    State,
    Technique,
    arch_key,
)

from .posterior import Prediction, Situation, predict


class PooledEvidence(Record):
    """The evidence of all origins on an entry or a pair on one architecture."""

    arch_key: str
    origins: tuple[str, ...]
    evidence: Evidence


class EntryReport(Record):
    """Evidence and expectation of techniques in a state."""

    techniques: tuple[str, ...]
    expected: Prediction
    """Computed from all that is known, for the report's architecture."""
    prior: Prior | None
    evidence: tuple[PooledEvidence, ...]
    notes: tuple[Note, ...]
    is_deprecated: bool
    inherited_from: str | None = None
    """The state that knows it, if this one has no entry of its own."""


class PairReport(Record):
    """The gain that a technique adds to the next one."""

    before: str
    after: str
    prior: Prior | None
    evidence: tuple[PooledEvidence, ...]


class StateReport(Record):
    """One state in full."""

    schema_: Literal["kopt.knowledge-state/1"] = Field(
        default="kopt.knowledge-state/1", alias="schema"
    )
    status: Literal["passed"] = "passed"
    version: int
    arch_key: str
    """The architecture that the expectations are for."""
    state: State
    entries: tuple[EntryReport, ...]
    """Entries, the highest expected gain first."""
    pairs: tuple[PairReport, ...]
    """Pairs of the techniques above."""
    techniques: tuple[Technique, ...]
    """The techniques of the entries."""


class StateSummary(Record):
    """One state in a line."""

    state: State
    techniques: int
    tried: int
    """How many of the techniques were tried."""
    tries: int
    gained: int
    best: EntryReport | None
    """The entry with the highest expected gain."""


class BaseReport(Record):
    """A base as a whole."""

    schema_: Literal["kopt.knowledge-report/1"] = Field(
        default="kopt.knowledge-report/1", alias="schema"
    )
    status: Literal["passed"] = "passed"
    path: Path
    version: int
    origin: str
    origins: dict[str, int]
    arch_key: str
    architectures: tuple[str, ...]
    """All that there is evidence of."""
    states: tuple[StateSummary, ...]
    techniques: tuple[Technique, ...]
    pairs: int


def report_base(base: KnowledgeBase, path: Path, arch: str | None = None) -> BaseReport:
    """Return what `base`, at `path`, knows of every state; `arch` None: where most was tried."""
    key = arch or busiest_arch(base)
    states = (_summary(base, state, key) for state in base.states.values())
    return BaseReport(
        path=path,
        version=base.version,
        origin=base.origin,
        origins=dict(base.origins),
        arch_key=key,
        architectures=tuple(sorted(_tries_by_arch(base))),
        states=tuple(sorted(states, key=lambda one: (-one.tries, one.state.id))),
        techniques=tuple(base.techniques.values()),
        pairs=len(base.pairs),
    )


def report_state(base: KnowledgeBase, name: str, arch: str | None = None) -> StateReport:
    """Return everything that `base` knows of one state.

    Raises:
        ToolError: There is no such state.
    """
    state = find_state(base, name)
    key = arch or busiest_arch(base)
    entries = _entries(base, state, key)
    names = {technique for entry in entries for technique in entry.techniques}
    return StateReport(
        version=base.version,
        arch_key=key,
        state=state,
        entries=entries,
        pairs=tuple(
            PairReport(
                before=pair.before, after=pair.after, prior=pair.prior, evidence=_pooled(pair)
            )
            for pair in base.pairs.values()
            if pair.after in names
        ),
        techniques=tuple(one for one in base.techniques.values() if one.id in names),
    )


def busiest_arch(base: KnowledgeBase) -> str:
    """Return the architecture key with most tries; kopt's default, estimated, without any."""
    tries = _tries_by_arch(base)
    if not tries:
        return arch_key(DEFAULT_ARCH, Provenance.ESTIMATED)
    return min(tries, key=lambda key: (-tries[key], key))


def find_state(base: KnowledgeBase, name: str) -> State:
    """Return the state of this name.

    Raises:
        ToolError: There is none; the message says what it is if it is a technique.
    """
    if name in base.states:
        return base.states[name]
    if name in base.techniques:
        states = dict.fromkeys(state for state, names in base.entries if name in names)
        raise ToolError(
            f"{name} is a technique and no state: {base.techniques[name].description}"
            f" Known in {', '.join(states) or 'no state yet'}"
        )
    raise ToolError(f"there is no state {name}: {near_matches(name, base.states)}")


def _tries_by_arch(base: KnowledgeBase) -> Counter[str]:
    tries: Counter[str] = Counter()
    for entry in base.entries.values():
        for key, origins in entry.evidence.items():
            tries[key] += sum(one.tries for one in origins.values())
    return tries


def _summary(base: KnowledgeBase, state: State, key: str) -> StateSummary:
    entries = _entries(base, state, key)
    bodies = [[body.evidence for body in entry.evidence] for entry in entries]
    total = pooled(evidence for several in bodies for evidence in several)
    drawn = (entry for entry in entries if not entry.is_deprecated)
    return StateSummary(
        state=state,
        techniques=len(entries),
        tried=sum(map(bool, bodies)),
        tries=total.tries,
        gained=total.gained,
        best=next(drawn, None),
    )


def _entries(base: KnowledgeBase, state: State, key: str) -> tuple[EntryReport, ...]:
    """Return what is known in `state` itself, then what it inherits, best expectation first."""
    known: dict[tuple[str, ...], KnowledgeEntry] = {}
    for ancestor in base.ancestry(state.id):
        for entry in base.entries_of(ancestor.id):
            known.setdefault(entry.techniques, entry)
    reports = (_entry(base, entry, Situation(key, state.id)) for entry in known.values())
    return tuple(sorted(reports, key=_promise))


def _entry(base: KnowledgeBase, entry: KnowledgeEntry, situation: Situation) -> EntryReport:
    is_own = entry.state == situation.state
    return EntryReport(
        techniques=entry.techniques,
        expected=predict(base, situation, entry.techniques),
        prior=entry.prior,
        evidence=_pooled(entry) if is_own else (),
        notes=entry.notes,
        is_deprecated=entry.is_deprecated,
        inherited_from=None if is_own else entry.state,
    )


def _promise(entry: EntryReport) -> tuple[bool, float, tuple[str, ...]]:
    gain = entry.expected.works * entry.expected.gain
    return entry.is_deprecated, -gain, entry.techniques


def _pooled(item: KnowledgeEntry | Pair) -> tuple[PooledEvidence, ...]:
    return tuple(
        PooledEvidence(arch_key=key, origins=tuple(origins), evidence=pooled(origins.values()))
        for key, origins in item.evidence.items()
    )
