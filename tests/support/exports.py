"""Subjects to export: samples, and the tiny problem's kernel with headers of a test's own."""

from pathlib import Path

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.tools.export.subject import ExportSubject
from kopt.tools.selftest.sample import SAMPLES, read_sample


def sample_subject(name: str, arch: str = "sm_90a") -> ExportSubject:
    """Return the sample called `name`, for `arch`."""
    sample = read_sample(SAMPLES / f"{name}.cu")
    problem, _ = find_kernel(sample.kernel)
    candidate = Candidate(sample.path.read_text("utf-8"), sample.path.name)
    return _subject(problem, candidate, gpu_for_arch(arch).arch, f"the sample {name}")


def reference_subject(kernel: str, arch: str = "sm_90a") -> ExportSubject:
    """Return the reference kernel of a problem."""
    problem, _ = find_kernel(kernel)
    source = (problem.folder / "reference.cu").read_text("utf-8")
    return _subject(problem, Candidate(source, "reference.cu"), arch, "the reference kernel")


def tiny_subject(problem: Problem, source: str) -> ExportSubject:
    """Return a kernel of the tiny problem."""
    return _subject(problem, Candidate(source, "tiny.cu"), "sm_90a", "a test")


def _subject(problem: Problem, candidate: Candidate, arch: str, origin: str) -> ExportSubject:
    return ExportSubject(problem, problem.workloads[0], candidate, arch=arch, origin=origin)


def write_files(files: dict[str, str | bytes], folder: Path) -> Path:
    """Write the files of an export to `folder` and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
