"""Clocks of single things on a GPU: loads by the level that answers, shuffles, barriers, clusters.

Each is a chain of steps that need the one before, walked by one thread and timed by the SM's clock
(Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking",
2024, and its forerunners do so). The kernels are `probes.cu` and `cluster_probes.cu`.
"""

from pathlib import Path
from statistics import median

import numpy as np

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.calibration import CalibratedValue
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Problem, TensorSpec, Workload
from kopt.kernels.record import because
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import Arrays, ExecutionRequest, Program
from kopt.tools.devices.timer import TimingDevice

_FOLDER = Path(__file__).parent
_LINE = 32
"""Elements of a line of 128 bytes."""
_L1_LINES = 32
_LINES = 4096
"""Lines of the chains in L2 and DRAM: 512 KiB, less than any L2 and more than any L1."""
_INTS = 1 << 26
"""256 MiB: what was copied there first has left the L2 again."""
_NEAR, _FAR = 1 << 15, 1 << 20
"""Where these chains begin; both are shuffled, that in DRAM over 64 MiB."""
_FAR_INTS = 1 << 24
_TIMES = 5
_SEED = 1
_LEAST_CLUSTERS = (9, 0)
_MEANINGS = (
    ("dram", "a load that misses every cache"),
    ("l2", "a load that L2 answers"),
    ("l1", "a load that L1 answers"),
    ("shared", "a load from shared memory"),
    ("shuffle", "__shfl_sync"),
    ("barrier", "__syncthreads of 256 threads"),
    ("cluster_barrier", "cluster.sync of two blocks of 128 threads"),
    ("cluster_load", "a load from another block's shared memory"),
)
"""Chains stand in the order of the slots that the kernels write."""


def measure_latencies(device: TimingDevice, settings: Settings) -> tuple[CalibratedValue, ...]:
    """Return the clocks of each, medians of five executions.

    Raises:
        ToolError: The kernels do not compile.
        InfraError: The device failed.
        SetupError: There is no compiler.
    """
    has_clusters = device.facts.compute_capability >= _LEAST_CLUSTERS
    sources = ("probes.cu", "cluster_probes.cu") if has_clusters else ("probes.cu",)
    links = chained_lines()
    found: dict[int, float] = {}
    for source in sources:
        program = _program(source, device, settings)
        runs = np.stack([_clocks(program, links, device) for _ in range(_TIMES)])
        found |= {
            slot: median(map(float, runs[:, slot])) for slot in np.flatnonzero(runs[0] > 0).tolist()
        }
    return tuple(
        CalibratedValue(name=name, value=round(found[slot], 1), unit="clocks", meaning=meaning)
        for slot, (name, meaning) in enumerate(_MEANINGS)
        if slot in found
    )


def chained_lines() -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the index of the next line for the first element of each line of three rings."""
    rng = np.random.default_rng(_SEED)
    links = np.zeros(_INTS, np.int32)
    ring = np.arange(_L1_LINES) * _LINE
    links[ring] = np.roll(ring, -1)
    for first, span in ((_NEAR, _LINES * _LINE), (_FAR, _FAR_INTS)):
        lines = rng.permutation(span // _LINE)[:_LINES] * _LINE + first
        lines = np.concatenate(([first], lines[lines != first]))[:_LINES]
        links[lines] = np.roll(lines, -1)
    return links


def _program(source: str, device: TimingDevice, settings: Settings) -> Program:
    """Return the kernels of one file, compiled for the device."""
    axes = {"I": _INTS, "S": len(_MEANINGS), "LINES": _LINES, "NEAR": _NEAR, "FAR": _FAR}
    workload = Workload(name="all", axes=axes)
    problem = Problem(
        name="calibration",
        op_type="calibration",
        description="",
        axes=dict.fromkeys(axes),
        tensors=(
            TensorSpec(name="links", role="in", dtype="int32", shape=("I",)),
            TensorSpec(name="clocks", role="out", dtype="float32", shape=("S",)),
        ),
        workloads=(workload,),
        tolerance="bf16",
        folder=_FOLDER,
    )
    case = Case(problem, workload, read_candidate(_FOLDER / source))
    arch = device.facts.arch
    compiled = compile_candidate(CompileRequest(case, (arch,)), settings)
    plan = resolve_plan(case, device.gpu).plan
    if not compiled.builds or plan is None:
        raise ToolError(f"{source} does not compile{because(compiled.diagnostics)}")
    cubin = Path(compiled.builds[0].cubin_path)
    return Program(case.candidate, problem, plan, cubin, arch)


def _clocks(program: Program, links: np.ndarray, device: TimingDevice) -> np.ndarray:
    """Return what one execution has written; 0 in slots of other files."""
    inputs: Arrays = {"links": links}
    outcome = device.execute(ExecutionRequest(program, inputs, poison=0))
    if outcome.status is not Status.PASSED:
        raise InfraError(f"a probe fails: {outcome.status}{because(outcome.diagnostics)}")
    return outcome.outputs["clocks"].reshape(-1)
