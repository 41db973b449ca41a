"""The interface between the check stage and what runs a candidate: the simulator or a GPU worker.

A device runs one launch plan over one set of inputs and gives the outputs back, with everything
that went wrong on the way. It never sees expected outputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from kopt.config.device_names import is_simulated
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.candidate import Candidate
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Program:
    """A candidate resolved for one workload of one problem, ready to be executed."""

    candidate: Candidate
    problem: Problem
    plan: LaunchPlan
    cubin_path: Path | None = None
    """What a GPU loads; None before the compile stage has made it, and where none is needed."""
    arch: str = DEFAULT_ARCH
    """What it is compiled for; the simulator takes the branches of the source that nvcc takes."""


@dataclass(frozen=True)
class ExecutionRequest:
    """One execution of a program."""

    program: Program
    inputs: Arrays
    """Every `in` and `inout` tensor, in storage shape and dtype."""
    poison: int
    """Byte (0 to 255) that fills outputs, scratch, guards and shared memory beforehand."""
    schedule_seed: int = 0
    """Order in which the simulator runs blocks, warps and threads; 0 is the natural order."""
    timeout_s: float = 30.0
    late_inputs: bool = True
    """A GPU writes the inputs of a dependent launch while it may already run, so that a missing
    wait shows; False: they are there from the start."""
    finds_leftovers: bool = False
    """On a GPU shared memory, local memory and registers are as the call before left them; False:
    they hold `poison`."""


@dataclass(frozen=True)
class ExecutionOutcome:
    """The result of one execution."""

    status: Status
    """PASSED means that it ran to the end without a fault, not that the values are right."""
    diagnostics: tuple[Diagnostic, ...] = ()
    outputs: Arrays = field(default_factory=dict[str, npt.NDArray[Any]])
    """Every `out` and `inout` tensor, in storage shape and dtype; empty unless PASSED."""
    counters: ExecutionCounters | None = None
    sandbox: str | None = None
    cpu_bodies: tuple[str, ...] = ()
    """Names of the kopt wrappers whose CPU body stood in for the device's instructions."""
    access_lines: Mapping[int, bool] = field(default_factory=dict[int, bool])
    """Lines of the candidate that load or store, and whether they did; sim only."""
    elapsed_s: float = 0.0


class Device(Protocol):
    """Something that can execute candidates."""

    @property
    def name(self) -> str:
        """`sim`, `sim:H200` or `cuda:0`."""
        ...

    @property
    def gpu(self) -> GpuSpec | None:
        """The limits of the GPU behind it; None for a simulator of any GPU."""
        ...

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Build what execution needs, ahead of time; None if that went well.

        Safe to call from another thread while nvcc compiles the same source. The result is kept,
        so that a later `execute` of the same program does not build again.
        """
        ...

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Run the plan once; a candidate's failure comes back as a status, never raised."""
        ...


def is_simulator(device: Device) -> bool:
    """Return whether `device` is a simulator, also where it stands for one GPU."""
    return device.gpu is None or is_simulated(device.name)


class SimulatedDevice(Device, Protocol):
    """A simulator, here or on another machine: it can stand for any GPU."""

    def standing_for(self, gpu: GpuSpec) -> "SimulatedDevice":
        """Return the same simulator for the limits of `gpu`."""
        ...


@runtime_checkable
class ManyEvaluators(Protocol):
    """A device that is several of one kind: it executes as many requests at once."""

    @property
    def evaluators(self) -> int:
        """How many there are now."""
        ...
