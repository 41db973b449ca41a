"""compute-sanitizer over one candidate: four tools, each in a run of its own over fresh buffers.

The runs go on beside one another: most of each is the start of a process, and none is timed. They
find what values do not show: accesses outside a tensor that hit nothing, reads of memory that
nobody wrote, races on shared memory, barriers that some threads miss. That takes seconds, so that
it is done on request and before a promotion, not in every check. docs/profile.md says what each
tool sees and what it does not.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.kernels.case import Case
from kopt.kernels.check_result import (
    SANITIZER_TOOLS,
    SanitizerResult,
    SanitizerRun,
    SanitizerTool,
)
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.examination import ExaminesItself
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.gpu.ticket_lock import TicketLock
from kopt.tools.profiling.launchable import Launchable, make_launchable
from kopt.tools.profiling.nvidia_tools import HOW_TO_GET_SANITIZER, NvidiaTool, find_sanitizer
from kopt.tools.profiling.one_shot import (
    Examination,
    Examined,
    OneShot,
    examine,
    examined_call,
    report_folder,
)

from .findings import JudgedRecords, judge_records, read_log

LIMIT_S = 120.0
"""Wall time a tool, which they share out; instrumented code is 10 to 100 times slower."""
PRINTED = 200
"""Records that a tool prints; it counts the rest."""
PADDING_BYTES = 4096
"""Unmapped space behind each allocation that memcheck is asked for."""
_LOG = "log.txt"


@dataclass(frozen=True)
class SanitizeRequest:
    """A candidate to examine, and the tools."""

    case: Case
    tools: tuple[SanitizerTool, ...] = SANITIZER_TOOLS
    limit_s: float = LIMIT_S
    progress: Callable[[str], None] = ignore
    """Called with a short line before the tools."""


def sanitize(request: SanitizeRequest, device: TimingDevice, settings: Settings) -> SanitizerResult:
    """Return what the tools found. A machine without them gives runs that are `unavailable`.

    Args:
        request: The candidate; whether it computes the right values is not looked at.
        device: The GPU; only its name, its facts and its limits are used, none of its workers.
        settings: Where compute-sanitizer is, and where its logs are kept.

    Raises:
        ToolError: The candidate has no plan for this GPU.
        SetupError: No compiler or no sandbox, or KOPT_HOME cannot be written.
        InfraError: The machine failed under the work; it may be tried again.
    """
    started = time.monotonic()
    case = request.case
    compiled = compile_candidate(
        CompileRequest(case=request.case, archs=(device.facts.arch,)),
        settings,
    )
    base = SanitizerResult(
        status=compiled.status,
        kernel=case.kernel_id,
        candidate=case.candidate.id,
        tune=dict(case.tune),
        device=device.name,
        gpu=device.facts,
        diagnostics=compiled.diagnostics,
        elapsed_s=0.0,
    )
    program: str | None = None
    runs: tuple[SanitizerRun, ...] = ()
    if compiled.status is Status.PASSED:
        launchable = make_launchable(case, compiled, device.gpu)
        program, runs = _runs(request, launchable, device, settings)
    found = next((run.status for run in runs if run.status is not Status.PASSED), None)
    return base.model_copy(
        update={
            "status": found or compiled.status,
            "sanitizer": program,
            "runs": runs,
            "elapsed_s": time.monotonic() - started,
        }
    )


def _runs(
    request: SanitizeRequest,
    launchable: Launchable,
    device: TimingDevice,
    settings: Settings,
) -> tuple[str | None, tuple[SanitizerRun, ...]]:
    """Return the name of the program and what each tool of it says."""
    call = examined_call(launchable, launchable.lined_cubin(settings) or launchable.cubin)
    folder = report_folder(launchable, settings)
    request.progress(f"compute-sanitizer: {', '.join(request.tools)}")
    if isinstance(device, ExaminesItself):
        reading = device.sanitize(call, request.tools, request.limit_s)
        return reading.program, reading.kept_in(folder)
    examination = ToolRuns(request.tools, request.limit_s, folder)
    return sanitizer_runs(OneShot(call, device.facts.uuid), examination, settings)


@dataclass(frozen=True)
class ToolRuns:
    """The tools to run, and where what they say is kept."""

    tools: tuple[SanitizerTool, ...]
    limit_s: float
    """Wall time a tool, which they share out."""
    keep_in: Path


def sanitizer_runs(
    shot: OneShot, asked: ToolRuns, settings: Settings
) -> tuple[str | None, tuple[SanitizerRun, ...]]:
    """Return the name of this machine's compute-sanitizer and what its tools find.

    Raises:
        SetupError: No sandbox, or the folder cannot be written.
        InfraError: The sandbox was killed from outside.
    """
    program = find_sanitizer(settings)
    if program is None:
        reason = f"no whole compute-sanitizer found: {HOW_TO_GET_SANITIZER}"
        return None, tuple(_unavailable(tool, reason) for tool in asked.tools)
    limit_s = asked.limit_s * len(asked.tools)

    def examined_by(tool: SanitizerTool) -> SanitizerRun:
        examination = Examination(
            tool=program,
            arguments=partial(sanitizer_arguments, tool, program),
            outputs=(_LOG,),
            keep_in=asked.keep_in,
            prefix=f"{tool}-",
            wall_s=limit_s,
        )
        return _judge(tool, examine(shot, examination, settings), limit_s)

    with (
        TicketLock(shot.device_uuid).hold(),
        thread_pool(len(asked.tools), "sanitizer") as pool,
    ):
        return program.name, tuple(pool.map(examined_by, asked.tools))


def sanitizer_arguments(tool: SanitizerTool, program: NvidiaTool, scratch: Path) -> list[str]:
    """Return the options of one run; newer ones only where the program has them."""
    arguments = [
        "--tool",
        tool,
        "--log-file",
        str(scratch / _LOG),
        "--target-processes",
        "application-only",
        "--print-limit",
        str(PRINTED),
        "--show-backtrace",
        "device",  # the host's frames are kopt's own
    ]
    if tool == "memcheck":
        arguments += ["--report-api-errors", "no"]
        if "padding" in program.options:
            # Allocations may touch, and then the first byte behind one is another's first.
            arguments += ["--padding", str(PADDING_BYTES)]
    if tool == "initcheck" and "initcheck-address-space" in program.options:
        arguments += ["--initcheck-address-space", "all"]
    return arguments


def _judge(tool: SanitizerTool, examined: Examined, limit_s: float) -> SanitizerRun:
    """Return what one run says.

    `passed` needs evidence: the tool's own summary of nothing found, and the child's word that the
    plan ran to its end. A tool that never saw a launch reports no errors either.
    """
    log_path = examined.files.get(_LOG, examined.printed_path)
    log = read_log(log_path.read_text("utf-8", errors="replace"))
    answer = examined.answer
    found = judge_records(tool, log.records, answer.buffers if answer else ())
    run = SanitizerRun(
        tool=tool,
        outcome="passed",
        status=found.status,
        findings=found.diagnostics,
        log_path=str(log_path),
        sandbox=examined.run.level,
        elapsed_s=examined.run.elapsed_s,
    )
    if found.status is not Status.PASSED:
        return run.model_copy(update={"outcome": "findings"})
    if examined.run.timed_out:
        slow = f"it did not end within {limit_s:g} s; a smaller workload may"
        return run.model_copy(update={"outcome": "timeout", "reason": slow})
    reason = _why_not_judged(examined, found, log.reported)
    if reason is not None:
        return run.model_copy(update={"outcome": "unavailable", "reason": reason})
    return run


def _why_not_judged(examined: Examined, found: JudgedRecords, reported: int | None) -> str | None:
    answer = examined.answer
    last = (examined.printed.strip().splitlines() or ["no output"])[-1][:200]
    if found.trouble is not None:
        return f"compute-sanitizer: {found.trouble}"
    if answer is not None and answer.fault is not None:
        return f"the plan ended with {answer.fault.code} ({answer.fault.message}), unexplained"
    if reported is None:
        return f"compute-sanitizer ended without a summary: {last}"
    if answer is None or not answer.ended:
        return f"the plan was not run to its end: {last}"
    if reported > found.harmless:
        return f"compute-sanitizer counts {reported} errors that kopt cannot read; see the log"
    return None


def _unavailable(tool: SanitizerTool, reason: str) -> SanitizerRun:
    return SanitizerRun(
        tool=tool, outcome="unavailable", status=Status.PASSED, reason=reason, elapsed_s=0.0
    )
