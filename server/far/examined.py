"""One call under NVIDIA's tools on this machine's GPU, for a caller elsewhere, files and all."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.examination import ExaminedCall
from kopt.tools.profiling.counters import counters_of
from kopt.tools.profiling.one_shot import OneShot
from kopt.tools.remote.answers import CountersAnswer, SanitizerAnswer
from kopt.tools.remote.calls import CountersCall, SanitizeCall
from kopt.tools.remote.sending import file_arrays, files_among
from kopt.tools.remote.sent_kernel import SentShot
from kopt.tools.sanitize.stage import ToolRuns, sanitizer_runs


def counters_read(
    call: CountersCall, arrays: Arrays, device_uuid: str, settings: Settings
) -> tuple[CountersAnswer, Arrays]:
    """Return the counters of a call with ncu's report and what it printed."""
    examined = _call(call.shot, arrays)
    shot = OneShot(examined, device_uuid)
    counters = counters_of(shot, _folder(examined, settings), settings)
    files = _read((counters.log_path, counters.report_path))
    return CountersAnswer(counters=counters), files


def sanitized(
    call: SanitizeCall, arrays: Arrays, device_uuid: str, settings: Settings
) -> tuple[SanitizerAnswer, Arrays]:
    """Return what compute-sanitizer finds in a call, with its logs."""
    examined = _call(call.shot, arrays)
    asked = ToolRuns(call.tools, call.limit_s, _folder(examined, settings))
    program, runs = sanitizer_runs(OneShot(examined, device_uuid), asked, settings)
    return SanitizerAnswer(program=program, runs=runs), _read(run.log_path for run in runs)


def _call(shot: SentShot, arrays: Arrays) -> ExaminedCall:
    cubin = files_among(arrays)["cubin"]
    return ExaminedCall(shot.problem, shot.workload, shot.plan, cubin, arrays)


def _folder(call: ExaminedCall, settings: Settings) -> Path:
    """Return where the files of this call lie until the next one of its cubin."""
    name = hashlib.sha256(call.cubin).hexdigest()[:12]
    return ensure_folder(settings.reports.absolute() / call.kernel_id / name)


def _read(paths: Iterable[str | None]) -> Arrays:
    return file_arrays({Path(path).name: Path(path).read_bytes() for path in paths if path})
