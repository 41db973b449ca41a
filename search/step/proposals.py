"""The caller's candidates as proposals: checked for form, numbered, told apart from known ones.

Whether a candidate compiles is found out by its evaluation, not here; what is refused here is a
request that no evaluation could answer.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from kopt.config.errors import ToolError
from kopt.config.near_matches import close_names, did_you_mean
from kopt.kernels.candidate import MAX_HYPOTHESIS_CHARACTERS, candidate_of_text
from kopt.kernels.case import Case
from kopt.kernels.families import FAMILIES
from kopt.kernels.problem import Problem, Workload
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.records.members import LineageKind, Member, Proposal, StepCandidate

_TECHNIQUE = re.compile(r"[a-z][a-z0-9_]{1,63}")
_MOST_TECHNIQUES = 4
_MISSPELT = 0.9
"""Likeness (difflib) from which a name is a packaged one with a letter wrong, not a new one."""


class Numbered(NamedTuple):
    """A proposal with its number in the run."""

    seq: int
    proposal: Proposal
    is_known: bool
    """Whether that number is an earlier candidate's, in the run or in the same request."""


def make_proposals(
    candidates: Sequence[StepCandidate],
    members: Sequence[Member],
    kernel: tuple[Problem, Workload],
    round_size: int,
) -> tuple[Proposal, ...]:
    """Return the candidates as proposals for a run with `members`.

    A run without members is about to get its first, number 0: that may be a parent.

    Raises:
        ToolError: Too many, or one that names an unknown family, parent or tune value, or is no
            text that could be stored; the message says which and what is allowed.
    """
    if len(candidates) > round_size:
        raise ToolError(
            f"{len(candidates)} candidates are too many for one step: at most {round_size};"
            " hand the rest to the next step"
        )
    return tuple(
        _proposal(f"candidates[{index}]", candidate, members, kernel)
        for index, candidate in enumerate(candidates)
    )


def number_proposals(
    proposals: Sequence[Proposal], members: Sequence[Member]
) -> tuple[Numbered, ...]:
    """Return every proposal with its number: of the same source and tune values where known.

    What it is to its parents follows from how they ended.
    """
    known = {_key(member.source, member.tune): member.seq for member in members}
    numbered: list[Numbered] = []
    for proposal in proposals:
        key = _key(proposal.source, proposal.tune)
        is_known = key in known
        # Every known candidate is in the mapping once, so its length is the next free number.
        seq = known.setdefault(key, len(known))
        parents = [members[parent] for parent in proposal.parents if parent < len(members)]
        lineage = _lineage(parents, proposal.family)
        related = proposal.model_copy(update={"lineage": lineage})
        numbered.append(Numbered(seq, related, is_known))
    return tuple(numbered)


def _proposal(
    place: str,
    candidate: StepCandidate,
    members: Sequence[Member],
    kernel: tuple[Problem, Workload],
) -> Proposal:
    _refuse_what_cannot_be_stored(place, candidate)
    name = PurePath(candidate.source_name.replace("\0", "")).name[:100] or "candidate.cu"
    try:
        checked = candidate_of_text(candidate.source, name)
    except ToolError as error:
        raise ToolError(f"{place}: {error}") from error
    case = Case(*kernel, checked, candidate.tune or {})
    header = case.header
    family = candidate.family or (header.family[0] if header else "other")
    if family not in FAMILIES:
        raise ToolError(f"{place}: unknown family {family[:80]!r}; allowed: {', '.join(FAMILIES)}")
    parents = tuple(sorted(set(candidate.parents)))
    last = max(len(members) - 1, 0)
    for parent in parents:
        if not 0 <= parent <= last:
            raise ToolError(
                f"{place}: parent {parent} is no candidate of the run, which has 0 to {last}"
            )
    note = candidate.hypothesis.strip() or (header.note if header else None) or ""
    return Proposal(
        source=candidate.source,
        source_name=name,
        tune=_tune(place, case),
        family=family,
        proposer="caller",
        parents=parents,
        techniques=_techniques(place, candidate.techniques),
        note=note[:MAX_HYPOTHESIS_CHARACTERS],
    )


def _refuse_what_cannot_be_stored(place: str, candidate: StepCandidate) -> None:
    for what, text in (
        ("source name", candidate.source_name),
        ("hypothesis", candidate.hypothesis),
    ):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ToolError(f"{place}: its {what} is no valid text: {error.reason}") from error
    if len(candidate.hypothesis) > MAX_HYPOTHESIS_CHARACTERS:
        raise ToolError(
            f"{place}: its hypothesis has {len(candidate.hypothesis)} characters; say it in at"
            f" most {MAX_HYPOTHESIS_CHARACTERS}"
        )


def _techniques(place: str, named: Sequence[str]) -> tuple[str, ...]:
    """Return what is named; whether memory knows it is found out when it learns."""
    if len(named) > _MOST_TECHNIQUES:
        raise ToolError(
            f"{place}: {len(named)} techniques are too many to tell apart: at most"
            f" {_MOST_TECHNIQUES}"
        )
    for name in named:
        if not _TECHNIQUE.fullmatch(name):
            raise ToolError(
                f"{place}: technique {name[:80]!r} is none: ids look like vector_loads"
                " (kopt kb show lists them)"
            )
        if meant := _meant(name):
            raise ToolError(f"{place}: no technique is called {name}; {did_you_mean([meant])}")
    return tuple(dict.fromkeys(named))


def _meant(name: str) -> str | None:
    """Return the packaged technique that `name` misspells; None for any other name."""
    shipped = load_seed().techniques
    if name in shipped:
        return None
    near = close_names(name, shipped, most=1, likeness=_MISSPELT)
    # fp6 is no misspelt fp4.
    return next((one for one in near if _digits(one) == _digits(name)), None)


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def _tune(place: str, case: Case) -> dict[str, int]:
    """Return a whole choice of tune values; a header with mistakes is the evaluation's."""
    header = case.header
    if header is None:
        return dict(case.tune)
    for name, value in case.tune.items():
        declared = header.tune.get(name)
        if declared is None or value not in declared:
            allowed = header.tune if declared is None else {name: declared}
            listed = "; ".join(f"{key}: {', '.join(map(str, of))}" for key, of in allowed.items())
            raise ToolError(f"{place}: tune {name}={value}; declared: {listed or 'nothing'}")
    choices = case.choices
    if not case.tune:
        return choices[0] if choices else {}
    if case.full_tune not in choices:
        words = ", ".join(f"{name}={value}" for name, value in case.full_tune.items())
        raise ToolError(f"{place}: its tune_where does not allow {words}")
    return case.full_tune


def _lineage(parents: Sequence[Member], family: str) -> LineageKind:
    if len(parents) > 1:
        return "cross"
    if any(parent.quick is not None and not parent.passed for parent in parents):
        return "fix"
    return "refine" if all(parent.family == family for parent in parents) else "expand"


def _key(source: str, tune: Mapping[str, int]) -> tuple[str, tuple[tuple[str, int], ...]]:
    return source, tuple(sorted(tune.items()))
