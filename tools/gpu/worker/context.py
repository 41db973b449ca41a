"""The worker's CUDA context: the device found by its UUID, one stream, and what lives as long."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.tools.gpu.messages import OpenedGpu, StartRequest

from . import driver
from .buffers import DeviceArena
from .clocks import NvmlTelemetry
from .driver import Stream
from .launcher import LaunchDevice, PlanCache
from .leftovers import Leftovers
from .pinned_memory import PinnedPool


@dataclass(frozen=True)
class WorkerContext:
    """What all requests to a worker share."""

    facts: OpenedGpu
    stream: Stream
    """The only one; does not wait for the legacy default stream."""
    plans: PlanCache
    helper_cubins: Mapping[str, str]
    arena: DeviceArena = field(default_factory=DeviceArena)
    pinned: PinnedPool = field(default_factory=PinnedPool)

    @cached_property
    def telemetry(self) -> NvmlTelemetry:
        """NVML, opened by the first session: that takes tens of milliseconds."""
        return NvmlTelemetry(self.facts.uuid)

    @cached_property
    def leftovers(self) -> Leftovers:
        """The kernels that fill shared and local memory, loaded by the first execution."""
        cubin, facts = self.helper_cubin("leftovers"), self.facts
        return Leftovers(cubin, self.stream, facts.index, facts.sm_count)

    def helper_cubin(self, name: str) -> Path:
        """Return the cubin of tools/gpu/worker/<name>.cu.

        Raises:
            InfraError: The worker was started without it.
        """
        if name not in self.helper_cubins:
            raise InfraError(f"the worker was started without the cubin of {name}.cu")
        return Path(self.helper_cubins[name])


def open_context(request: StartRequest) -> WorkerContext:
    """Make the primary context current, which torch uses too, and a stream in it.

    Raises:
        SetupError: cuda.bindings is not installed.
        InfraError: The device is not visible here.
        CudaError: The driver refuses.
    """
    driver.call("cuInit", 0)
    device = _find(request.device_uuid)
    driver.call("cuCtxSetCurrent", int(driver.call("cuDevicePrimaryCtxRetain", device)))
    if driver.device_attribute(device, "MAX_PERSISTING_L2_CACHE_SIZE"):
        driver.switch_persisting_l2_off()
    flags = driver.enum("CUstream_flags", "CU_STREAM_NON_BLOCKING").value
    stream = Stream(int(driver.call("cuStreamCreate", flags)))
    facts = OpenedGpu(
        index=device,
        uuid=request.device_uuid,
        sm_count=driver.device_attribute(device, "MULTIPROCESSOR_COUNT"),
        l2_bytes=driver.device_attribute(device, "L2_CACHE_SIZE"),
    )
    plans = PlanCache(LaunchDevice(stream, facts.sm_count))
    return WorkerContext(facts, stream, plans, request.helper_cubins)


def _find(device_uuid: str) -> int:
    found = [_uuid_text(device) for device in range(int(driver.call("cuDeviceGetCount")))]
    if device_uuid not in found:
        shown = ", ".join(found) or "none"
        raise InfraError(f"the worker sees no GPU {device_uuid}; it sees {shown}")
    return found.index(device_uuid)


def _uuid_text(device: int) -> str:
    raw = bytes(driver.call("cuDeviceGetUuid", device).bytes)
    return f"GPU-{uuid.UUID(bytes=raw)}"
