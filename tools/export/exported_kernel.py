"""What is exported: a kernel with its problem, and what is known about it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from kopt.config.errors import ToolError
from kopt.kernels.case import Case
from kopt.kernels.domain import unserved_variants
from kopt.kernels.header import CandidateHeader
from kopt.kernels.receipt import Receipt, ReceiptStanding

Form = Literal["cuda", "torch", "tvm-ffi", "flashinfer-trace", "kernelbench"]
FORMS: tuple[Form, ...] = ("cuda", "torch", "tvm-ffi", "flashinfer-trace", "kernelbench")


@dataclass(frozen=True)
class ExportedKernel(Case):
    """A kernel to export, at any workload of its problem."""

    arch: str = field(kw_only=True)
    """Compiler target: sm_90a and the like."""
    origin: str = field(kw_only=True)
    """Where it was taken from, in words."""
    receipt: Receipt | None = field(default=None, kw_only=True)
    """Receipt of this very source; None if its speed was never promoted."""
    standing: ReceiptStanding = field(default="claimed", kw_only=True)
    """What that receipt rests on, on this machine."""
    facts: str = field(default="", kw_only=True)
    """Markdown about a kernel without a receipt: what was found out about it instead."""

    # A subclass that is a data class of its own would get a hash over its dictionaries.
    __hash__ = Case.__hash__

    @property
    def header(self) -> CandidateHeader:
        """The parsed header.

        Raises:
            ToolError: The source is no candidate of this problem.
        """
        if self.parsed.header is None:
            first = self.parsed.diagnostics[0].message
            raise ToolError(f"{self.candidate.name} cannot be exported: {first}")
        return self.parsed.header

    @property
    def is_proven(self) -> bool:
        """Whether this machine has measured what the receipt says, then or since."""
        return self.receipt is not None and self.standing != "claimed"

    @cached_property
    def unserved(self) -> tuple[str, ...]:
        """Conditions of the variants that no workload takes: the export refuses their shapes."""
        return tuple(variant.when for variant in unserved_variants(self.header, self.problem))

    @property
    def name(self) -> str:
        """The problem's name: namespace, operator and files are called so."""
        return self.problem.name


def nvcc_flags(exported: ExportedKernel) -> tuple[str, ...]:
    """Return the flags of nvcc, the target left out."""
    header = exported.header
    flags = ["-std=c++20", "-O3", "--expt-relaxed-constexpr"]
    if header.flags.fast_math:
        flags.append("--use_fast_math")
    if header.flags.max_registers is not None:
        flags.append(f"-maxrregcount={header.flags.max_registers}")
    return tuple(flags)


def gencode(exported: ExportedKernel) -> str:
    """Return the flag that names the target."""
    number = exported.arch.removeprefix("sm_")
    return f"-gencode=arch=compute_{number},code=sm_{number}"


def flags_without_standard(exported: ExportedKernel) -> list[str]:
    """Return nvcc's flags for a binding, whose library chooses the C++ standard itself."""
    return [flag for flag in nvcc_flags(exported) if not flag.startswith("-std")]
