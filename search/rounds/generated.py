"""The proposer that writes kernels itself: each candidate is a set of techniques and tune values.

The first round has the plain kernel, one with the techniques that are expected to gain, one with
every technique, one with all but those for few rows, and each technique alone beside the plain one.
Later ones have two halves: one technique more or less than the best generated kernels have, and
other tune values of what leads. The knowledge base decides the order. What a candidate is made of
stands in its file name, so that a resumed run proposes the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kopt.search.records.members import Member, Population, Proposal, Proposer
from kopt.tools.pytorch.generated import GeneratedKernels
from kopt.tools.pytorch.lowering.row_schedule import TECHNIQUES

from .sweep import ReadChoices

GENERATED = "generated"
"""Who proposed a kernel that kopt wrote, and the kind of a round that has one."""
_PLAIN_FAMILY = "register_caching"
_OF_ALL = ("vector_loads", "row_in_registers")
"""Techniques of every generated kernel."""
_SWEPT = 2
"""Sources of the beam whose tune values are swept in a round."""
Techniques = frozenset[str]


@dataclass(frozen=True)
class _Change:
    """What a kernel has that its parent has not."""

    applied: tuple[str, ...] = ()
    left_out: str = ""
    parent: int | None = None
    """`seq` of the generated kernel that it is made from; None where it is made from nothing."""
    is_hoped: bool = False
    """Whether the knowledge base expects a gain of each technique that is applied."""


@dataclass(frozen=True)
class _Parent:
    """A starting point that has no evaluation yet."""

    seq: int
    tune: Mapping[str, int]


@dataclass(frozen=True)
class GeneratingProposer:
    """Proposes kernels of other techniques, then other tune values of the fastest."""

    kernels: GeneratedKernels
    sweep: Proposer
    choices: ReadChoices

    def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
        """Return at most `count` candidates, the most promising first; () when out of ideas."""
        known = self._known(population)
        if not known:
            return tuple(self._first(population))[:count]
        steps = tuple(islice(self._steps(population, known), (count + 1) // 2))
        leading = replace(population, beam=_of_sources(population.beam, _SWEPT))
        return (*steps, *self.sweep.propose(leading, count - len(steps)))

    def _first(self, population: Population) -> Iterator[Proposal]:
        start, every = population.members[0], self.kernels.techniques
        gains = population.gains(start, every)
        plain = self._plain(population)
        if plain == len(population.members):
            yield from self._proposed(frozenset(), start, _Change())
        hoped = tuple(name for name in every if gains.get(name, 0.0) > 0.0)
        for_many_rows = tuple(name for name in every if not TECHNIQUES[name].is_for_few_rows)
        alone = sorted(every, key=lambda name: -gains.get(name, 0.0))
        sets = [*([hoped] * bool(gains)), every, for_many_rows, *((one,) for one in alone)]
        for techniques in dict.fromkeys(frozenset(one) for one in sets if one):
            applied = tuple(name for name in every if name in techniques)
            is_hoped = bool(gains) and techniques == frozenset(hoped)
            change = _Change(applied, parent=plain, is_hoped=is_hoped)
            yield from self._proposed(techniques, start, change)

    def _plain(self, population: Population) -> int | None:
        """Return the number that the kernel without techniques has, or will have as the first."""
        source = self.kernels.source(())
        known = next((one.seq for one in population.members if one.source == source), None)
        if known is not None:
            return known
        return len(population.members) if self.choices(source) else None

    def _steps(self, population: Population, known: dict[Techniques, Member]) -> Iterator[Proposal]:
        """Yield the kernels with one technique more or less than the best ones have."""
        made = set(known)
        places: dict[str, Member] = {}
        for member in population.beam:
            places.setdefault(member.source_sha, member)  # the fastest of its source
        leading = [one for one in known.items() if one[1].source_sha in places]
        leading.sort(key=lambda one: list(places).index(one[1].source_sha))
        for techniques, _ in leading:
            parent = places[known[techniques].source_sha]
            gains = population.gains(parent, self.kernels.techniques)
            # What is left out gains what it was expected to lose.
            hoped = {name: -gain if name in techniques else gain for name, gain in gains.items()}
            for name in sorted(self.kernels.techniques, key=lambda one: -hoped.get(one, 0.0)):
                other = techniques ^ {name}
                if other not in made:
                    made.add(other)
                    is_more = name in other
                    change = _Change(
                        (name,) if is_more else (), "" if is_more else name, parent.seq
                    )
                    yield from self._proposed(other, parent, change)

    def _known(self, population: Population) -> dict[Techniques, Member]:
        """Return the candidates that this proposer wrote, one for each set of techniques."""
        found: dict[Techniques, Member] = {}
        for member in population.members:
            techniques = _techniques_in(member.source_name)
            if techniques is not None and member.source == self.kernels.source(techniques):
                found.setdefault(techniques, member)
        return found

    def starts(self, start: Proposal, count: int) -> tuple[Proposal, ...]:
        """Return at most `count` kernels that agents go on from, evaluated beside the start."""
        parent = _Parent(0, start.tune)
        every = self.kernels.techniques
        sets = (every, tuple(one for one in every if not TECHNIQUES[one].is_for_few_rows), ())
        found = (
            proposal
            for techniques in dict.fromkeys(sets)
            for proposal in self._proposed(frozenset(techniques), parent, _Change(techniques))
            if proposal.source != start.source
        )
        return tuple(islice(found, count))

    def _proposed(
        self, techniques: Techniques, parent: "_Parent | Member", change: _Change
    ) -> Iterator[Proposal]:
        """Yield the kernel with these techniques, if one of its tune choices fits the workload."""
        source, applied = self.kernels.source(techniques), change.applied
        choices = self.choices(source)
        if not choices:
            return
        family = TECHNIQUES[applied[0]].family if applied else _PLAIN_FAMILY
        yield Proposal(
            source=source,
            source_name=_file_name(self.kernels, techniques),
            tune=dict(_nearest(choices, parent.tune)),
            family=family,
            proposer=GENERATED,
            parents=(parent.seq if change.parent is None else change.parent,),
            lineage="expand",
            note=_note(change),
            techniques=_claimed(change),
        )


def _file_name(kernels: GeneratedKernels, techniques: Techniques) -> str:
    """Return `generated-split_rows-dependent_launch.cu`."""
    return "-".join((GENERATED, *(t for t in kernels.techniques if t in techniques))) + ".cu"


def _techniques_in(file_name: str) -> Techniques | None:
    """Return the techniques that the name of a generated kernel has; None for any other file."""
    name, *techniques = file_name.removesuffix(".cu").split("-")
    is_ours = name == GENERATED and all(one in TECHNIQUES for one in techniques)
    return frozenset(techniques) if is_ours else None


def _note(change: _Change) -> str:
    """Return what is new in a kernel, in a sentence."""
    before = "" if change.parent is None else f"#{change.parent} "
    if change.left_out:
        return f"{before}without {change.left_out}, in case that costs more than it gains"
    if len(change.applied) == 1:
        (name,) = change.applied
        return f"{before and f'{before}with '}{name}: {TECHNIQUES[name].words}"
    if change.applied:
        why = ", each of which is expected to gain" if change.is_hoped else ""
        return f"{', '.join(change.applied)} at once{why}"
    return "each row is loaded once by vectors, kept in registers, reduced by shuffles and stored"


def _claimed(change: _Change) -> tuple[str, ...]:
    """Return the techniques whose gain the comparison with the parent tells."""
    if change.parent is None:
        return () if change.applied else _OF_ALL
    return change.applied if len(change.applied) == 1 else ()


def _nearest(choices: Sequence[Mapping[str, int]], tune: Mapping[str, int]) -> Mapping[str, int]:
    """Return the choice with most of the parent's values: the first of equal ones."""
    return max(
        choices,
        key=lambda choice: sum(tune.get(name) == value for name, value in choice.items()),
        default=dict[str, int](),
    )


def _of_sources(beam: Sequence[Member], count: int) -> tuple[Member, ...]:
    """Return the members of the first `count` different sources."""
    sources = list(dict.fromkeys(member.source_sha for member in beam))[:count]
    return tuple(member for member in beam if member.source_sha in sources)
