"""Whether the machine code shows what the claimed family says, where machine code can tell.

A claim that it contradicts is kept, with the reason, but does not count for diversity. Families
that leave no mark of their own, or one that only a comparison with the parent would show, are
taken at their word. A rule refuses only what no honest candidate of the family could look like.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kopt.config.counted import counted
from kopt.kernels.compile_result import Build, Occupancy
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.record import Record
from kopt.search.records.evaluation import FAMILY_CONTRADICTED
from kopt.search.records.members import Member


class FamilyEvidence(Record):
    """What the machine code says about a claim."""

    family: str
    verdict: Literal["shown", "contradicted", "not_told"]
    why: str
    """With the counts; empty where the code cannot tell."""


@dataclass(frozen=True)
class MachineCode:
    """What a candidate was compiled to, for one workload."""

    build: Build
    plan: LaunchPlan
    """The plan by which it is launched."""
    occupancy: tuple[Occupancy, ...]

    @property
    def mix(self) -> Counter[str]:
        """Instructions by class, over all kernels; empty where they could not be read."""
        counts: Counter[str] = Counter()
        for kernel in self.build.kernels:
            counts.update(kernel.instruction_mix)
        return counts


def judge_family(family: str, code: MachineCode) -> FamilyEvidence:
    """Return whether `code` shows or contradicts the claim of `family`."""
    found = _RULES[family](code) if family in _RULES else None
    if found is None:
        return FamilyEvidence(family=family, verdict="not_told", why="")
    holds, why = found
    return FamilyEvidence(family=family, verdict="shown" if holds else "contradicted", why=why)


def is_contradicted(member: Member) -> bool:
    """Return whether the machine code of `member` contradicts its family."""
    return member.quick is not None and member.quick.metric(FAMILY_CONTRADICTED) is not None


_Finding = tuple[bool, str] | None
"""Whether the claim holds, and why; None: the code cannot tell."""


def _needs(*classes: str, what: str) -> Callable[[MachineCode], _Finding]:
    """Return a rule: the code has at least one instruction of `classes`."""

    def rule(code: MachineCode) -> _Finding:
        mix = code.mix
        if not mix:
            return None
        count = sum(mix[name] for name in classes)
        return count > 0, f"{count} {what}"

    return rule


def _vectorization(code: MachineCode) -> _Finding:
    mix = code.mix
    narrow = sum(mix[f"{kind}_{bits}"] for kind in ("ldg", "stg") for bits in (8, 16, 32))
    wide = sum(mix[f"{kind}_{bits}"] for kind in ("ldg", "stg") for bits in (64, 128, 256))
    bulk = mix["ldgsts"] + mix["tma"]
    if mix["ld"] + mix["st"] or not narrow + wide + bulk:
        return None  # a generic access may be a wide one
    words = f"{wide} of {narrow + wide} global loads and stores move 8 bytes or more"
    return wide + bulk > 0, f"{words}, {bulk} copies are asynchronous or bulk"


def _shared_memory(code: MachineCode) -> _Finding:
    mix = code.mix
    count = mix["lds"] + mix["sts"] + mix["ldgsts"] + mix["tma"]
    if not mix or (count == 0 and mix["ld"] + mix["st"]):
        return None  # a generic access may be one to shared memory
    return count > 0, f"{count} instructions access shared memory"


def _launch_bounds(code: MachineCode) -> _Finding:
    limits = [kernel.max_threads_per_block for kernel in code.build.kernels]
    registers = code.plan.max_registers
    if registers is not None:
        return True, f"at most {registers} registers"
    bounded = sum(limit is not None for limit in limits)
    return bounded > 0, f"launch bounds on {bounded} of {counted(len(limits), 'kernel')}"


def _clusters(code: MachineCode) -> _Finding:
    largest = max(x * y * z for x, y, z in (launch.cluster for launch in code.plan.launches))
    return largest > 1, f"the largest cluster has {counted(largest, 'block')}"


def _persistent(code: MachineCode) -> _Finding:
    if not code.occupancy:
        return None
    fewest = min(entry.waves for entry in code.occupancy)
    return fewest <= 1.0, f"the blocks of a launch make {fewest:.2f} waves"


_RULES: dict[str, Callable[[MachineCode], _Finding]] = {
    "async_pipeline": _needs("ldgsts", "tma", what="asynchronous or bulk copies"),
    "bank_conflicts": _shared_memory,
    "clusters": _clusters,
    "fast_math": _needs("mufu", what="special-function instructions"),
    "fp4_intrinsics": _needs("f2fp", what="packed conversions"),
    "launch_bounds": _launch_bounds,
    "persistent": _persistent,
    "reduction": _needs("shfl", "bar", "atom", what="shuffles, barriers and atomics"),
    "smem_tiling": _shared_memory,
    "tensor_cores": _needs("mma", what="matrix instructions"),
    "vectorization": _vectorization,
}
