"""Checks of a made-up candidate as the stage would give them, for tests of what follows a check."""

from pathlib import Path
from typing import Any

from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import Build, CompileResult, KernelResources, Toolchain
from kopt.kernels.status import Status
from kopt.search.records.evaluation import EvaluationJob
from kopt.tools.check.request import CheckRequest

KERNEL = "silu_and_mul_b8xh14336"
SOURCE = """/* kopt: 1
family: vectorization
tune: {BLOCK: [128, 256], UNROLL: [1, 2]}
launch:
  - {kernel: k, grid: B, block: BLOCK, args: [input, out, B, H]}
*/
"""
KERNEL_FACTS = KernelResources(
    name="k",
    registers_per_thread=40,
    spill_store_bytes=8,
    spill_load_bytes=4,
    stack_bytes=0,
    static_smem_bytes=256,
    constant_bytes=0,
    barriers=1,
    max_threads_per_block=None,
    parameters=(),
    instructions=None,
)
TOOLCHAIN = Toolchain(compiler="nvcc", version="13.2", path="nvcc", origin="path")


def checked(request: CheckRequest, cubin: Path, **fields: Any) -> CheckResult:
    """Return a passed check whose one cubin is `cubin`, unless `fields` differ."""
    build = Build(
        arch=request.arch,
        defines=dict(request.case.tune or {}),
        workloads=(request.case.workload.name,),
        cubin_sha256="c" * 64,
        cubin_path=str(cubin),
        module_global_bytes=0,
        kernels=(KERNEL_FACTS,),
        toolchain=TOOLCHAIN,
        compile_s=0.1,
        cached=False,
    )
    compiled = CompileResult(status=Status.PASSED, kernel=KERNEL, candidate="0", builds=(build,))
    known: dict[str, Any] = {
        "status": Status.PASSED,
        "kernel": KERNEL,
        "candidate": "0",
        "device": "sim",
        "level": request.level,
        "compiled": compiled,
        "elapsed_s": 0.1,
    }
    return CheckResult(**(known | fields))


def job(candidate: int = 0, **fields: Any) -> EvaluationJob:
    """Return a job for a candidate of the run `run-1`, unless `fields` differ."""
    level = fields.get("level", "quick")
    known: dict[str, Any] = {
        "id": f"run-1/{candidate}/{level}",
        "kernel": KERNEL,
        "source": SOURCE,
        "source_name": "k.cu",
        "tune": {"BLOCK": 128, "UNROLL": 1},
        "level": level,
        "arch": "sm_100a",
    }
    return EvaluationJob(**(known | fields))
