"""Samples: candidates of which is known what a check must find, read from `samples/*.cu`.

Behind its header comment a sample has one line of facts and may mark guilty lines:

    // sample: kernel=fused_add_rmsnorm_b8xh4096 status=data_race level=quick says="same block"
    total += partial[threadIdx.x + 1];  // <- here

`says` is a word or phrase that some finding must contain, `timeout_s` shortens the limit of one
execution, `arch` is the only target that knows its instructions. Some diagnostic must name a marked
line, or one of them where there are several.
"""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel, CheckResult
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_job import Compiler
from kopt.tools.devices.device import (
    Device,
    ExecutionOutcome,
    ExecutionRequest,
    Program,
    is_simulator,
)

SAMPLES = Path(__file__).parent / "samples"
"""The samples of this package, and `problems/` with the problems that only they have."""

_FACTS = re.compile(r"^// sample: (?P<facts>.+)$", re.MULTILINE)
_MARKED = re.compile(r"(?://|#) <- here$")
_GPU_LIMIT_S = 10.0
"""Time limit of an execution on a GPU, where every sample that ends does so within milliseconds."""
_KNOWN = {"kernel", "status", "level", "says", "timeout_s", "arch"}


@dataclass(frozen=True)
class ShippedSample:
    """One file and what must come out of its check on the simulator."""

    path: Path
    kernel: str
    status: Status
    level: CheckLevel
    says: str | None
    timeout_s: float | None
    arch: str | None
    """The only target that knows its instructions; None: any does."""
    marked_lines: frozenset[int]

    def arch_instead_of(self, arch: str) -> str:
        """Return what it is compiled for where other samples are compiled for `arch`."""
        return self.arch or arch

    @property
    def name(self) -> str:
        """`evil_missing_barrier`."""
        return self.path.stem


def read_samples(folder: Path = SAMPLES) -> list[ShippedSample]:
    """Return every `*.cu` in `folder`, in the order of their names.

    Raises:
        ValueError: One does not say what must come out of its check.
    """
    return [read_sample(path) for path in sorted(folder.glob("*.cu"))]


def read_sample(path: Path) -> ShippedSample:
    """Return the sample in `path`.

    Raises:
        ValueError: It does not have exactly one line of facts, or a fact is not known.
    """
    source = path.read_text("utf-8")
    lines = _FACTS.findall(source)
    if len(lines) != 1:
        raise ValueError(f"{path.name} needs one line `// sample: ...`; it has {len(lines)}")
    facts = dict(word.split("=", 1) for word in shlex.split(lines[0]))
    if not {"kernel", "status", "level"} <= set(facts) <= _KNOWN:
        raise ValueError(f"{path.name} has the facts {sorted(facts)}; known: {sorted(_KNOWN)}")
    marked = (n for n, text in enumerate(source.splitlines(), 1) if _MARKED.search(text))
    return ShippedSample(
        path=path,
        kernel=facts["kernel"],
        status=Status(facts["status"]),
        level=cast(CheckLevel, facts["level"]),
        says=facts.get("says"),
        timeout_s=float(facts["timeout_s"]) if "timeout_s" in facts else None,
        arch=facts.get("arch"),
        marked_lines=frozenset(marked),
    )


@dataclass(frozen=True)
class _Hurried:
    """A device whose executions end after `timeout_s`; implements `tools.devices.device.Device`."""

    device: Device
    timeout_s: float

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def gpu(self) -> GpuSpec | None:
        return self.device.gpu

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        return self.device.prepare(program)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        return self.device.execute(replace(request, timeout_s=self.timeout_s))


def check_sample(
    sample: ShippedSample,
    device: Device,
    arch: str,
    settings: Settings,
    compiler: Compiler = "nvcc",
) -> CheckResult:
    """Return what a check of `sample` finds: at its own level, on a GPU at level full.

    Level full has the simulator look for what a GPU does not show.

    Raises:
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the sample.
    """
    problem, workload = find_kernel(sample.kernel, sample.path.parent / "problems")
    case = Case(problem, workload, read_candidate(sample.path))
    limit_s = sample.timeout_s or (None if is_simulator(device) else _GPU_LIMIT_S)
    if limit_s is not None:
        device = _Hurried(device, limit_s)
    level = sample.level if is_simulator(device) else "full"
    request = CheckRequest(case, level, compiler=compiler, arch=sample.arch_instead_of(arch))
    return check_candidate(request, device, settings)
