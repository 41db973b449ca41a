"""Memory as a model reads it: samples, and what is held of states.

Gains are told as fractions of speed, samples by short names, because ids differ between runs that
are otherwise the same. Notes and descriptions may be a model's: they are quoted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import expm1

from kopt.kernels.status import Status
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import pooled
from kopt.search.knowledge.policy.selector import Drawn
from kopt.search.knowledge.records import Evidence, KnowledgeEntry, ProfileSignature, Sample, State
from kopt.search.records.members import Member
from kopt.tools.facts.fitting import Facts, cleaned, given
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted, plain, plain_beginning

from .prompt import fenced
from .views import Advice

MOST_SAMPLES = 40
"""Samples that are shown at once, the latest."""
MOST_NOTES = 3
"""Notes of one entry that are shown, the latest."""
_ENDING_CHARACTERS = 240
_NONE = "None."


@dataclass(frozen=True)
class SampleNames:
    """The short names of the samples of one conversation: s1, s2, ..."""

    samples: tuple[Sample, ...]
    """The newest last."""

    def name(self, sample: Sample) -> str:
        """Return what a sample is called."""
        return f"s{self.samples.index(sample) + 1}"

    def find(self, names: Iterable[str]) -> tuple[Sample, ...]:
        """Return the samples that `names` name, each once; others are left out."""
        by_name = {f"s{place}": one for place, one in enumerate(self.samples, 1)}
        return tuple(by_name[name] for name in dict.fromkeys(names) if name in by_name)


def gain_words(gain: float) -> str:
    """Return an ln ratio as a fraction of speed: +12%."""
    return f"{expm1(gain):+.0%}"


def joined(techniques: Iterable[str]) -> str:
    """Return a technique, or several in their order."""
    return " then ".join(techniques)


def sample_table(samples: Sequence[Sample], names: SampleNames, endings: Mapping[str, str]) -> str:
    """Return a row for each of `samples`, in their order."""
    rows = [_sample_row(one, names.name(one), endings.get(one.id, "")) for one in samples]
    return fenced("samples", render(cleaned({"samples": rows}))) if rows else _NONE


def entry_table(base: KnowledgeBase, states: Iterable[str]) -> str:
    """Return what `base` holds of each of `states`: expectations, results, notes."""
    known = [base.states[state] for state in dict.fromkeys(states) if state in base.states]
    facts = [{**state_facts(one), "techniques": list(_entry_rows(base, one))} for one in known]
    return fenced("memory", render(cleaned({"states": facts}))) if facts else _NONE


def state_facts(state: State) -> Facts:
    """Return a state as facts."""
    return given(
        state=state.id,
        means=Quoted(plain(state.description)),
        bottleneck=state.bottleneck,
        suspects=", ".join(state.suspects),
        traits=", ".join(state.traits),
    )


def signature_facts(signature: ProfileSignature) -> Facts:
    """Return what a profile says of a program, in the words of states."""
    return given(
        bottleneck=signature.bottleneck,
        suspects=", ".join(signature.suspects),
        traits=", ".join(signature.traits),
        provenance=signature.provenance.value,
    )


def advice_words(advice: Iterable[Advice], members: Sequence[Member]) -> str:
    """Return what memory says of some of `members`: their states, what it would try on them."""
    labels = {member.seq: member.label for member in members}
    rows = [_advice_facts(one, labels[one.candidate]) for one in advice]
    return fenced("memory", render(cleaned({"memory": rows}))) if rows else _NONE


def evidence_words(evidence: Evidence) -> str:
    """Return results in a clause: how many tries, how they ended, the mean gain."""
    counts = ("gained", "lost", "within_noise", "failed")
    ends = [f"{n} {name.replace('_', ' ')}" for name in counts if (n := getattr(evidence, name))]
    mean = f"; mean {gain_words(evidence.mean)}" if evidence.weight else ""
    return f"{_tries(evidence.tries)}: {', '.join(ends)}{mean}"


def _advice_facts(advice: Advice, label: str) -> Facts:
    return given(
        of=label,
        **state_facts(advice.state),
        match=f"{advice.confidence:.2f} of 1",
        would_try=[_drawn_facts(one) for one in advice.drawn],
        notes=[Quoted(plain(one)) for one in advice.notes[-MOST_NOTES:]],
    )


def _drawn_facts(drawn: Drawn) -> Facts:
    return {
        "technique": drawn.technique.id,
        "family": drawn.technique.family,
        "expected": Quoted(plain(drawn.why)),
    }


def _tries(number: float) -> str:
    return f"{number:g} {'try' if number == 1 else 'tries'}"


def _sample_row(sample: Sample, name: str, ending: str) -> Facts:
    return given(
        name=name,
        state=sample.state,
        technique=joined(sample.techniques),
        after=sample.previous,
        predicted=None if sample.predicted is None else gain_words(sample.predicted),
        found=_found(sample),
        outcome=sample.outcome,
        state_was=_signature_words(sample.signature_before),
        state_is=_signature_words(sample.signature_after),
        ending=Quoted(plain_beginning(ending, _ENDING_CHARACTERS)),
    )


def _found(sample: Sample) -> str:
    if sample.measured is None:
        passed = sample.status is Status.PASSED
        return (
            "passed, not credited: refuted later, or not what it says"
            if passed
            else sample.status.value
        )
    low_high = sample.interval
    between = (
        "" if low_high is None else f", {gain_words(low_high[0])} to {gain_words(low_high[1])}"
    )
    return f"{gain_words(sample.measured)}{between} ({sample.provenance.value})"


def _signature_words(signature: ProfileSignature | None) -> str:
    if signature is None:
        return ""
    return ", ".join((signature.bottleneck, *signature.suspects[:1], *signature.traits))


def _entry_rows(base: KnowledgeBase, state: State) -> Iterator[Facts]:
    for entry in base.entries_of(state.id):
        yield _entry_facts(entry)


def _entry_facts(entry: KnowledgeEntry) -> Facts:
    prior = entry.prior
    return given(
        technique=joined(entry.techniques),
        prior=None
        if prior is None
        else f"{gain_words(prior.gain)}, counts as {_tries(prior.weight)}",
        results=[
            f"{arch}: {evidence_words(pooled(origins[name] for name in sorted(origins)))}"
            for arch, origins in entry.evidence.items()
        ],
        notes=[Quoted(plain(note.text)) for note in entry.notes[-MOST_NOTES:]],
        deprecated=entry.is_deprecated or None,
    )
