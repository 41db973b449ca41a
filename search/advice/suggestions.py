"""What to try next, from what is known of a run: fixes, notes, the leader's limits, families.

A suggestion is an idea with its evidence, not a promise: what a time model would gain is estimated
also where the leader itself was measured.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from kopt.kernels.families import FAMILY_CHANGES
from kopt.kernels.profile_result import ProfileResult, Suspect
from kopt.kernels.record import Diagnostic, Record
from kopt.kernels.status import Provenance
from kopt.search.records.members import Member
from kopt.search.selection.family_standing import FamilyStanding
from kopt.search.selection.ranking import speed_words
from kopt.tools.facts.wording import plain

from .fitting_note import FittingNote
from .needs import helpful_families

MOST_FIXES = 3
MOST_TRAITS = 3
MOST_FAMILIES = 2

SuggestionKind = Literal["fix", "memory", "note", "trait", "family", "cross", "sweep"]


class MemorySuggestion(Record):
    """One technique that memory suggests for one program."""

    technique: str
    """Id; goes into the candidate's techniques."""
    family: str
    description: str
    candidate: int
    """`seq` of the program that it is suggested for."""
    state: str
    """Id of that program's performance state."""
    confidence: float
    """The confidence of the match of the program with the state, 0 to 1."""
    speed: float
    """Expected speed after it over the speed before, where it has an effect."""
    interval: tuple[float, float]
    """Where the next such ratio lies with 95 %."""
    works: float
    """Chance that it passes the checks and has an effect beyond noise, 0 to 1."""
    tries: int
    """In this state on this architecture."""
    rests_on: tuple[str, ...]
    """What the expectation rests on, nearest first: results, priors, states it inherits from."""
    evidence: tuple[str, ...]
    """Ids of the last samples behind it, `run/candidate`; empty for a prior alone."""
    is_exploration: bool
    """Suggested because little is known of it."""
    provenance: Provenance = Provenance.ESTIMATED
    """An expectation is estimated, whatever it rests on."""


class Suggestion(Record):
    """One idea for the next round."""

    kind: SuggestionKind
    """fix: repair a failed candidate. memory: what the knowledge base expects to help. note: what a
    document says on code like the leader's. trait: what the leader would gain without something.
    family: one that fits the bottleneck and was not tried. cross: join two. sweep: kopt's own
    proposer."""
    text: str
    """What to do and why, in a sentence or two."""
    parents: tuple[int, ...] = ()
    """The candidates to start from: the parents of the next one."""
    families: tuple[str, ...] = ()
    """What to claim as the family, the best fit first."""
    gain_us: float | None = None
    """By how much the estimate of the leader would fall, without the trait and nothing else."""
    provenance: Provenance | None = None
    """The provenance of the numbers in it."""
    remembered: MemorySuggestion | None = None
    """What memory expects, and what that rests on; of kind memory alone."""
    document: str | None = None
    """Uid of the note that it quotes, as `kopt docs show` takes it; of kind note alone."""


def numbered(member: Member) -> str:
    """Return `#3`, what people call a candidate."""
    return f"#{member.seq}"


@dataclass(frozen=True)
class SuggestionInputs:
    """What suggestions are made from."""

    members: tuple[Member, ...]
    beam: tuple[int, ...]
    failed: tuple[tuple[Member, Diagnostic | None], ...]
    """Candidates of this step that fell short, with the first thing that was wrong."""
    profile: ProfileResult | None
    """The profile of the leader."""
    dtypes: frozenset[str]
    """The dtypes of the kernel's tensors."""
    standings: tuple[FamilyStanding, ...]
    untried: tuple[str, ...]
    ideas: int
    """How many candidates kopt's proposer would try next."""
    remembered: tuple[MemorySuggestion, ...] = ()
    """What memory suggests for the leader."""
    noted: tuple[FittingNote, ...] = ()
    """The notes that fit the leader."""
    name: Callable[[Member], str] = numbered
    """What a candidate is called."""

    def leader(self) -> str:
        """Return what the best of the beam is called; there has to be one."""
        return self.name(self.members[self.beam[0]])


def make_suggestions(known: SuggestionInputs) -> tuple[Suggestion, ...]:
    """Return what to try next, the most pressing first."""
    traits = tuple(islice(_traits(known), MOST_TRAITS))
    named = {family for trait in traits for family in trait.families}
    families = (one for one in _families(known) if not named & set(one.families))
    return (
        *islice(_fixes(known), MOST_FIXES),
        *_notes(known),
        *_memory(known),
        *traits,
        *islice(families, MOST_FAMILIES),
        *_cross(known),
        *_sweep(known),
    )


def _fixes(known: SuggestionInputs) -> Iterator[Suggestion]:
    for member, diagnostic in known.failed:
        quick = member.quick
        if quick is None:
            continue
        hint = "" if diagnostic is None or not diagnostic.hint else f" Hint: {diagnostic.hint}"
        yield Suggestion(
            kind="fix",
            text=f"Fix {known.name(member)} ({quick.status.value}): {quick.summary}.{hint}",
            parents=(member.seq,),
            families=(member.family,),
        )


def _memory(known: SuggestionInputs) -> Iterator[Suggestion]:
    """Yield what has helped, or is documented to help, where a program is held back alike."""
    for one in known.remembered:
        low, high = one.interval
        if low < 1.0 < high and not one.tries and not one.evidence:
            continue  # nobody has tried it, and it may as well cost time
        tries = f"{one.tries} tr{'y' if one.tries == 1 else 'ies'} in this state"
        rests = "; ".join(one.rests_on) or "nothing is known of it here"
        seen = f"; seen in {', '.join(one.evidence)}" if one.evidence else ""
        yield Suggestion(
            kind="memory",
            text=(
                f"{one.technique} ({one.family}) on {known.name(known.members[one.candidate])},"
                f" which is in the state {one.state}: {plain(one.description)} Expected where it"
                f" has an effect: {one.speed:.2f} times its speed ({low:.2f} to {high:.2f}),"
                f" chance of one {one.works:.0%} (computed); {tries}; rests on: {rests}{seen}."
            ),
            parents=(one.candidate,),
            families=(one.family,),
            provenance=one.provenance,
            remembered=one,
        )


def _notes(known: SuggestionInputs) -> Iterator[Suggestion]:
    """Yield what documents say on code like that of the leader, with why it was looked up."""
    for one in known.noted:
        yield Suggestion(
            kind="note",
            text=(
                f"{one.title}, for {known.name(known.members[one.candidate])}: {one.why}"
                f" (computed). The note: {plain(one.text)}"
            ),
            parents=(one.candidate,),
            families=(one.family,),
            provenance=Provenance.COMPUTED,
            document=one.document,
        )


def _traits(known: SuggestionInputs) -> Iterator[Suggestion]:
    profile = known.profile
    if profile is None or profile.estimate is None or not known.beam:
        return
    whole_us = profile.estimate.latency_us
    # What limits any kernel to some degree, the bottleneck says.
    traits = [suspect for suspect in profile.suspects if not suspect.is_limit]
    for suspect in sorted(traits, key=lambda one: -one.gain_us):
        line = () if suspect.line is None else (f"line {suspect.line}",)
        evidence = "; ".join((*line, *suspect.evidence))
        yield Suggestion(
            kind="trait",
            text=(
                f"{known.leader()}: {suspect.statement} Without it the estimate falls by"
                f" {suspect.gain_us:.2f} us of {whole_us:.2f} us"
                f"{f' ({evidence})' if evidence else ''}. {_ways(suspect, known)}"
            ),
            parents=known.beam[:1],
            families=_untried_first(suspect.families, known),
            gain_us=suspect.gain_us,
            provenance=Provenance.ESTIMATED,
        )


def _families(known: SuggestionInputs) -> Iterator[Suggestion]:
    """Yield the untried families that fit what holds the leader back."""
    profile = known.profile
    if profile is None or profile.bottleneck is None or not known.beam:
        return
    bottleneck = profile.bottleneck
    limits = (one.families for one in profile.suspects if one.is_limit)
    fitting = dict.fromkeys((*bottleneck.families, *(name for of in limits for name in of)))
    for family in helpful_families(fitting, profile, known.dtypes):
        if family in known.untried:
            yield Suggestion(
                kind="family",
                text=(
                    f"{family}, which was not tried: {FAMILY_CHANGES[family]}. It addresses"
                    f" {bottleneck.name}, the bottleneck of {known.leader()}."
                ),
                parents=known.beam[:1],
                families=(family,),
                provenance=bottleneck.provenance,
            )


def _cross(known: SuggestionInputs) -> Iterator[Suggestion]:
    if len(known.beam) < 2:
        return
    leader = known.members[known.beam[0]]
    others = (known.members[seq] for seq in known.beam[1:])
    other = next((one for one in others if one.family != leader.family and one.seq), None)
    if other is None or _are_joined(leader, other, known.members):
        return
    yield Suggestion(
        kind="cross",
        text=(
            f"Join {known.name(leader)} ({leader.family}, {speed_words(leader)}) and"
            f" {known.name(other)} ({other.family}, {speed_words(other)}): keep the launches of"
            " the first and bring in what the second changes."
        ),
        parents=(leader.seq, other.seq),
        families=(leader.family,),
    )


def _are_joined(one: Member, other: Member, members: Sequence[Member]) -> bool:
    """Whether one comes from the other, or a candidate comes from both."""
    pair = {one.seq, other.seq}
    related = other.seq in one.parents or one.seq in other.parents
    return related or any(pair <= set(member.parents) for member in members)


def _sweep(known: SuggestionInputs) -> Iterator[Suggestion]:
    if known.ideas:
        plural = "" if known.ideas == 1 else "s"
        yield Suggestion(
            kind="sweep",
            text=(
                f"A step without candidates lets kopt try {known.ideas} idea{plural} of its own:"
                " kernels that it writes, or other `tune` values of those in the beam."
            ),
            parents=known.beam,
        )


def _ways(suspect: Suspect, known: SuggestionInputs) -> str:
    words = [_way(family, known) for family in _untried_first(suspect.families, known)]
    return f"Ways: {'; '.join(words)}." if words else ""


def _way(family: str, known: SuggestionInputs) -> str:
    standing = next((one for one in known.standings if one.family == family), None)
    if standing is None:
        return f"{family} (not tried): {FAMILY_CHANGES[family]}"
    if standing.best is None:
        return f"{family} (tried {standing.candidates} times, none passed)"
    return f"{family} ({standing.state}, best {known.name(known.members[standing.best])})"


def _untried_first(families: Sequence[str], known: SuggestionInputs) -> tuple[str, ...]:
    return tuple(sorted(families, key=lambda family: family not in known.untried))
