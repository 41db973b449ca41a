"""A GPU in name only, for tests of what is wired around it: opening, architecture, messages."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.device_facts import DeviceFacts
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import LibraryRun, TimingRequest

from .bench_results import H100


@dataclass
class NamedGpu:
    """Implements `TimingDevice` as far as nobody asks it to do anything."""

    name: str = "cuda:0"
    facts: DeviceFacts = field(default_factory=lambda: H100)
    gpu: GpuSpec = field(default_factory=lambda: load_gpus()["H100"])

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Fail the test."""
        raise AssertionError(program)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Fail the test."""
        raise AssertionError(request)

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Fail the test."""
        raise AssertionError(run)

    def open_timing(self, request: TimingRequest) -> Any:
        """Fail the test."""
        raise AssertionError(request)

    def copy_ceiling_gb_s(self) -> float:
        """Fail the test."""
        raise AssertionError


def opener(device: NamedGpu, said: str | None = None) -> Callable[..., Any]:
    """Return what stands in for `open_device`: every name but sim opens `device`.

    Args:
        device: What is opened.
        said: Told first, as a queue for the GPU would.
    """

    @contextmanager
    def open_device(
        name: str,
        settings: Settings,
        on_wait: Callable[[str], None] | None = None,
        *,
        has_spare: bool,
        is_fresh: bool = False,
    ) -> Generator[NamedGpu]:
        del name, settings, has_spare, is_fresh
        if said is not None and on_wait is not None:
            on_wait(said)
        yield device

    return open_device
