"""Made-up candidates for what profiles say: resources, plan, counters, estimate from one record."""

from dataclasses import dataclass

from kopt.kernels.compile_result import DependencyOrder, KernelResources
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.plan import Dim3, Launch, LaunchPlan, Scratch
from kopt.kernels.profile_result import SuspectName
from kopt.kernels.roofline import ByteModel, TensorBytes
from kopt.kernels.time_estimate import LaunchEstimate, PartName, PartTimes, TimeEstimate
from kopt.tools.estimate.stage import dominant_part

SCALAR_MIX = {"ldg_16": 4, "stg_16": 2, "bar": 2, "shfl": 10}
VECTOR_MIX = {"ldg_128": 4, "stg_128": 2, "bar": 2, "shfl": 10}


@dataclass(frozen=True)
class EstimateCase:
    """One candidate as the model sees it: 128 rows, one block for each."""

    blocks: int = 128
    threads: int = 256
    load_bytes: int = 2 << 20
    store_bytes: int = 1 << 20
    unique_load_bytes: int | None = None
    sectors: float = 16.0
    loads_in_flight: int | None = None
    order: DependencyOrder | None = None
    streaming_stores: int | None = None
    packed_math: float | None = None
    barriers: float = 2.0
    phases: float = 1.0
    instructions: int | None = 300
    registers: int = 32
    spill_bytes: int = 0
    mix: tuple[tuple[str, int], ...] = tuple(VECTOR_MIX.items())
    launches: int = 1
    pdl: bool = False
    zero_scratch: bool = False
    gpu: str = "H100"
    parts: tuple[tuple[PartName, float], ...] = ()
    """Parts of the estimate in microseconds that differ from the usual ones."""
    suspects: tuple[SuspectName, ...] = ()
    """The largest gain first."""

    def kernel(self) -> KernelResources:
        """Its static facts."""
        return KernelResources(
            name="kernel",
            registers_per_thread=self.registers,
            spill_store_bytes=self.spill_bytes,
            spill_load_bytes=self.spill_bytes,
            stack_bytes=0,
            static_smem_bytes=0,
            constant_bytes=0,
            barriers=1,
            max_threads_per_block=None,
            parameters=(),
            instructions=self.instructions,
            instruction_mix=dict(self.mix),
            loads_in_flight=self.loads_in_flight,
            dependency_order=self.order,
            streaming_stores=self.streaming_stores,
            packed_math=self.packed_math,
        )

    def plan(self) -> LaunchPlan:
        """Its launches."""
        grid: Dim3 = (self.blocks, 1, 1)
        launch = Launch(
            kernel="kernel", grid=grid, block=(self.threads, 1, 1), pdl=self.pdl, arguments=()
        )
        scratch = (Scratch(name="sums", dtype="float32", shape=(128,), init="zero"),)
        return LaunchPlan(
            workload="b128xh4096",
            axes={},
            defines={},
            launches=(launch,) * self.launches,
            scratch=scratch if self.zero_scratch else (),
        )

    def counters(self) -> ExecutionCounters:
        """What an execution of it counts."""

        def traffic(load_bytes: int, store_bytes: int) -> BufferTraffic:
            return BufferTraffic(
                load_bytes=load_bytes,
                store_bytes=store_bytes,
                sectors_per_request=self.sectors,
                ideal_sectors_per_request=16.0,
            )

        return ExecutionCounters(
            traffic={"x": traffic(self.load_bytes, 0), "out": traffic(0, self.store_bytes)},
            barriers_per_block=self.barriers,
            load_phases_per_thread=self.phases,
            global_accesses_per_thread=6.0,
        )

    def model(self) -> ByteModel:
        """The least traffic of its workload."""
        read_bytes = self.unique_load_bytes or self.load_bytes
        return ByteModel(
            kernel="problem_b128xh4096",
            tensors=(
                TensorBytes(name="x", role="in", read_bytes=read_bytes, written_bytes=0),
                TensorBytes(name="out", role="out", read_bytes=0, written_bytes=self.store_bytes),
            ),
            read_bytes=read_bytes,
            written_bytes=self.store_bytes,
            total_bytes=read_bytes + self.store_bytes,
            flop=0,
            flop_per_byte=0.0,
        )

    def estimate(self) -> TimeEstimate:
        """A made-up time: bytes by DRAM, a fixed launch and issue, a wait for each phase."""
        dram_us = (self.load_bytes + self.store_bytes) / 2.9e6
        parts: PartTimes = {
            "launch": 0.75,
            "dram": dram_us,
            "issue": 0.2,
            "waiting": 0.9 * self.phases,
            **dict(self.parts),
        }
        us = parts["launch"] + parts["waiting"] + max(parts["dram"], parts["issue"])
        one = LaunchEstimate(kernel="kernel", latency_us=us, parts_us=parts)
        launches = (one,) * self.launches
        whole_us = us * self.launches
        return TimeEstimate(
            workload="b128xh4096",
            gpu=self.gpu,
            latency_us=whole_us,
            interval_us=(0.8 * whole_us, 1.2 * whole_us),
            interval_rate=0.9,
            resolution=0.02,
            launches=launches,
            dominant=dominant_part(launches),
        )
