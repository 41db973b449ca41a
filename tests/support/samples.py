"""Whole candidates under tests/samples: what a sample says about itself, and how it is checked.

Behind its header comment a sample has one line of facts and may mark guilty lines:

    // sample: kernel=fused_add_rmsnorm_b8xh4096 status=data_race level=quick says="same block"
    total += partial[threadIdx.x + 1];  // <- here

`says` is a word or phrase that some finding must contain, `timeout_s` shortens the limit of one
execution. Some diagnostic must name a marked line, or one of them where there are several.
"""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel, CheckResult
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.devices.device import Device, ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.sim.device import SimDevice

_FACTS = re.compile(r"^// sample: (?P<facts>.+)$", re.MULTILINE)
_MARKED = re.compile(r"(?://|#) <- here$")
_KNOWN = {"kernel", "status", "level", "says", "timeout_s"}


@dataclass(frozen=True)
class Sample:
    """One file and what must come out of its check."""

    path: Path
    kernel: str
    status: Status
    level: CheckLevel
    says: str | None
    timeout_s: float | None
    marked_lines: frozenset[int]


def read_samples(folder: Path) -> list[Sample]:
    """Return every `*.cu` below `folder`, in the order of their names."""
    return [read_sample(path) for path in sorted(folder.glob("*.cu"))]


def read_sample(path: Path) -> Sample:
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
    return Sample(
        path=path,
        kernel=facts["kernel"],
        status=Status(facts["status"]),
        level=cast(CheckLevel, facts["level"]),
        says=facts.get("says"),
        timeout_s=float(facts["timeout_s"]) if "timeout_s" in facts else None,
        marked_lines=frozenset(marked),
    )


@dataclass(frozen=True)
class _Hurried:
    """A device whose executions end after `timeout_s`; implements `tools.device.Device`."""

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
    sample: Sample, settings: Settings, device: Device | None = None, arch: str = DEFAULT_ARCH
) -> CheckResult:
    """Check `sample` at its own level, on the simulator if no device is given."""
    problem, workload = find_kernel(sample.kernel, sample.path.parent / "problems")
    candidate = read_candidate(sample.path)
    request = CheckRequest(Case(problem, workload, candidate), sample.level, arch=arch)
    if device is None:
        device = SimDevice(settings)
    if sample.timeout_s is not None:
        device = _Hurried(device, sample.timeout_s)
    return check_candidate(request, device, settings)


def describe(result: CheckResult) -> str:
    """Return the findings of `result` as lines of text, for the message of a failing test."""
    found = [f"status {result.status}"]
    found += [f"line {d.line}: {d.message} [{d.hint}]" for d in result.diagnostics]
    if result.mismatch is not None:
        found.append(result.mismatch.model_dump_json())
    return "\n".join(found)
