"""Compiles kopt's own kernels for the worker (tools/gpu/worker/*.cu), which has no compiler.

They go through the cache of candidates, so that each is compiled once for a GPU's architecture.
"""

from importlib.resources import files
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_job import CompileContext, CompileJob
from kopt.tools.cuda.compile_unit import compile_unit
from kopt.tools.cuda.toolchain import find_toolchain


def helper_cubins(arch: str, settings: Settings) -> dict[str, str]:
    """Return the path of each helper's cubin by the name of its source, `late_producer` and so on.

    Raises:
        SetupError: No compiler, no sandbox, or a cache folder that cannot be written.
        InfraError: A helper does not compile for `arch`.
    """
    context = CompileContext("nvcc", find_toolchain(settings), settings)
    folder = files("kopt.tools.gpu.worker")
    sources = {
        Path(entry.name).stem: entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".cu")
    }
    return {name: str(_cubin(name, source, arch, context)) for name, source in sources.items()}


def _cubin(name: str, source: str, arch: str, context: CompileContext) -> Path:
    outcome = compile_unit(CompileJob(source, plan_assertions="", arch=arch), context)
    if outcome.unit.status is not Status.PASSED or outcome.entry is None:
        said = "; ".join(diagnostic.message for diagnostic in outcome.unit.diagnostics)
        raise InfraError(f"{name}.cu does not compile for {arch}: {said or outcome.unit.status}")
    return outcome.entry.cubin_path
