"""Plans loaded, configured and launched on a stand-in for the driver."""

from pathlib import Path

import pytest

from kopt.kernels.plan import Argument, Launch, LaunchPlan, Scratch
from kopt.kernels.problem import Problem
from kopt.tools.gpu.worker import driver
from kopt.tools.gpu.worker.driver import Stream
from kopt.tools.gpu.worker.failure import ExecutionFailure
from kopt.tools.gpu.worker.launcher import LaunchDevice, PlanCache
from support.host_cuda import SM_COUNT, CUresult, HostCuda, KernelArguments, memory_at

STREAM = Stream(5)


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    """A file that the stand-in loads."""
    path = tmp_path / "candidate.cubin"
    path.write_bytes(b"cubin")
    return path


@pytest.fixture
def cache(host_cuda: HostCuda) -> PlanCache:
    """An empty cache; kernels `k` and `other` do nothing."""
    host_cuda.kernels = {"k": _nothing, "other": _nothing}
    return PlanCache(LaunchDevice(STREAM, SM_COUNT))


def _nothing(arguments: KernelArguments) -> None:
    del arguments


def _plan(*launches: Launch, scratch: tuple[Scratch, ...] = ()) -> LaunchPlan:
    return LaunchPlan(workload="w", axes={}, defines={}, launches=launches, scratch=scratch)


def _launch(**changes: object) -> Launch:
    fields: dict[str, object] = {
        "kernel": "k",
        "grid": (6, 2, 1),
        "block": (64, 2, 1),
        "arguments": (),
    }
    return Launch.model_validate(fields | changes)


def test_a_launch_has_the_shape_of_its_plan(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    launch = _launch(dynamic_smem_bytes=1024)
    cache.load(cubin, _plan(launch), None).bind({})()
    ((name, config),) = host_cuda.launched
    assert (name, config.hStream, config.sharedMemBytes) == ("k", STREAM, 1024)
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (6, 2, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (64, 2, 1)
    assert (config.attrs, config.numAttrs) == ([], 0)


def test_launch_attributes_are_those_that_the_plan_asks_for(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    launch = _launch(grid=(4, 1, 1), cluster=(2, 1, 1), cooperative=True, pdl=True)
    cache.load(cubin, _plan(launch), None).bind({})()
    (_, config) = host_cuda.launched[0]
    cooperative, cluster, pdl = config.attrs
    assert config.numAttrs == 3
    assert cooperative.id == "CU_LAUNCH_ATTRIBUTE_COOPERATIVE"
    assert cooperative.value.cooperative == 1
    assert cluster.id == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"
    assert (cluster.value.clusterDim.x, cluster.value.clusterDim.y) == (2, 1)
    assert pdl.id == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
    assert pdl.value.programmaticStreamSerializationAllowed == 1


def test_launches_run_in_the_order_of_the_plan_with_their_arguments(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    given: list[tuple[str, bytes]] = []
    host_cuda.kernels = {
        "k": lambda arguments: given.append(("k", arguments.raw(0, 8))),
        "other": lambda arguments: given.append(("other", arguments.raw(1, 4))),
    }
    tensor = Argument(kind="tensor", name="x")
    number = Argument(kind="int32", name="H", value=77)
    launches = (_launch(arguments=(tensor,)), _launch(kernel="other", arguments=(tensor, number)))
    call = cache.load(cubin, _plan(*launches), None).bind({"x": 0x1234})
    call()
    call()
    once = [("k", (0x1234).to_bytes(8, "little")), ("other", b"M\0\0\0")]
    assert given == once * 2


def test_only_scratch_that_asks_for_zeros_is_zeroed_before_the_launches(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    buffers = {name: driver.allocate(16) for name in ("zeroed", "left")}
    for address in buffers.values():
        memory_at(address, "u1", 16)[:] = 0xA5
    seen: list[bytes] = []
    host_cuda.kernels["k"] = lambda _: seen.extend(
        memory_at(address, "u1", 16).tobytes() for address in buffers.values()
    )
    scratch = (
        Scratch(name="zeroed", dtype="float32", shape=(3,), init="zero"),
        Scratch(name="left", dtype="float32", shape=(4,)),
    )
    cache.load(cubin, _plan(_launch(), scratch=scratch), None).bind(buffers)()
    assert seen == [bytes(12) + b"\xa5" * 4, b"\xa5" * 16]


def test_a_kernel_gets_the_most_shared_memory_that_any_launch_needs(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    launches = (_launch(dynamic_smem_bytes=100_000), _launch(dynamic_smem_bytes=50_000))
    cache.load(cubin, _plan(*launches, _launch(kernel="other")), None)
    name = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
    assert host_cuda.function_attributes == [(name, 100_000), (name, 100_000)]


@pytest.mark.parametrize(("blocks", "asked"), [(8, []), (9, [1])])
def test_a_cluster_of_more_than_eight_blocks_is_allowed_for_its_kernel(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda, blocks: int, asked: list[int]
) -> None:
    cache.load(cubin, _plan(_launch(grid=(blocks, 1, 1), cluster=(blocks, 1, 1))), None)
    name = "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
    assert host_cuda.function_attributes == [(name, value) for value in asked]


def test_each_launch_has_its_own_carveout_and_default_none(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    launches = (_launch(carveout="max_shared"), _launch(), _launch(carveout="max_l1"))
    cache.load(cubin, _plan(*launches), None).bind({})()
    found = [
        [(attribute.id, attribute.value.sharedMemCarveout) for attribute in config.attrs]
        for _, config in host_cuda.launched
    ]
    name = "CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT"
    assert found == [[(name, 100)], [], [(name, 0)]]
    assert host_cuda.function_attributes == []


@pytest.mark.parametrize(("init", "first_has_pdl"), [("zero", False), ("poison", True)])
def test_a_launch_directly_behind_a_fill_does_not_depend_on_it_programmatically(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda, init: str, first_has_pdl: bool
) -> None:
    scratch = Scratch.model_validate({"name": "s", "dtype": "float32", "shape": (4,), "init": init})
    plan = _plan(_launch(pdl=True), _launch(pdl=True), scratch=(scratch,))
    call = cache.load(cubin, plan, None).bind({"s": driver.allocate(16)})
    call()
    assert [config.numAttrs for _, config in host_cuda.launched] == [int(first_has_pdl), 1]
    host_cuda.launched.clear()
    call.launch_kernels()  # behind a kernel of the caller
    assert [config.numAttrs for _, config in host_cuda.launched] == [1, 1]


def test_a_cooperative_grid_that_does_not_fit_is_told_in_numbers(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    launches = (_launch(), _launch(grid=(9, 1, 1), cooperative=True))
    with pytest.raises(
        ExecutionFailure, match="9 blocks, but the device holds 8 at once"
    ) as caught:
        cache.load(cubin, _plan(*launches), None)
    assert (caught.value.fault.launch, caught.value.fault.sticky) == (1, False)


def test_a_cooperative_grid_that_fills_the_device_is_launched(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    cache.load(cubin, _plan(_launch(grid=(4, 2, 1), cooperative=True)), None).bind({})()
    assert len(host_cuda.launched) == 1


def test_a_kernel_that_the_cubin_lacks_is_a_failure_to_load(cache: PlanCache, cubin: Path) -> None:
    with pytest.raises(ExecutionFailure, match="load: CUDA_ERROR_NOT_FOUND"):
        cache.load(cubin, _plan(_launch(kernel="absent")), None)


def test_a_refused_launch_is_named_by_its_place(
    cache: PlanCache, cubin: Path, host_cuda: HostCuda
) -> None:
    host_cuda.refused["other"] = CUresult.CUDA_ERROR_INVALID_VALUE
    call = cache.load(cubin, _plan(_launch(), _launch(kernel="other")), None).bind({})
    with pytest.raises(ExecutionFailure) as caught:
        call()
    assert (caught.value.fault.during, caught.value.fault.launch) == ("launch", 1)


def test_a_plan_is_loaded_once_and_again_for_another_cubin_or_plan(
    cache: PlanCache, cubin: Path, compile_problem: Problem
) -> None:
    first = cache.load(cubin, _plan(_launch()), compile_problem)
    assert cache.load(cubin, _plan(_launch()), compile_problem) is first
    assert cache.load(cubin, _plan(_launch(block=(32, 1, 1))), compile_problem) is not first
    cubin.write_bytes(b"another cubin")
    assert cache.load(cubin, _plan(_launch()), compile_problem) is not first
