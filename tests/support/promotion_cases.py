"""Promotions without a GPU: an opener of scripted devices, a compiler with files, a sanitizer."""

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import SANITIZER_TOOLS, SanitizerResult, SanitizerRun
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.bench.promotion import PromotionRequest
from kopt.tools.bench.winner_files import OnExisting
from kopt.tools.cuda.compile_stage import CompileRequest
from kopt.tools.devices.timer import TimingDevice, TimingFailure, TimingRequest, TimingSession
from kopt.tools.sanitize.stage import SanitizeRequest

from .bench_cases import FakeCompiler
from .scripted_timer import FACTS, Script, ScriptedTimer

CandidateTime = Callable[[int, str], float]
"""By process, counted from 1, and workload: the candidate's time in microseconds."""


def promotion_of(
    problem: Problem, candidate: Candidate, on_existing: OnExisting = "keep_better"
) -> PromotionRequest:
    """Return the request to promote `candidate` at its whole domain."""
    case = Case(problem, problem.workloads[0], candidate)
    return PromotionRequest(case, on_existing=on_existing)


@dataclass
class FileCompiler(FakeCompiler):
    """Gives every candidate a cubin that is a file, of the same bytes wherever it lies."""

    version: str = "13.2.86"
    flavor: bytes = b""
    """Other flavors are other binaries of the same source."""

    def __call__(self, request: CompileRequest, settings: Settings) -> CompileResult:
        """Stand in for `compile_candidate`."""
        compiled = super().__call__(request, settings)
        data = request.case.candidate.source.encode() + request.archs[0].encode() + self.flavor
        digest = hashlib.sha256(data).hexdigest()
        path = settings.home / "cubins" / digest / request.case.candidate.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        builds = tuple(
            build.model_copy(
                update={
                    "cubin_sha256": digest,
                    "cubin_path": str(path),
                    "toolchain": build.toolchain.model_copy(update={"version": self.version}),
                }
            )
            for build in compiled.builds
        )
        return compiled.model_copy(update={"builds": builds})


@dataclass
class OneProcess(ScriptedTimer):
    """A scripted device that knows which opening it is."""

    process: int = 0
    candidate_us: CandidateTime = lambda process, workload: 4.0
    gpu_facts: DeviceFacts = FACTS

    @property
    def facts(self) -> DeviceFacts:
        """The GPU of this opening."""
        return self.gpu_facts

    @contextmanager
    def open_timing(self, request: TimingRequest) -> Generator[TimingSession | TimingFailure]:
        """Give a session with the time of its workload."""
        self.script.candidate_us = self.candidate_us(self.process, request.workload.name)
        with super().open_timing(request) as session:
            yield session


@dataclass
class Opener:
    """Opens a fresh scripted device each time; the first is the one of the check."""

    script: Script = field(default_factory=Script)
    candidate_us: CandidateTime = lambda process, workload: 4.0
    facts: Callable[[int], DeviceFacts] = lambda process: FACTS
    before: Callable[[int], None] = lambda process: None
    """Called at each opening."""
    opened: list[OneProcess] = field(default_factory=list[OneProcess])
    closed: int = 0

    @contextmanager
    def __call__(self) -> Generator[TimingDevice]:
        """Open."""
        process = len(self.opened)
        self.before(process)
        device = OneProcess(
            script=replace(self.script, seed=self.script.seed + 1000 * process),
            process=process,
            candidate_us=self.candidate_us,
            gpu_facts=self.facts(process),
        )
        self.opened.append(device)
        try:
            yield device
        finally:
            self.closed += 1

    @property
    def sessions(self) -> list[TimingRequest]:
        """All timing sessions."""
        return [session for device in self.opened for session in device.sessions]


@dataclass
class ScriptedSanitizer:
    """Says the same of every candidate."""

    status: Status = Status.PASSED
    unavailable: str | None = None
    """Why no tool judges."""
    workloads: list[str] = field(default_factory=list[str])

    def __call__(
        self, request: SanitizeRequest, device: TimingDevice, settings: Settings
    ) -> SanitizerResult:
        """Stand in for `sanitize`."""
        self.workloads.append(request.case.workload.name)
        failed = self.status is not Status.PASSED
        runs = tuple(
            SanitizerRun(
                tool=tool,
                outcome="unavailable" if self.unavailable else "findings" if failed else "passed",
                status=self.status,
                findings=(Diagnostic(message="racecheck: scripted hazard", line=9),)
                if failed
                else (),
                reason=self.unavailable,
                log_path=str(Path(settings.home) / "reports" / f"{tool}-log.txt"),
                elapsed_s=0.1,
            )
            for tool in SANITIZER_TOOLS
        )
        return SanitizerResult(
            status=self.status,
            kernel=request.case.problem.kernel_id(request.case.workload),
            candidate=request.case.candidate.id,
            device=device.name,
            gpu=device.facts,
            runs=runs,
            elapsed_s=0.4,
        )
