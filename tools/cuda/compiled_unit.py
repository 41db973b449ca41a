"""The record of one compile that the cache keeps: every fact of a cubin, or why there is none."""

from kopt.kernels.compile_result import KernelResources, Toolchain
from kopt.kernels.record import Diagnostic, Record
from kopt.kernels.status import Status
from kopt.tools.sandbox.policy import SandboxLevel


class CompiledUnit(Record):
    """One source, one architecture, one set of defines, one compiler."""

    status: Status
    """passed, plan_error, compile_error, refused or timeout."""
    diagnostics: tuple[Diagnostic, ...] = ()
    flagged: tuple[str, ...] = ()
    cubin_sha256: str | None
    """None if nothing was built."""
    module_global_bytes: int = 0
    kernels: tuple[KernelResources, ...] = ()
    producer_waits: tuple[str, ...] | None = None
    """Kernels that wait for the producer of a programmatic dependent launch; None if unknown."""
    trapping: tuple[str, ...] = ()
    """Kernels that contain a trap: refused unless they are launched cooperatively."""
    toolchain: Toolchain
    compile_s: float
    sandbox: SandboxLevel
    repeatable: bool = True
    """False for a time-out or a killed compiler: another try may end otherwise."""
