"""What is exported: a kernel with its problem, and what is known about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kopt.config.errors import ToolError
from kopt.kernels.candidate import Candidate
from kopt.kernels.domain import default_tune, domain, unserved_variants
from kopt.kernels.header import CandidateHeader
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.receipt import Receipt

Form = Literal["cuda", "torch", "tvm-ffi", "flashinfer-trace"]
FORMS: tuple[Form, ...] = ("cuda", "torch", "tvm-ffi", "flashinfer-trace")


@dataclass(frozen=True)
class Subject:
    """A kernel to export."""

    problem: Problem
    candidate: Candidate
    tune: Mapping[str, int]
    """Tune values by name; those left out have their default."""
    arch: str
    """What it is compiled for: sm_90a and the like."""
    origin: str
    """Where it was taken from, in words."""
    receipt: Receipt | None = None
    """Of this very source; None if its speed was never promoted."""
    facts: str = ""
    """Markdown about a kernel without a receipt: what was found out about it instead."""

    @cached_property
    def header(self) -> CandidateHeader:
        """The parsed header.

        Raises:
            ToolError: The source is no candidate of this problem.
        """
        outcome = parse_header(self.candidate, self.problem)
        if outcome.header is None:
            first = outcome.diagnostics[0].message
            raise ToolError(f"{self.candidate.name} cannot be exported: {first}")
        return outcome.header

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads that the kernel claims, in file order."""
        return domain(self.header, self.problem)

    @cached_property
    def unserved(self) -> tuple[str, ...]:
        """Conditions of the variants that no workload takes: the export refuses their shapes."""
        return tuple(variant.when for variant in unserved_variants(self.header, self.problem))

    @cached_property
    def values(self) -> dict[str, int]:
        """Every tune value, without what a variant sets."""
        return {**default_tune(self.header), **self.tune}

    @property
    def name(self) -> str:
        """The problem's name: namespace, operator and files are called so."""
        return self.problem.name
