"""Candidates that do not exist: one trait of a candidate taken away, to ask the time model again.

Each function changes one thing and leaves the rest as it is, also where no compiler could: an
answer says how much a trait matters to the estimate, not what a rewrite would reach.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.compile_result import CompileResult, KernelResources
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.roofline import ByteModel
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.estimate.constants import SLOW_CLASS_CLOCKS
from kopt.tools.estimate.instructions import StaticMix
from kopt.tools.estimate.stage import estimate_time

FREE_REGISTERS = 32
"""Registers per thread with which registers never limit occupancy: 65,536 / 2,048 threads."""

ENOUGH_THREADS = 256
"""Threads of a block: an SM of 2,048 threads is full with eight such blocks."""


@dataclass(frozen=True)
class Evaluated:
    """Everything that an estimate is made from."""

    compiled: CompileResult
    counters: ExecutionCounters | None
    plan: LaunchPlan
    gpu: GpuSpec
    model: ByteModel

    def estimate(self) -> TimeEstimate:
        """Return the estimate from counts."""
        return estimate_time(self.compiled, self.counters, self.plan, self.gpu, self.model)

    def kernels(self) -> list[KernelResources]:
        """Return the launched kernels, each once."""
        launched = {launch.kernel for launch in self.plan.launches}
        found = {k.name: k for b in self.compiled.builds for k in b.kernels if k.name in launched}
        return list(found.values())

    @property
    def traffic(self) -> dict[str, BufferTraffic]:
        """Counted traffic by buffer; empty without counters."""
        return {} if self.counters is None else dict(self.counters.traffic)

    def with_kernels(self, change: Callable[[KernelResources], KernelResources]) -> "Evaluated":
        """Return the same with every kernel changed."""
        builds = tuple(
            build.model_copy(update={"kernels": tuple(map(change, build.kernels))})
            for build in self.compiled.builds
        )
        return replace(self, compiled=self.compiled.model_copy(update={"builds": builds}))

    def with_traffic(self, change: Callable[[str, BufferTraffic], BufferTraffic]) -> "Evaluated":
        """Return the same with every counted buffer changed; unchanged without counters."""
        traffic = {name: change(name, one) for name, one in self.traffic.items()}
        return self.with_counters(traffic=traffic)

    def with_counters(self, **changed: object) -> "Evaluated":
        """Return the same with other counters; unchanged without any."""
        if self.counters is None:
            return self
        return replace(self, counters=self.counters.model_copy(update=changed))

    def with_launches(self, launches: Iterable[Launch]) -> "Evaluated":
        """Return the same with another launch list."""
        plan = self.plan.model_copy(update={"launches": tuple(launches)})
        return replace(self, plan=plan)


def one_launch(evaluated: Evaluated) -> Evaluated:
    """All work in the launch with the most threads; its kernel stands for the others."""
    return evaluated.with_launches([max(evaluated.plan.launches, key=_threads)])


def coalesced(evaluated: Evaluated) -> Evaluated:
    """Every access in as few sectors as could carry its bytes."""
    return evaluated.with_traffic(
        lambda _, one: one.model_copy(update={"sectors_per_request": one.ideal_sectors_per_request})
    )


def read_once(evaluated: Evaluated) -> Evaluated:
    """Every input byte loaded once."""
    needed = {tensor.name: tensor.read_bytes for tensor in evaluated.model.tensors}
    return evaluated.with_traffic(
        lambda name, one: one.model_copy(
            update={"load_bytes": min(one.load_bytes, needed.get(name, one.load_bytes))}
        )
    )


def wide(evaluated: Evaluated) -> Evaluated:
    """Every load and store of the code 16 bytes wide.

    The code then does more at a time: what is not a global access grows with the bytes, so that
    the arithmetic for each byte stays the same.
    """

    def widen(kernel: KernelResources) -> KernelResources:
        old = StaticMix(kernel)
        mix: dict[str, int] = {}
        for name, count in kernel.instruction_mix.items():
            prefix, _, width = name.rpartition("_")
            narrow = prefix in ("ldg", "stg") and int(width) < 128
            key = f"{prefix}_128" if narrow else name
            mix[key] = mix.get(key, 0) + count
        growth = StaticMix(kernel.model_copy(update={"instruction_mix": mix})).access_bytes
        growth /= old.access_bytes
        others = {name: round(n * growth) for name, n in mix.items() if name in SLOW_CLASS_CLOCKS}
        instructions = None
        if kernel.instructions is not None:
            instructions = round((kernel.instructions - old.accesses) * growth) + old.accesses
        return kernel.model_copy(
            update={"instruction_mix": {**mix, **others}, "instructions": instructions}
        )

    return evaluated.with_kernels(widen)


def without_spills(evaluated: Evaluated) -> Evaluated:
    """No local memory traffic."""

    def drop(kernel: KernelResources) -> KernelResources:
        mix = dict(kernel.instruction_mix)
        dropped = mix.pop("ldl", 0) + mix.pop("stl", 0)
        instructions = None if kernel.instructions is None else kernel.instructions - dropped
        return kernel.model_copy(
            update={
                "instruction_mix": mix,
                "instructions": instructions,
                "spill_load_bytes": 0,
                "spill_store_bytes": 0,
            }
        )

    return evaluated.with_kernels(drop)


def few_registers(evaluated: Evaluated) -> Evaluated:
    """Registers and static shared memory that do not limit occupancy."""
    return evaluated.with_kernels(
        lambda kernel: kernel.model_copy(
            update={
                "registers_per_thread": min(kernel.registers_per_thread, FREE_REGISTERS),
                "static_smem_bytes": 0,
            }
        )
    )


def every_sm(evaluated: Evaluated) -> Evaluated:
    """At least one block for each SM, the same work in all."""

    def spread(launch: Launch) -> Launch:
        blocks = max(prod(launch.grid), evaluated.gpu.sm_count)
        return launch.model_copy(update={"grid": (blocks, 1, 1)})

    return evaluated.with_launches(map(spread, evaluated.plan.launches))


def larger_blocks(evaluated: Evaluated) -> Evaluated:
    """Return the same threads in blocks of at least `ENOUGH_THREADS`."""

    def join(launch: Launch) -> Launch:
        per_block = max(prod(launch.block), ENOUGH_THREADS)
        blocks = -(-_threads(launch) // per_block)
        return launch.model_copy(update={"grid": (blocks, 1, 1), "block": (per_block, 1, 1)})

    return evaluated.with_launches(map(join, evaluated.plan.launches))


def without_barriers(evaluated: Evaluated) -> Evaluated:
    """No block-wide barriers."""
    return evaluated.with_counters(barriers_per_block=0.0)


def _threads(launch: Launch) -> int:
    return prod(launch.grid) * prod(launch.block)
