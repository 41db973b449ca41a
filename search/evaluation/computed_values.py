"""What is known of a candidate without running it: the numbers of its cubin and its workload."""

from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import FAMILY_CONTRADICTED, FLOOR, REGISTERS, Value
from kopt.search.selection.family_evidence import FamilyEvidence, MachineCode


def computed_values(
    code: MachineCode, evidence: FamilyEvidence, floor: tuple[str, float]
) -> tuple[Value, ...]:
    """Return registers, spills, shared memory, occupancy, the floor, and a contradicted claim.

    Args:
        code: What it was compiled to.
        evidence: Whether its machine code shows the claimed family.
        floor: The workload, and the least time that it can take on the GPU, microseconds.
    """
    workload, floor_us = floor
    kernels = code.build.kernels
    spills = sum(kernel.spill_store_bytes + kernel.spill_load_bytes for kernel in kernels)
    numbers = [
        (REGISTERS, "1", max(kernel.registers_per_thread for kernel in kernels)),
        ("spills", "bytes", spills),
        ("static_smem", "bytes", max(kernel.static_smem_bytes for kernel in kernels)),
        (FLOOR, "us", floor_us),
    ]
    if code.occupancy:
        fraction = min(entry.theoretical_occupancy for entry in code.occupancy)
        numbers.append(("theoretical_occupancy", "1", fraction))
    if evidence.verdict == "contradicted":
        numbers.append((FAMILY_CONTRADICTED, "1", 1.0))
    return tuple(
        Value(
            workload=workload,
            metric=metric,
            unit=unit,
            provenance=Provenance.COMPUTED,
            value=number,
        )
        for metric, unit, number in numbers
    )
