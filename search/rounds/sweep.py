"""The proposer that needs no language model: it sweeps the `tune` values that a source declares.

A small grid is tried whole. On a large one every round has two halves: the choices that the main
effects of all values seen so far predict to be fastest, and single steps away from the beam's
members (coordinate descent). Values act nearly independently on real kernels, so that the first
half usually jumps to the optimum that the second half then makes sure of.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import log
from statistics import fmean

from kopt.search.knowledge.records import technique_of
from kopt.search.records.members import Member, Population, Proposal

Choice = dict[str, int]
ReadChoices = Callable[[str], Sequence[Mapping[str, int]]]
"""All allowed tune choices of a source, the default first."""


class SweepProposer:
    """Proposes other tune values of the sources in the beam."""

    def __init__(self, read_choices: ReadChoices) -> None:
        """Sweep the choices that `read_choices` finds in a source."""
        self._read_choices = cache(read_choices)

    def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
        """Return at most `count` untried choices, most promising first.

        Where nothing has passed yet there is no beam; the first source is swept then, because its
        other values may work where the default does not.
        """
        parents = population.beam or population.members[:1]
        sources = list(dict.fromkeys(parent.source_sha for parent in parents))
        proposals: list[Proposal] = []
        for index, sha in enumerate(sources):
            share = (count - len(proposals)) // (len(sources) - index)
            of_source = [parent for parent in parents if parent.source_sha == sha]
            proposals += self._sweep_source(population, of_source, share)
        return tuple(proposals)

    def _sweep_source(
        self, population: Population, parents: Sequence[Member], count: int
    ) -> list[Proposal]:
        leader = parents[0]
        siblings = [m for m in population.members if m.source_sha == leader.source_sha]
        tried = {_key(member.tune) for member in siblings}
        open_choices = [
            dict(choice)
            for choice in self._read_choices(leader.source)
            if _key(choice) not in tried and _switches(choice) == _switches(leader.tune)
        ]
        # From the run's seed and the round alone, so that a resumed run draws the same.
        random.Random(f"{population.seed}:{population.round}").shuffle(open_choices)
        return [
            Proposal(
                source=leader.source,
                source_name=leader.source_name,
                tune=choice,
                family=leader.family,
                proposer="sweep",
                parents=(_nearest(choice, parents).seq,),
            )
            for choice in _pick(open_choices, parents, siblings, count)
        ]


def _pick(
    choices: list[Choice], parents: Sequence[Member], siblings: Sequence[Member], count: int
) -> list[Choice]:
    if len(choices) <= count:
        return choices
    predicted = _by_main_effects(choices, siblings)
    steps = _single_steps(choices, parents)
    # A first round knows one point only, which predicts nothing.
    head = predicted[: count // 2] if len(siblings) > 1 else []
    unique = {_key(choice): choice for choice in (*head, *steps, *predicted)}
    return list(unique.values())[:count]


def _by_main_effects(choices: list[Choice], siblings: Sequence[Member]) -> list[Choice]:
    """Order by the sum of the mean log cost of each value; unseen values count as average."""
    seen: dict[tuple[str, int], list[float]] = defaultdict(list)
    everything: list[float] = []
    for member in siblings:
        if member.passed and member.cost:
            everything.append(log(member.cost))
            for item in member.tune.items():
                seen[item].append(log(member.cost))
    if not everything:
        return choices
    average = fmean(everything)
    effect = {item: fmean(logs) for item, logs in seen.items()}
    return sorted(choices, key=lambda c: sum(effect.get(item, average) for item in c.items()))


def _single_steps(choices: list[Choice], parents: Sequence[Member]) -> list[Choice]:
    """Choices that differ from a parent in one value: the leader's first, axes in turn."""
    steps: list[Choice] = []
    for parent in parents:
        by_axis: dict[str, list[Choice]] = defaultdict(list)
        for choice in choices:
            changed = _changed(choice, parent.tune)
            if len(changed) == 1:
                by_axis[changed[0]].append(choice)
        while by_axis:
            for axis in list(by_axis):
                steps.append(by_axis[axis].pop())
                if not by_axis[axis]:
                    del by_axis[axis]
    return steps


def _switches(choice: Mapping[str, int]) -> Choice:
    """Return the values that switch techniques on and off: which of them pay is no constant."""
    return {name: value for name, value in choice.items() if technique_of(name) is not None}


def _nearest(choice: Choice, parents: Sequence[Member]) -> Member:
    return min(parents, key=lambda parent: len(_changed(choice, parent.tune)))


def _changed(choice: Choice, other: Mapping[str, int]) -> list[str]:
    return [name for name, value in choice.items() if other.get(name) != value]


def _key(choice: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(choice.items()))
