"""Real executions: every reference kernel, every sample, and kernels that a GPU must see through.

Everything goes the way of `kopt check --device cuda:0`: worker process, guards, poison, gates.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.selftest.sample import ShippedSample, read_samples
from support.samples import check_sample, describe

pytestmark = pytest.mark.gpu

KERNELS = [
    problem.kernel_id(workload)
    for problem in load_problems().values()
    for workload in problem.workloads
    if workload.use != "time"  # benchmarks run these: their oracles take minutes
]
SAMPLES = read_samples()
GOOD = [sample for sample in SAMPLES if sample.status is Status.PASSED]
TIMING_DEPENDENT = {"evil_clock_dependent", "evil_ticket_order", "evil_volatile_for_barrier"}
WRONG = [
    sample
    for sample in SAMPLES
    if sample.status in (Status.INCORRECT, Status.UNWRITTEN_OUTPUT, Status.INPUT_MUTATED)
    and sample.path.stem not in TIMING_DEPENDENT
]
UNSEEN = [
    sample
    for sample in SAMPLES
    if sample.status in (Status.DATA_RACE, Status.BARRIER_DIVERGENCE, Status.UNINITIALIZED_READ)
    or sample.path.stem in TIMING_DEPENDENT
]
FAULTY = [
    sample
    for sample in SAMPLES
    if sample.path.stem
    in (
        "evil_misaligned_vector",
        "evil_one_byte_too_many",
        "evil_one_element_too_many",
        "evil_infinite_loop",
    )
]


@dataclass(frozen=True)
class Gpu:
    """A device of a real GPU, and the tiny problem."""

    device: CudaDevice
    settings: Settings
    problem: Problem

    @property
    def arch(self) -> str:
        """The compiler's name of the GPU's architecture."""
        return self.device.facts.arch

    def check_sample(self, sample: ShippedSample) -> CheckResult:
        """Check a sample; one for another architecture ends the test."""
        # Machine code with instructions of one architecture, such as wgmma, runs on no other.
        if sample.arch_instead_of(self.arch) != self.arch:
            pytest.skip(f"the sample is for {sample.arch}")
        return check_sample(sample, self.settings, self.device, self.arch)

    def check(self, source: str) -> CheckResult:
        """Check a candidate of scale_rows at the quick level."""
        workload = self.problem.workload("b8xh64")
        request = CheckRequest(
            Case(self.problem, workload, Candidate(source)), "quick", arch=self.arch
        )
        return check_candidate(request, self.device, self.settings)


@pytest.fixture(scope="module")
def gpu(settings: Settings, compile_problem: Problem) -> Iterator[Gpu]:
    """The first GPU."""
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        yield Gpu(device, settings, compile_problem)


def _stem(sample: ShippedSample) -> str:
    return sample.path.stem


@pytest.mark.parametrize("kernel", KERNELS)
def test_reference_kernel_passes(kernel: str, gpu: Gpu) -> None:
    problem, workload = find_kernel(kernel)
    candidate = read_candidate(problem.folder / "reference.cu")
    request = CheckRequest(Case(problem, workload, candidate), "quick", arch=gpu.arch)
    result = check_candidate(request, gpu.device, gpu.settings)
    assert result.status is Status.PASSED, describe(result)


@pytest.mark.parametrize("sample", GOOD, ids=_stem)
def test_good_sample_passes(sample: ShippedSample, gpu: Gpu) -> None:
    result = gpu.check_sample(sample)
    assert result.status is Status.PASSED, describe(result)
    assert result.race_check is not None
    assert result.race_check.outcome == "passed", result.race_check.words


@pytest.mark.parametrize("sample", UNSEEN, ids=_stem)
def test_what_a_gpu_need_not_show_is_refused_at_level_full(sample: ShippedSample, gpu: Gpu) -> None:
    result = gpu.check_sample(sample)
    assert (result.level, result.status is Status.PASSED) == ("full", False), describe(result)


def test_ptx_that_the_simulator_cannot_run_has_no_race_check(gpu: Gpu) -> None:
    (sample,) = (one for one in SAMPLES if one.name == "evil_inline_ptx")
    result = gpu.check_sample(sample)
    assert result.status is Status.PASSED, describe(result)
    assert result.race_check is not None
    assert result.race_check.outcome == "unavailable"


@pytest.mark.parametrize("sample", [*WRONG, *FAULTY], ids=_stem)
def test_evil_sample_gets_the_status_that_the_simulator_gives(
    sample: ShippedSample, gpu: Gpu
) -> None:
    result = gpu.check_sample(sample)
    assert result.status is sample.status, describe(result)


HEAD = """\
/* kopt: 1
family: other
launch:
  - {kernel: scale_rows, grid: B, block: 64, args: [x, out, H, scale]EXTRA}
*/
#include <kopt/griddepcontrol.cuh>
extern "C" __global__ void scale_rows(const float* x, float* out, int H, float scale) {
  const size_t at = size_t(blockIdx.x) * H + threadIdx.x;
"""
GOOD_BODY = "  out[at] = x[at] * scale;\n}\n"


def _source(body: str, extra: str = "") -> str:
    return HEAD.replace("EXTRA", extra) + body


def test_a_wild_write_is_out_of_bounds_and_hurts_no_later_candidate(gpu: Gpu) -> None:
    wild = "  out[at + (size_t(H) << 40)] = x[at] * scale;\n}\n"
    result = gpu.check(_source(wild))
    assert result.status is Status.OUT_OF_BOUNDS, describe(result)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in describe(result)
    assert gpu.check(_source(GOOD_BODY)).status is Status.PASSED


def test_a_write_before_a_buffer_is_found_in_the_guard_zone(gpu: Gpu) -> None:
    body = "  out[at] = x[at] * scale;\n  if (at == 0) out[-1] = 0.0f;\n}\n"
    result = gpu.check(_source(body))
    assert result.status is Status.OUT_OF_BOUNDS, describe(result)
    assert "out" in describe(result)


FOUND_SHARED = """\
  __shared__ volatile float found[64];
  const float before = found[threadIdx.x];
  found[threadIdx.x] = 0.0f;  // clean for the block after it
  out[at] = before == 0.0f ? x[at] * scale : before;
}
"""
FOUND_LOCAL = """\
  volatile float found[8];
  float before = 0.0f;
  for (int i = 0; i < 8; ++i) before += found[(i + threadIdx.x) % 8];
  for (int i = 0; i < 8; ++i) found[(i + threadIdx.x) % 8] = 0.0f;
  out[at] = x[at] * scale + before;
}
"""
CLEARED_LOCAL = FOUND_LOCAL.replace(
    "found[8];", "found[8];\n  for (int i = 0; i < 8; ++i) found[(i + threadIdx.x) % 8] = 0.0f;"
)


@pytest.mark.parametrize("body", [FOUND_SHARED, FOUND_LOCAL], ids=["shared", "local"])
def test_memory_that_nothing_wrote_is_not_found_to_be_zero(body: str, gpu: Gpu) -> None:
    result = gpu.check(_source(body))
    # Where every block finds the fill pattern whole, and stores it, nothing seems to be written.
    assert result.status in (Status.INCORRECT, Status.UNWRITTEN_OUTPUT), describe(result)


def test_local_memory_that_is_cleared_first_is_what_it_was_cleared_to(gpu: Gpu) -> None:
    result = gpu.check(_source(CLEARED_LOCAL))
    assert result.status is Status.PASSED, describe(result)


PDL = ", pdl: true"
EARLY_BODY = """\
  const float early = x[at];
  kopt::griddepcontrol_wait();
  out[at] = early * scale;
}
"""


def test_a_dependent_kernel_that_waits_first_passes(gpu: Gpu) -> None:
    body = "  kopt::griddepcontrol_wait();\n" + GOOD_BODY
    result = gpu.check(_source(body, PDL))
    assert result.status is Status.PASSED, describe(result)


def test_a_dependent_kernel_that_reads_before_it_waits_is_incorrect(gpu: Gpu) -> None:
    result = gpu.check(_source(EARLY_BODY, PDL))
    assert result.status is Status.INCORRECT, describe(result)
    assert "right only where the launch before has ended" in describe(result)


def test_the_early_reader_passes_where_it_is_not_launched_early(gpu: Gpu) -> None:
    result = gpu.check(_source(EARLY_BODY))
    assert result.status is Status.PASSED, describe(result)


CLUSTER_BODY = """\
  // Each block brings its row to shared memory; the other block of the cluster writes it out.
  __shared__ float row[64];
  row[threadIdx.x] = x[at];
  asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
  unsigned rank, place, found;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  place = static_cast<unsigned>(__cvta_generic_to_shared(row + threadIdx.x));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(place), "r"(rank ^ 1u));
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(found) : "memory");
  const size_t partner = size_t(blockIdx.x ^ 1) * H + threadIdx.x;
  out[partner] = value * scale;
  // A block's shared memory must outlive the reads of the other one.
  asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}
"""


def test_blocks_of_a_cluster_read_each_others_shared_memory(gpu: Gpu) -> None:
    result = gpu.check(_source(CLUSTER_BODY, ", cluster: 2"))
    assert result.status is Status.PASSED, describe(result)


@pytest.mark.parametrize("carveout", ["max_shared", "max_l1"])
def test_a_carveout_is_only_a_wish(carveout: str, gpu: Gpu) -> None:
    result = gpu.check(_source(GOOD_BODY, f", carveout: {carveout}"))
    assert result.status is Status.PASSED, describe(result)
