"""What a checked call finds in shared memory, local memory and registers that it has not written.

A GPU clears none of them: a kernel finds what the kernel before left, which is zeros or its own
values often enough for a missing initialization to stay unseen. Before each launch of a checked
call kopt's own kernels (leftovers.cu) fill them with the fill pattern of the call, which differs
from call to call.
"""

import struct
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.kernels.plan import Launch

from . import driver, driver_launch
from .arguments import ArgumentBlock
from .driver import Module, Stream
from .failure import ExecutionFailure, step

_THREADS = 256
_LOCAL_WORDS = 256
"""THREADS and LOCAL_WORDS of leftovers.cu."""


class Leftovers:
    """The kernels, loaded for one device."""

    def __init__(self, cubin: Path, stream: Stream, device: int, sm_count: int) -> None:
        """Load `cubin` (leftovers.cu) for the driver's device of this number.

        Raises:
            CudaError: It does not load.
        """
        size_bytes = driver.device_attribute(device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        module = Module(int(driver.call("cuModuleLoadData", cubin.read_bytes())))
        local = Launch(
            kernel="leftover_local", grid=(2 * sm_count, 1, 1), block=(1024, 1, 1), arguments=()
        )
        shared = Launch(
            kernel="leftover_shared",
            grid=(sm_count, 1, 1),
            block=(_THREADS, 1, 1),
            dynamic_smem_bytes=size_bytes,
            arguments=(),
        )
        self._launches = tuple(
            (
                driver.get_function(module, launch.kernel),
                driver_launch.launch_config(launch, stream),
                words,
            )
            for launch, words in ((local, _LOCAL_WORDS), (shared, size_bytes // 4))
        )
        function, _, _ = self._launches[-1]
        driver.set_function_attribute(function, "MAX_DYNAMIC_SHARED_SIZE_BYTES", size_bytes)

    def leave(self, byte: int) -> None:
        """Enqueue the kernels: every byte of what the next launch finds will be `byte`.

        Raises:
            ExecutionFailure: Work launched before failed.
            InfraError: The driver refuses kopt's own kernels.
        """
        word = struct.pack("<4B", *[byte] * 4)
        try:
            with step("launch"):
                for function, config, words in self._launches:
                    block = ArgumentBlock([word, struct.pack("<I", words)])
                    driver_launch.launch(function, config, block.address)
        except ExecutionFailure as failure:
            if failure.fault.sticky:
                raise
            raise InfraError(
                f"the GPU refuses kopt's own kernel: {failure.fault.detail}"
            ) from failure
