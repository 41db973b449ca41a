"""Launch plans on the device: kernels loaded and configured once, bound to buffers, launched.

One bound plan makes one call: it zeroes the scratch that wants it, then launches every kernel in
order on the worker's stream. It allocates nothing on the device and may be captured.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Problem
from kopt.tools.gpu.messages import Fault

from . import driver, driver_launch
from .arguments import ArgumentBlock, argument_bytes, encode_descriptor, tiled_map
from .driver import Function, Module, Stream
from .failure import ExecutionFailure, step

PORTABLE_CLUSTER_BLOCKS = 8
"""Larger clusters need a kernel's consent. Source: CUDA C++ Programming Guide, Thread Block
Clusters."""


@dataclass(frozen=True)
class _Kernel:
    """One launch of the plan, ready but for its arguments."""

    function: Function
    config: Any
    """The launch as in the plan, directly behind another kernel."""
    config_in_call: Any
    """The launch within a whole call: without PDL if it directly follows a fill."""
    is_dependent: bool
    """Whether it may start before the launch before it has ended."""


class BoundPlan:
    """A plan over the buffers of one call; `LoadedPlan.bind` makes it."""

    def __init__(
        self,
        kernels: tuple[_Kernel, ...],
        blocks: tuple[ArgumentBlock, ...],
        zeroed: tuple[tuple[int, int], ...],
        stream: Stream,
    ) -> None:
        """Take address and bytes of the scratch to zero as `zeroed`."""
        self._launches = tuple(zip(kernels, blocks, strict=True))
        self._zeroed = zeroed
        self._stream = stream

    def __call__(self, between: Callable[[], None] | None = None) -> None:
        """Make one call.

        Args:
            between: Enqueues something between two launches that do not overlap.

        Raises:
            ExecutionFailure: The driver refuses a launch, or reports what earlier work did.
        """
        self.zero_scratch()
        self._launch([kernel.config_in_call for kernel, _ in self._launches], between)

    def zero_scratch(self) -> None:
        """Fill the scratch buffers that the plan wants zeroed; part of every call."""
        with step("launch"):
            for address, size_bytes in self._zeroed:
                driver.fill(address, 0, size_bytes, self._stream)

    def launch_kernels(self, between: Callable[[], None] | None = None) -> None:
        """Launch all kernels behind a kernel that the caller has put between them and the fills."""
        self._launch([kernel.config for kernel, _ in self._launches], between)

    def _launch(self, configs: Sequence[Any], between: Callable[[], None] | None) -> None:
        for number, ((kernel, block), config) in enumerate(
            zip(self._launches, configs, strict=True)
        ):
            if number and between is not None and not kernel.is_dependent:
                between()
            with step("launch", number):
                driver_launch.launch(kernel.function, config, block.address)


class LoadedPlan:
    """A plan whose kernels are loaded and configured on the worker's stream."""

    def __init__(
        self, module: Module, plan: LaunchPlan, dtypes: Mapping[str, str], device: "LaunchDevice"
    ) -> None:
        """Find and configure the kernels.

        Args:
            module: Of the plan's cubin.
            plan: As it is launched.
            dtypes: Of every tensor of the problem.
            device: Where.

        Raises:
            ExecutionFailure: A kernel is missing, or the device cannot run a launch of the plan.
        """
        self._plan = plan
        self._stream = device.stream
        scratch = {entry.name: entry.dtype for entry in plan.scratch}
        dtypes = {**dtypes, **scratch}
        self._maps = {m.name: (m.tensor, tiled_map(m, dtypes[m.tensor])) for m in plan.tensor_maps}
        with step("load"):
            names = {launch.kernel for launch in plan.launches}
            functions = {name: driver.get_function(module, name) for name in names}
        self._kernels = tuple(
            _configured(plan, number, functions[launch.kernel], device)
            for number, launch in enumerate(plan.launches)
        )

    def bind(self, addresses: Mapping[str, int]) -> BoundPlan:
        """Return the plan over buffers at these device addresses.

        Raises:
            ExecutionFailure: The driver refuses a tensor map.
        """
        with step("encode"):
            maps = {
                name: encode_descriptor(tiled, addresses[tensor])
                for name, (tensor, tiled) in self._maps.items()
            }
        blocks = tuple(
            ArgumentBlock([argument_bytes(a, addresses, maps) for a in launch.arguments])
            for launch in self._plan.launches
        )
        zeroed = tuple(
            (addresses[s.name], prod(s.shape) * dtype_size_bytes(s.dtype))
            for s in self._plan.scratch
            if s.init == "zero"
        )
        return BoundPlan(self._kernels, blocks, zeroed, self._stream)


@dataclass(frozen=True)
class LaunchDevice:
    """The device as launches depend on it, beside their plan."""

    stream: Stream
    sm_count: int


class PlanCache:
    """Loaded plans by the hash of their cubin and all of the plan; never emptied.

    A worker serves a bounded number of candidates, and a captured graph needs its kernels.
    """

    def __init__(self, device: LaunchDevice) -> None:
        """Start empty."""
        self._device = device
        self._plans: dict[tuple[str, str], LoadedPlan] = {}

    def load(self, cubin: Path, plan: LaunchPlan, problem: Problem | None) -> LoadedPlan:
        """Return `plan` over the kernels of `cubin`, loaded once.

        Args:
            cubin: File.
            plan: As it is launched.
            problem: Whose tensors the plan's tensor maps are over; None without such maps.

        Raises:
            ExecutionFailure: The cubin does not load, or the device cannot run the plan.
        """
        image = cubin.read_bytes()
        dtypes = {t.name: t.dtype for t in problem.tensors} if problem is not None else {}
        key = (
            hashlib.sha256(image).hexdigest(),
            f"{plan.model_dump_json()}{sorted(dtypes.items())}",
        )
        if key not in self._plans:
            with step("load"):
                module = Module(int(driver.call("cuModuleLoadData", image)))
            self._plans[key] = LoadedPlan(module, plan, dtypes, self._device)
        return self._plans[key]


def _configured(plan: LaunchPlan, number: int, function: Function, device: LaunchDevice) -> _Kernel:
    launch = plan.launches[number]
    same = [other for other in plan.launches if other.kernel == launch.kernel]
    with step("launch", number):
        # The attributes are the kernel's, so that they hold the most that any launch needs.
        most = max(other.dynamic_smem_bytes for other in same)
        if most:
            driver.set_function_attribute(function, "MAX_DYNAMIC_SHARED_SIZE_BYTES", most)
        if any(prod(other.cluster) > PORTABLE_CLUSTER_BLOCKS for other in same):
            driver.set_function_attribute(function, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        if launch.cooperative:
            _check_co_residency(launch, number, function, device)
        # A programmatic dependency is legal between kernels only, and a fill is no kernel.
        # Source: CUgraphDependencyType in the cuda.h of CUDA 13.0 ("may only be used between kernel
        # nodes"); for streams, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION there overlaps
        # with "the previous kernel in the stream".
        follows_fill = number == 0 and any(s.init == "zero" for s in plan.scratch)
        in_call = launch.model_copy(update={"pdl": False}) if follows_fill else launch
        return _Kernel(
            function,
            config=driver_launch.launch_config(launch, device.stream),
            config_in_call=driver_launch.launch_config(in_call, device.stream),
            is_dependent=launch.pdl,
        )


def _check_co_residency(
    launch: Launch, number: int, function: Function, device: LaunchDevice
) -> None:
    """Say in numbers what the driver would only call too large."""
    threads = prod(launch.block)
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    per_sm = int(driver.call(occupancy, function, threads, launch.dynamic_smem_bytes))
    at_once = per_sm * device.sm_count
    if prod(launch.grid) > at_once:
        message = (
            f"a cooperative grid of {prod(launch.grid)} blocks, but the device holds {at_once}"
            f" at once ({per_sm} on each of {device.sm_count} SMs)"
        )
        code = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
        raise ExecutionFailure(Fault(during="launch", code=code, message=message, launch=number))
