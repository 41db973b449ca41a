"""A torch extension for `silu_and_mul`, and the script of the sandbox played without torch."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.tools.review import extension_child
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy

from .synthetic_check import case_of, right_outputs

SILU = """
#include <cuda_bf16.h>
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void silu(const __nv_bfloat16* in, __nv_bfloat16* out, int H) {
    const __nv_bfloat16* row = in + size_t(blockIdx.x) * 2 * H;
    for (int column = threadIdx.x; column < H; column += blockDim.x) {
        float gate = __bfloat162float(row[column]);
        float up = __bfloat162float(row[H + column]);
        out[size_t(blockIdx.x) * H + column] = __float2bfloat16(gate / (1.0f + expf(-gate)) * up);
    }
}

torch::Tensor forward(torch::Tensor input) {
    int H = input.size(1) / 2;
    auto out = torch::empty({input.size(0), H}, input.options());
    silu<<<input.size(0), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __nv_bfloat16*>(input.data_ptr()),
        reinterpret_cast<__nv_bfloat16*>(out.data_ptr()), H);
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""
KEEPS = SILU.replace(
    "torch::Tensor forward(torch::Tensor input) {",
    "torch::Tensor kept;\ntorch::Tensor forward(torch::Tensor input) {\n"
    "    if (kept.defined()) return kept;",
).replace("return out;", "return kept = out;")
"""Gives the first result again and again."""
WRONG = SILU.replace("column < H;", "column < H - 1;")
"""Leaves the last column as it was."""

Spoil = Callable[[Path], None]


def _nothing(folder: Path) -> None:
    del folder


@dataclass
class PlayedSandbox:
    """Stands in for `run_sandboxed`: answers as the script would, with the oracle's outputs."""

    problem: Problem
    spoil: Spoil = _nothing
    """Changes what a call has written to its folder."""
    build_failure: str | None = None
    returncode: int = 0
    jobs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    policies: list[SandboxPolicy] = field(default_factory=list[SandboxPolicy])

    def __call__(
        self, command: Sequence[str | Path], policy: SandboxPolicy, settings: Settings
    ) -> SandboxedRun:
        """Do what `job.json` says."""
        del settings
        folder = Path(command[-1])
        job = json.loads((folder / "job.json").read_text())
        self.jobs.append(job)
        self.policies.append(policy)
        failure = self.build_failure if job["step"] == "build" else None
        if job["step"] == "build":
            (folder / f"{extension_child.NAME}.so").touch()
        else:
            self._call(job, folder)
        (folder / "answer.json").write_text(json.dumps({"failure": failure}))
        if job["step"] == "call":
            self.spoil(folder)
        code = self.returncode if job["step"] == "call" else 0
        return SandboxedRun(code, b"", b"", b"said last", False, False, 0, "plain", 0.1)

    def _call(self, job: dict[str, Any], folder: Path) -> None:
        import numpy as np

        from kopt.kernels.dtypes import numpy_dtype

        inputs = {
            one["name"]: np.frombuffer(
                (folder / f"{one['name']}.in").read_bytes(), numpy_dtype(one["dtype"])
            ).reshape(one["shape"])
            for one in job["tensors"]
            if one["is_given"]
        }
        data = case_of(self.problem, inputs)
        arrays = inputs | right_outputs(self.problem, data, job["poison"])
        for name, array in arrays.items():
            (folder / f"{name}.out").write_bytes(array.tobytes())
