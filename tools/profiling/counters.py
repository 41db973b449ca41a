"""The GPU's counters of a candidate, read by Nsight Compute (ncu) in a run of its own.

Counters are optional: without ncu, permission or a matching driver the result says in one line why
there are none and how to get them, and everything else of a profile stays. Clocks are never set.
Caches are flushed before every pass, as the timing's are cold.
"""

from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.counters import HardwareCounters, LaunchCounters
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.status import Provenance
from kopt.tools.devices.examination import ExaminesItself
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.gpu.ticket_lock import TicketLock

from .launchable import Launchable
from .ncu_report import ReportError
from .nvidia_tools import HOW_TO_GET_NCU, find_ncu
from .one_shot import Examination, Examined, OneShot, examine, examined_call, report_folder
from .report_process import read_report_apart

LIMIT_S = 120.0
_REPORT = "counters.ncu-rep"
_OPTIONS = (
    "--config-file off --target-processes application-only --clock-control none "
    "--cache-control all --apply-rules no --force-overwrite"
)
_SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "Occupancy",
    "LaunchStats",
    "WarpStateStats",
    "SchedulerStats",
    "SourceCounters",
)
"""They adapt to the GPU; a metric by name that it does not have would end ncu."""
_METRICS = (
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__t_sector_hit_rate.pct",
    "smsp__inst_executed.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
)
_NO_NCU = f"Nsight Compute (ncu) not found: {HOW_TO_GET_NCU}"
_PERMISSION = "ERR_NVGPUCTRPERM"
HOW_TO_PERMIT = (
    "this user may not read GPU counters (ERR_NVGPUCTRPERM): an administrator can allow it with "
    "`options nvidia NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d/ and a reboot; "
    "being root does not help, since the sandbox drops capabilities"
)


def read_counters(
    launchable: Launchable, device: TimingDevice, settings: Settings
) -> HardwareCounters:
    """Return the counters of one call of `launchable`, or why there are none.

    Raises:
        SetupError: The sandbox cannot start, or KOPT_HOME cannot be written.
        InfraError: The sandbox was killed from outside.
    """
    if not isinstance(device, ExaminesItself) and find_ncu(settings) is None:
        return _unavailable(_NO_NCU)
    lined = launchable.lined_cubin(settings)
    call = examined_call(launchable, lined or launchable.cubin)
    folder = report_folder(launchable, settings)
    if isinstance(device, ExaminesItself):
        counters = device.read_counters(call).kept_in(folder)
    else:
        counters = counters_of(OneShot(call, device.facts.uuid), folder, settings)
    notes = () if lined is not None else ("no source lines: the cubin with lines differs",)
    return counters.model_copy(update={"notes": notes if counters.launches else ()})


def counters_of(shot: OneShot, keep_in: Path, settings: Settings) -> HardwareCounters:
    """Return the counters of one call on a GPU of this machine, or why there are none.

    It runs once, and for every pass of ncu again on the same buffers.

    Args:
        shot: The call, and the GPU.
        keep_in: Folder for the report and for what ncu printed.
        settings: Where Nsight Compute is.

    Raises:
        SetupError: The sandbox cannot start, or KOPT_HOME cannot be written.
        InfraError: The sandbox was killed from outside.
    """
    ncu = find_ncu(settings)
    if ncu is None:
        return _unavailable(_NO_NCU)
    plan = shot.call.plan
    examination = Examination(
        tool=ncu,
        arguments=lambda scratch: ncu_arguments(plan, scratch),
        outputs=(_REPORT,),
        keep_in=keep_in,
        prefix="",
        wall_s=LIMIT_S,
    )
    with TicketLock(shot.device_uuid).hold():
        examined = examine(shot, examination, settings)
    counters = _read(examined, plan, settings)
    return counters.model_copy(
        update={
            "tool": ncu.name,
            "log_path": str(examined.printed_path),
            "report_path": str(examined.files[_REPORT]) if _REPORT in examined.files else None,
            "sandbox": examined.run.level,
        }
    )


def ncu_arguments(plan: LaunchPlan, scratch: Path) -> list[str]:
    """Return the options of ncu for one call of `plan`."""
    names = "|".join(sorted({launch.kernel for launch in plan.launches}))
    return [
        *_OPTIONS.split(),
        *("--kernel-name", f"regex:^({names})$"),
        *("--launch-count", str(len(plan.launches))),
        *(part for section in _SECTIONS for part in ("--section", section)),
        *("--metrics", ",".join(_METRICS)),
        *("--export", str(scratch / _REPORT.removesuffix(".ncu-rep"))),
    ]


def _read(examined: Examined, plan: LaunchPlan, settings: Settings) -> HardwareCounters:
    if _PERMISSION in examined.printed:
        return _unavailable(HOW_TO_PERMIT)
    if examined.run.timed_out:
        return _unavailable(f"ncu did not end within {LIMIT_S:g} s; a smaller workload may")
    path = examined.files.get(_REPORT)
    if path is None:
        return _unavailable(f"ncu wrote no report: {_complaint(examined)}")
    try:
        launches = read_report_apart(path, settings)
    except ReportError as error:
        return _unavailable(str(error))
    expected = [launch.kernel for launch in plan.launches]
    if [launch.kernel for launch in launches] != expected:
        found = ", ".join(launch.kernel for launch in launches)
        return _unavailable(f"ncu profiled {found} where {', '.join(expected)} was launched")
    if not any(_has_values(launch) for launch in launches):
        return _unavailable(f"ncu read no counters: {_complaint(examined)}")
    return HardwareCounters(launches=launches, provenance=Provenance.MEASURED)


def _has_values(launch: LaunchCounters) -> bool:
    return launch.time_us is not None or launch.compute_fraction is not None


def _complaint(examined: Examined) -> str:
    """Return the first line that ncu marks as an error, else the last that was printed."""
    lines = [line.strip() for line in examined.printed.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line]
    line = (*errors, *lines[-1:], "no output")[0]
    answer = examined.answer
    if not errors and answer is not None and answer.fault is not None:
        line = f"the plan ended with {answer.fault.code} ({answer.fault.message})"
    return line.removeprefix("==ERROR== ")[:300]


def _unavailable(reason: str) -> HardwareCounters:
    return HardwareCounters(provenance=Provenance.UNAVAILABLE, reason=reason)
