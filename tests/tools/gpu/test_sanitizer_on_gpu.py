"""The real compute-sanitizer over samples: what each tool must find, and what it must not."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import SANITIZER_TOOLS, SanitizerResult, SanitizerTool
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.profiling.nvidia_tools import find_sanitizer
from kopt.tools.sanitize.stage import SanitizeRequest, sanitize
from kopt.tools.selftest.sample import SAMPLES, read_sample

pytestmark = pytest.mark.gpu

GOOD = (
    "good_vectorized_16_bytes",
    "good_cp_async_pipeline",
    "good_bulk_copies",
    "good_tma_tiles",
    "good_atomic_sums_zeroed_scratch",
    "good_last_block_done",
    "good_cooperative_grid_sync",
    "good_masked_experts",
    "good_pdl_wait",
)
"""Ways to move data and to wait that a sanitizer may misread."""
EVIL: tuple[tuple[str, SanitizerTool], ...] = (
    ("evil_one_element_too_many", "memcheck"),
    ("evil_one_byte_too_many", "memcheck"),
    ("evil_negative_index", "memcheck"),
    ("evil_misaligned_vector", "memcheck"),
    ("evil_scratch_read_first", "initcheck"),
    ("evil_missing_barrier", "racecheck"),
    ("evil_write_after_read", "racecheck"),
    ("evil_barrier_in_branch", "synccheck"),
)


@dataclass(frozen=True)
class Gpu:
    """The first GPU."""

    device: CudaDevice
    settings: Settings

    def examine(self, name: str, *tools: SanitizerTool) -> SanitizerResult:
        """Run a sample under these tools."""
        sample = read_sample(SAMPLES / f"{name}.cu")
        problem, workload = find_kernel(sample.kernel, SAMPLES / "problems")
        candidate = read_candidate(sample.path)
        request = SanitizeRequest(Case(problem, workload, candidate), tools=tools)
        return sanitize(request, self.device, self.settings)


@pytest.fixture(scope="module")
def gpu(settings: Settings) -> Iterator[Gpu]:
    if find_sanitizer(settings) is None:
        pytest.skip("there is no whole compute-sanitizer")
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        yield Gpu(device, settings)


def said(result: SanitizerResult) -> str:
    """Return what a failing test shows."""
    return result.model_dump_json(indent=1)


@pytest.mark.parametrize("name", GOOD)
def test_good_sample_passes_every_tool(name: str, gpu: Gpu) -> None:
    result = gpu.examine(name, *SANITIZER_TOOLS)
    assert [run.outcome for run in result.runs] == ["passed"] * 4, said(result)


@pytest.mark.parametrize(("name", "tool"), EVIL)
def test_evil_sample_is_found_at_one_of_its_lines(name: str, tool: SanitizerTool, gpu: Gpu) -> None:
    sample = read_sample(SAMPLES / f"{name}.cu")
    result = gpu.examine(name, tool)
    assert result.status is sample.status, said(result)
    if sample.marked_lines:
        lines = {finding.line for finding in result.runs[0].findings}
        assert lines & sample.marked_lines, said(result)


def test_uninitialized_shared_memory_is_found_where_the_tool_can(gpu: Gpu) -> None:
    tool = find_sanitizer(gpu.settings)
    assert tool is not None
    if "initcheck-address-space" not in tool.options:
        pytest.skip(f"{tool.name} looks at global memory only")
    result = gpu.examine("evil_uninitialized_shared", "initcheck")
    assert result.status is Status.UNINITIALIZED_READ, said(result)
