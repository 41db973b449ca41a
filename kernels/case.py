"""A case: a candidate with the kernel that it is for and the tune values that it takes.

Every stage's request holds one. The candidate's header is parsed once: cases that are made from
this one, at another workload or with other tune values, hold the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .candidate import Candidate
from .domain import default_tune, domain, tune_choices
from .header import CandidateHeader, HeaderOutcome
from .header_parser import parse_header
from .problem import Problem, Workload


@dataclass(frozen=True)
class Case:
    """A candidate for one workload of a problem."""

    problem: Problem
    workload: Workload
    """The named workload; a header may claim more (`domain`)."""
    candidate: Candidate
    tune: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tune values by name; those left out have the header's default."""

    def __hash__(self) -> int:
        """Return a hash that equal cases share, so that a plan is resolved once."""
        return hash((self.candidate, self.kernel_id, tuple(sorted(self.tune.items()))))

    @property
    def kernel_id(self) -> str:
        """`<problem>_<workload>`."""
        return self.problem.kernel_id(self.workload)

    @property
    def is_reference(self) -> bool:
        """Whether the candidate is the problem's own reference.cu, whatever its tune values."""
        path = self.problem.folder / "reference.cu"
        return path.is_file() and path.read_bytes() == self.candidate.source.encode()

    @cached_property
    def parsed(self) -> HeaderOutcome:
        """The candidate's header, or the mistakes in it."""
        return parse_header(self.candidate, self.problem)

    @property
    def header(self) -> CandidateHeader | None:
        """The candidate's header; None if it has mistakes."""
        return self.parsed.header

    @cached_property
    def domain(self) -> tuple[Workload, ...]:
        """The workloads that the header claims, in file order; none if it has mistakes."""
        return () if self.header is None else domain(self.header, self.problem)

    @property
    def domain_from_here(self) -> tuple[Workload, ...]:
        """The named workload, then the rest of the domain in file order."""
        rest = (other for other in self.domain if other.name != self.workload.name)
        return (self.workload, *rest)

    @cached_property
    def timed_domain(self) -> tuple[Workload, ...]:
        """The workloads of the domain that are timed by themselves, in file order.

        Those that are there to be checked are left out, unless there are no others.
        """
        timed = tuple(one for one in self.domain if one.use != "check")
        return timed or self.domain

    @property
    def at_timed(self) -> "Case":
        """This case; at the first timed workload, if its own is there to be checked."""
        timed = self.timed_domain
        return self.at(timed[0]) if timed and self.workload.use == "check" else self

    @property
    def timed_from_here(self) -> tuple[Workload, ...]:
        """The named workload, then the rest of the timed ones in file order."""
        rest = (other for other in self.timed_domain if other.name != self.workload.name)
        return (self.workload, *rest)

    @property
    def default_tune(self) -> dict[str, int]:
        """The first value of every tune name; empty if the header has mistakes."""
        return {} if self.header is None else default_tune(self.header)

    @property
    def full_tune(self) -> dict[str, int]:
        """Every tune value, without what a variant sets; empty if the header has mistakes."""
        return {} if self.header is None else {**self.default_tune, **self.tune}

    @property
    def choices(self) -> tuple[dict[str, int], ...]:
        """Every choice of tune values that the header allows here, the default first."""
        return () if self.header is None else tune_choices(self.header, self.workload.axes)

    def at(self, workload: Workload) -> "Case":
        """Return the case at another workload of the problem."""
        return self._carried_to(replace(self, workload=workload))

    def with_tune(self, tune: Mapping[str, int]) -> "Case":
        """Return the case with these tune values instead of its own."""
        return self._carried_to(replace(self, tune=tune))

    def with_shapes(self, shapes: Iterable[Workload]) -> "Case":
        """Return the case with `shapes` as further workloads, all of which its header claims."""
        workloads = (*self.problem.workloads, *shapes)
        problem = self.problem.model_copy(update={"workloads": workloads})
        return self._carried_to(replace(self, problem=problem))

    def _carried_to(self, other: "Case") -> "Case":
        """Return `other`, which is for the same names, with the header that was parsed here."""
        vars(other)["parsed"] = self.parsed
        return other
