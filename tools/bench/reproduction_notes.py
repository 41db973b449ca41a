"""What is told beside a verified receipt: what differs from then, and refutes nothing."""

from collections.abc import Sequence

from kopt import __version__
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
from kopt.kernels.receipt import Receipt
from kopt.kernels.verify_result import CubinComparison, WorkloadReproduction

from .receipt_file import BASELINE_FILES, problem_files
from .reproduction_rule import MAX_BETWEEN_GPUS


def build_notes(
    receipt: Receipt, problem: Problem, found: CubinComparison | None
) -> tuple[str, ...]:
    """Return what differs in compiler, kopt and the problem's files."""
    notes: list[str] = []
    if found is not None and not found.same_toolchain:
        binary = "the same binary" if found.same else "another binary"
        notes.append(f"{found.toolchain} makes {binary}; receipt: {found.receipt_toolchain}")
    if receipt.kopt_version != __version__:
        notes.append(f"kopt {__version__}; receipt: {receipt.kopt_version}")
    now = problem_files(problem)
    notes += [
        f"{name} of the problem has changed since"
        for name in BASELINE_FILES
        if now.get(name) != receipt.problem_files.get(name)
    ]
    return tuple(notes)


def device_notes(now: DeviceFacts, then: DeviceFacts) -> tuple[str, ...]:
    """Return what differs in driver and GPU, of the same model."""
    notes: list[str] = []
    if now.driver_version != then.driver_version:
        notes.append(f"driver {now.driver_version}; receipt: {then.driver_version}")
    if now.uuid != then.uuid and now.name == then.name:
        notes.append(f"another {now.name} than the receipt's")
    return tuple(notes)


def workload_notes(entries: Sequence[WorkloadReproduction]) -> tuple[str, ...]:
    """Return other versions of the library, and what holds by the allowance between GPUs alone."""
    libraries = [
        f"{entry.workload}: {entry.library}; receipt: {entry.receipt_library}"
        for entry in entries
        if entry.verdict is not None and entry.library != entry.receipt_library
    ]
    allowed = [
        f"{entry.workload}: {entry.speedup:.3f}x is in the accepted range only because another GPU"
        f" may differ by a quarter of the gain, at most {MAX_BETWEEN_GPUS:.0%}"
        for entry in entries
        if entry.only_on_another_gpu
    ]
    return (*libraries, *allowed)
