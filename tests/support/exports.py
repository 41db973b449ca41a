"""Subjects to export: samples, and the tiny problem's kernel with headers of a test's own."""

from pathlib import Path

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.selftest.sample import SAMPLES, read_sample


def exported_sample(name: str, arch: str = "sm_90a") -> ExportedKernel:
    """Return the sample called `name`, for `arch`."""
    sample = read_sample(SAMPLES / f"{name}.cu")
    problem, _ = find_kernel(sample.kernel)
    candidate = Candidate(sample.path.read_text("utf-8"), sample.path.name)
    return _exported(problem, candidate, gpu_for_arch(arch).arch, f"the sample {name}")


def exported_reference(kernel: str, arch: str = "sm_90a") -> ExportedKernel:
    """Return the reference kernel of a problem."""
    problem, _ = find_kernel(kernel)
    source = (problem.folder / "reference.cu").read_text("utf-8")
    return _exported(problem, Candidate(source, "reference.cu"), arch, "the reference kernel")


def exported_tiny(problem: Problem, source: str) -> ExportedKernel:
    """Return a kernel of the tiny problem."""
    return _exported(problem, Candidate(source, "tiny.cu"), "sm_90a", "a test")


def _exported(problem: Problem, candidate: Candidate, arch: str, origin: str) -> ExportedKernel:
    return ExportedKernel(problem, problem.workloads[0], candidate, arch=arch, origin=origin)


def write_files(files: dict[str, str | bytes], folder: Path) -> Path:
    """Write the files of an export to `folder` and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
