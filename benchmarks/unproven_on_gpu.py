"""Check the unproven sm_100a kernels on a GPU of another architecture and time them there.

    .venv/bin/python benchmarks/unproven_on_gpu.py --device cuda:0 --save on_gpu.json
        [--only PART ...] [--tune]

Each source gets the full check; each kernel id is then timed against the problem's reference
kernel, which is the only baseline here: no library has a path that works for these operators below
compute capability 10. Nothing of it is a statement about Blackwell: the binary is another one.
`unproven_facts.py --on-gpu on_gpu.json` adds what was found to the facts beside the sources.
--tune times other tune values too, one changed at a time; they are printed and not saved.
"""

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from unproven_facts import Subject, subjects

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.header_parser import parse_header
from kopt.kernels.status import Status
from kopt.kernels.unproven_facts import OtherGpuRun, sm_100_bodies
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import TimingDevice, as_timer


def main() -> None:
    """Check, time, print, save."""
    parser = argparse.ArgumentParser(description="Run the unproven kernels on a GPU.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--save", type=Path, help="a JSON file for unproven_facts.py --on-gpu")
    parser.add_argument("--tune", action="store_true", help="other tune values too")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of kernel ids")
    options = parser.parse_args()
    settings = settings_from_environment()
    runs: list[OtherGpuRun] = []
    with open_device(options.device, settings) as opened:
        device = as_timer(opened)
        if device is None:
            raise SystemExit("a GPU is needed: --device cuda:0")
        print(f"{device.facts.name}, {device.facts.arch}, driver {device.facts.driver_version}")
        checks: dict[str, CheckResult] = {}
        for subject in subjects():
            if not any(part in subject.kernel for part in options.only):
                continue
            checked = checks.get(subject.candidate().id) or _check(subject, device, settings)
            checks[subject.candidate().id] = checked
            runs.append(_run(subject, checked, device, settings))
            if options.save:
                document = [run.model_dump(mode="json") for run in runs]
                options.save.write_text(json.dumps(document, indent=1) + "\n")
            if options.tune and checked.status is Status.PASSED:
                _tune(subject, device, settings)


def _check(subject: Subject, device: TimingDevice, settings: Settings) -> CheckResult:
    request = CheckRequest(
        case=Case(subject.problem, subject.workload, subject.candidate()),
        level="full",
        arch=device.facts.arch,
    )
    return check_candidate(request, device, settings)


def _run(
    subject: Subject, checked: CheckResult, device: TimingDevice, settings: Settings
) -> OtherGpuRun:
    found = OtherGpuRun(
        kernel=subject.kernel,
        candidate=subject.candidate().id,
        gpu=device.facts.name,
        arch=device.facts.arch,
        driver_version=device.facts.driver_version,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        status=checked.status,
        executions=sum(workload.executions for workload in checked.workloads),
        other_bodies=sm_100_bodies(subject.candidate().source),
    )
    if checked.status is not Status.PASSED:
        print(f"{subject.kernel:46} {checked.status}: {checked.mismatch or checked.diagnostics}")
        return found
    result = _bench(subject, device, settings)
    print(f"{subject.kernel:46} {_words(result)}", flush=True)
    if not result.comparisons or result.latency is None:
        return found.model_copy(update={"status": result.status})
    against = result.comparisons[0]
    reference = against.baseline_latency
    return found.model_copy(
        update={
            "candidate_us": result.latency.median_us,
            "reference_us": reference.median_us if reference else None,
            "null_kernel_us": result.null_kernel_us,
            "ratio": against.speedup,
            "interval": against.interval,
            "verdict": against.verdict,
        }
    )


def _bench(
    subject: Subject,
    device: TimingDevice,
    settings: Settings,
    tune: Mapping[str, int] | None = None,
) -> BenchResult:
    request = BenchRequest(
        case=Case(subject.problem, subject.workload, subject.candidate(), tune or {}),
        baselines="reference",
    )
    return bench_candidate(request, device, settings)


def _tune(subject: Subject, device: TimingDevice, settings: Settings) -> None:
    header = parse_header(subject.candidate(), subject.problem).header
    for name, values in header.tune.items() if header else ():
        for value in values[1:]:
            result = _bench(subject, device, settings, {name: value})
            print(f"{'':46} {name}={value}: {_words(result)}", flush=True)


def _words(result: BenchResult) -> str:
    if not result.comparisons or result.latency is None:
        return str(result.status)
    against = result.comparisons[0]
    reference = against.baseline_latency
    low, high = against.interval or (0.0, 0.0)
    return (
        f"{result.latency.median_us:8.2f} us, reference"
        f" {reference.median_us if reference else 0:8.2f} us: {against.speedup or 0:6.2f}x"
        f" ({low:.2f} to {high:.2f}), empty kernel {result.null_kernel_us or 0:.2f} us"
    )


if __name__ == "__main__":
    main()
