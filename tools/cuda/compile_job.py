"""The input and the result of one compile, the same for nvcc and NVRTC."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from kopt.config.files import ensure_folder, sweep_abandoned
from kopt.config.settings import Settings
from kopt.tools.sandbox.policy import SandboxLevel

from .toolchain import FoundToolchain

Compiler = Literal["nvcc", "nvrtc"]


@dataclass(frozen=True)
class CompileJob:
    """A source for one architecture with one set of defines."""

    source: str
    """The candidate, byte for byte."""
    plan_assertions: str
    """C++ that ties the kernels' parameters to the launch plan (kernels/parameter_types.py); it
    follows the candidate, under a file name of its own."""
    arch: str
    """sm_100a and the like."""
    defines: Mapping[str, int] = field(default_factory=dict[str, int])
    fast_math: bool = True
    max_registers: int | None = None

    @property
    def text(self) -> str:
        """What the compiler reads: line numbers of the candidate are its own."""
        return self.source + self.plan_assertions

    def key(self, *context: str) -> str:
        """Return the content address of this job's result, 64 hex digits.

        Args:
            context: What else decides about the result: compiler, its version, header digests.
        """
        parts = [
            self.text,
            self.arch,
            sorted(self.defines.items()),
            self.fast_math,
            self.max_registers,
            context,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class CompileContext:
    """The compiler and the settings that all compiles of one request share."""

    compiler: Compiler
    toolchain: FoundToolchain
    settings: Settings
    wall_s: float = 60.0
    """Time limit of one compiler process."""

    def work_folder(self) -> Path:
        """Return the folder of compiles in progress, made on first use.

        Raises:
            SetupError: KOPT_HOME cannot be written.
        """
        folder = ensure_folder(self.settings.cubin_cache.absolute() / "work")
        _sweep_once(folder)
        return folder


@lru_cache
def _sweep_once(folder: Path) -> None:
    for pattern in ("nvcc-*", "nvrtc-*"):
        sweep_abandoned(folder, pattern)


@dataclass(frozen=True)
class CompilerRun:
    """The result of one compiler process."""

    returncode: int
    log: str
    """The compiler's whole output, ptxas included."""
    cubin: bytes | None
    """The machine code; None if the compile failed."""
    timed_out: bool
    level: SandboxLevel
    elapsed_s: float
    ptx: str | None = None
    """The input of ptxas, only where it was kept to explain its errors."""
