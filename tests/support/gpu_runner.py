"""Cases of the simulator on a GPU: compiled by nvcc, run by the device."""

import subprocess
from dataclasses import dataclass, replace

from kopt.config.files import content_hash
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.devices.device import ExecutionRequest
from kopt.tools.gpu.device import CudaDevice

from .sim_run import POISON, Array, SimCase


@dataclass(frozen=True)
class GpuRunner:
    """Compiles cases for the GPU and runs them."""

    device: CudaDevice
    settings: Settings

    def out(self, case: SimCase) -> Array:
        """Return what a case leaves in `out`."""
        folder = self.settings.cubin_cache / "ptx-rows"  # workers may read cubins there alone
        folder.mkdir(parents=True, exist_ok=True)
        name = content_hash([case.source])[:16]
        (folder / f"{name}.cu").write_text(case.source, "utf-8")
        nvcc = find_toolchain(self.settings).nvcc
        arch = self.device.facts.arch
        words = [str(nvcc), f"-arch={arch}", "-cubin", "-o", f"{name}.cubin", f"{name}.cu"]
        subprocess.run(words, cwd=folder, check=True)
        program = replace(case.program, cubin_path=folder / f"{name}.cubin", arch=arch)
        outcome = self.device.execute(ExecutionRequest(program, dict(case.inputs), POISON))
        assert outcome.status is Status.PASSED, outcome.diagnostics
        return outcome.outputs["out"]
