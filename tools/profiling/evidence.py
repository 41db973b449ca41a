"""The numbers behind a suspicion, as short texts: one for each buffer, kernel or launch."""

from math import prod

from kopt.config.counted import counted
from kopt.tools.cuda.occupancy import launch_occupancy

from .what_if import Evaluated


def sector_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Buffers whose accesses touch more sectors than needed."""
    traffic = evaluated.counters.traffic if evaluated.counters else {}
    return tuple(
        f"{name}: {one.sectors_per_request:.3g} sectors per warp access, "
        f"{one.ideal_sectors_per_request:.3g} would do"
        for name, one in traffic.items()
        if one.sectors_per_request
        and one.ideal_sectors_per_request
        and one.sectors_per_request > one.ideal_sectors_per_request
    )


def reread_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Inputs that are loaded more than once."""
    traffic = evaluated.counters.traffic if evaluated.counters else {}
    return tuple(
        f"{tensor.name}: {traffic[tensor.name].load_bytes / 1e6:.3g} MB loaded, "
        f"{tensor.read_bytes / 1e6:.3g} MB needed"
        for tensor in evaluated.model.tensors
        if tensor.name in traffic and traffic[tensor.name].load_bytes > tensor.read_bytes
    )


def width_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Widths of the global accesses in the code."""
    return tuple(
        f"{kernel.name}: "
        + ", ".join(
            f"{count} {name}"
            for name, count in sorted(kernel.instruction_mix.items())
            if name.startswith(("ldg_", "stg_"))
        )
        for kernel in evaluated.kernels()
    )


def spill_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Kernels that spill."""
    return tuple(
        f"{kernel.name}: {kernel.spill_store_bytes} bytes stored and {kernel.spill_load_bytes} "
        f"loaded per thread, {kernel.registers_per_thread} registers"
        for kernel in evaluated.kernels()
        if kernel.spill_store_bytes or kernel.spill_load_bytes
    )


def occupancy_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Resident blocks of each launch and what limits them."""
    kernels = {kernel.name: kernel for kernel in evaluated.kernels()}
    texts: list[str] = []
    for launch in evaluated.plan.launches:
        occupancy = launch_occupancy(launch, kernels[launch.kernel], evaluated.gpu)
        texts.append(
            f"{launch.kernel}: occupancy {occupancy.theoretical_occupancy:.2f}, "
            f"{counted(occupancy.blocks_per_sm, 'block')} per SM, limited by "
            f"{', '.join(occupancy.limiters)}"
        )
    return tuple(texts)


def grid_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Blocks against SMs."""
    return tuple(
        f"{launch.kernel}: {counted(prod(launch.grid), 'block')} for {evaluated.gpu.sm_count} SMs"
        for launch in evaluated.plan.launches
    )


def block_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Blocks and their threads."""
    return tuple(
        f"{launch.kernel}: {counted(prod(launch.grid), 'block')} of {prod(launch.block)} threads"
        for launch in evaluated.plan.launches
    )


def barrier_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Barriers that one block passes."""
    barriers = evaluated.counters.barriers_per_block if evaluated.counters else 0.0
    return (f"{counted(barriers, 'barrier')} per block",)


def launch_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """How many launches there are."""
    launches = len(evaluated.plan.launches)
    return ("1 launch" if launches == 1 else f"{launches} launches",)
