"""A problem with libraries and a reference kernel, and a compiler that compiles nothing."""

from dataclasses import dataclass, field
from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.compile_result import Build, CompileResult, Toolchain
from kopt.kernels.problem import Baseline, Problem
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest

from .synthetic_check import synthetic_problem

SOURCE = """/* kopt: 1
family: vectorization
tune: {LANES: [32, 64]}
launch:
  - {kernel: k, grid: B, block: LANES,
     args: [x, kept, codes, block_scale, y_bf16, y_fp8, total]}
*/
"""
CANDIDATE = Candidate(SOURCE + "// a candidate\n", "mine.cu")
TOOLCHAIN = Toolchain(compiler="nvcc", version="13.2.86", path="/nvcc", origin="pip")

ROW_MAJOR = Baseline(name="lib", entry="entry", layout="row_major", pdl=(False, True))
OTHER = Baseline(name="other", entry="other", layout="row_major", pdl=(False,))
TILED = Baseline(name="tiled", entry="tiled", layout="sf_128x4", pdl=(False,))


def bench_problem(
    folder: Path,
    baselines: tuple[Baseline, ...] = (),
    shapes: tuple[tuple[int, int], ...] = ((8, 64),),
) -> Problem:
    """Return the synthetic problem with library baselines and a reference.cu."""
    problem = synthetic_problem(folder, shapes)
    (folder / "reference.cu").write_text(SOURCE, encoding="utf-8")
    return problem.model_copy(update={"baselines": baselines})


@dataclass
class FakeCompiler:
    """Gives every candidate a cubin named after its file."""

    status: dict[str, Status] = field(default_factory=dict[str, Status])
    """By file name; passed where it says nothing."""
    flagged: tuple[str, ...] = ()
    """Of every candidate."""

    def __call__(self, request: CompileRequest, settings: Settings) -> CompileResult:
        """Stand in for `compile_candidate`."""
        del settings
        status = self.status.get(request.case.candidate.name, Status.PASSED)
        build = Build(
            arch=request.archs[0],
            defines=dict(request.case.tune or {"LANES": 32}),
            workloads=tuple(workload.name for workload in request.case.problem.workloads),
            cubin_sha256=request.case.candidate.id,
            cubin_path=f"/cubins/{request.case.candidate.name}",
            module_global_bytes=0,
            kernels=(),
            toolchain=TOOLCHAIN,
            compile_s=0.1,
            cached=True,
        )
        passed = status is Status.PASSED
        return CompileResult(
            status=status,
            kernel=request.case.problem.kernel_id(request.case.workload),
            candidate=request.case.candidate.id,
            builds=(build,) if passed else (),
            flagged=self.flagged,
            diagnostics=() if passed else (Diagnostic(message="expected a ;", line=3),),
        )
