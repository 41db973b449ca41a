"""The numbers behind each suspect."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from kopt.config.counted import counted
from kopt.kernels.counters import BufferTraffic
from kopt.kernels.profile_result import LaunchProfile, ProfileResult, SuspectName
from kopt.kernels.time_estimate import PartName, TimeEstimate

_ACCESSES = ("ldg_", "stg_")


@dataclass(frozen=True)
class SuspectEvidence:
    """Sentences with the numbers of one candidate."""

    profiled: ProfileResult
    estimate: TimeEstimate
    sm_count: int
    """Of the GPU that the estimate is for."""

    def of(self, name: SuspectName) -> Iterator[str]:
        """Yield the numbers behind a suspect; none where the gain is all."""
        found: dict[SuspectName, Callable[[], Iterator[str]]] = {
            "memory_bandwidth": lambda: self._busy("dram"),
            "l2_bandwidth": lambda: self._busy("l2", "sm_intake"),
            "memory_latency": lambda: self._busy("waiting"),
            "instruction_issue": lambda: self._busy("issue"),
            "launch_latency": self._launches,
            "several_launches": self._launches,
            "uncoalesced_access": self._sectors,
            "repeated_reads": self._rereads,
            "narrow_access": self._widths,
            "spills": self._spills,
            "low_occupancy": self._occupancies,
            "few_blocks": self._grids,
            "many_blocks": self._grids,
            "barriers": self._barriers,
        }
        return found.get(name, self._nothing)()

    def _nothing(self) -> Iterator[str]:
        yield from ()

    def _busy(self, *names: PartName) -> Iterator[str]:
        whole_us = self.estimate.latency_us
        for name in names:
            us = self.estimate.part_us(name)
            yield f"{name.replace('_', ' ')} {us:.3g} us of estimated {whole_us:.3g} us"

    def _launches(self) -> Iterator[str]:
        launches = len(self.profiled.launches)
        yield "1 launch" if launches == 1 else f"{launches} launches"

    def _sectors(self) -> Iterator[str]:
        for name, one in self._traffic.items():
            moved, ideal = one.sectors_per_request, one.ideal_sectors_per_request
            if moved and ideal and moved > ideal:
                yield f"{name}: {moved:.3g} sectors per warp access, {ideal:.3g} would do"

    def _rereads(self) -> Iterator[str]:
        for tensor in self.profiled.byte_model.tensors:
            one = self._traffic.get(tensor.name)
            if one is not None and one.load_bytes > tensor.read_bytes:
                needed = f"{tensor.read_bytes / 1e6:.3g} MB needed"
                yield f"{tensor.name}: {one.load_bytes / 1e6:.3g} MB loaded, {needed}"

    def _widths(self) -> Iterator[str]:
        for launch in self._kernels():
            mix = sorted(launch.resources.instruction_mix.items())
            accesses = (f"{count} {name}" for name, count in mix if name.startswith(_ACCESSES))
            yield f"{launch.kernel}: {', '.join(accesses)}"

    def _spills(self) -> Iterator[str]:
        for launch in self._kernels():
            kernel = launch.resources
            if kernel.spill_store_bytes or kernel.spill_load_bytes:
                yield (
                    f"{kernel.name}: {kernel.spill_store_bytes} bytes stored and "
                    f"{kernel.spill_load_bytes} loaded per thread, "
                    f"{kernel.registers_per_thread} registers"
                )

    def _occupancies(self) -> Iterator[str]:
        for launch in self._kernels():
            occupancy = launch.occupancy
            yield (
                f"{launch.kernel}: occupancy {occupancy.theoretical_occupancy:.2f}, "
                f"{counted(occupancy.blocks_per_sm, 'block')} per SM, limited by "
                f"{', '.join(occupancy.limiters)}"
            )

    def _grids(self) -> Iterator[str]:
        for launch in self._kernels():
            blocks = counted(prod(launch.grid), "block")
            threads = counted(prod(launch.block), "thread")
            yield f"{launch.kernel}: {blocks} of {threads} for {self.sm_count} SMs"

    def _barriers(self) -> Iterator[str]:
        if self.profiled.counters is not None:
            yield f"{counted(self.profiled.counters.barriers_per_block, 'barrier')} per block"

    @property
    def _traffic(self) -> Mapping[str, BufferTraffic]:
        counters = self.profiled.counters
        return {} if counters is None else counters.traffic

    def _kernels(self) -> list[LaunchProfile]:
        return list({launch.kernel: launch for launch in self.profiled.launches}.values())
