"""The self-test stage: every sample checked on one device, as a user's candidate would be."""

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from time import perf_counter

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.config.time_left import TimeLeft
from kopt.kernels.check_result import CheckResult
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device
from kopt.tools.facts.check_facts import check_summary

from .result import SampleResult, SelftestResult, outcome_of
from .sample import ShippedSample, check_sample

_MOST_AT_ONCE = 8
"""Bounds the memory of the checks together on a machine with many cores."""


@dataclass(frozen=True)
class SelftestRequest:
    """What to check, and for which architecture it is compiled."""

    samples: Sequence[ShippedSample]
    arch: str
    progress: Callable[[str], None] = ignore
    """Called with a short line after each sample."""


def run_selftest(
    request: SelftestRequest,
    device: Device,
    settings: Settings,
    keep: Callable[[SelftestResult], None] = ignore,
) -> SelftestResult:
    """Return what became of every sample; `keep` is given the result so far after each.

    `settings.jobs` samples are under way at a time, at most eight. A sample that only the simulator
    cannot run says nothing about a GPU and is left out there.

    Raises:
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not a sample.
    """
    taken = [one for one in request.samples if device.gpu is None or not _is_of_sim(one)]
    result = SelftestResult(
        device=device.name,
        arch=request.arch,
        planned=len(taken),
        left_out=tuple(one.name for one in request.samples if one not in taken),
    )
    workers = max(1, min(settings.jobs, _MOST_AT_ONCE, len(taken)))
    shared = replace(settings, jobs=max(1, settings.jobs // workers))
    left = TimeLeft(len(taken))
    done: dict[str, SampleResult] = {}
    with thread_pool(workers, "selftest") as pool:
        futures = [pool.submit(_checked, one, device, request.arch, shared) for one in taken]
        request.progress(f"{left.place(0)} samples done")
        for number, future in enumerate(as_completed(futures), start=1):
            found = future.result()
            done[found.name] = found
            result = result.with_samples(done[one.name] for one in taken if one.name in done)
            keep(result)
            told = f"{left.place(number)} samples done{left.left(number + 1)}"
            request.progress(f"{told}: {found.name}")
    return result


def _is_of_sim(sample: ShippedSample) -> bool:
    return sample.status is Status.UNSUPPORTED_ON_SIM


def _checked(sample: ShippedSample, device: Device, arch: str, settings: Settings) -> SampleResult:
    start = perf_counter()
    result = check_sample(sample, device, arch, settings)
    return SampleResult(
        name=sample.name,
        kernel=sample.kernel,
        level=result.level,
        expected=sample.status,
        status=result.status,
        outcome=outcome_of(sample.status, result.status),
        said=_words(result),
        elapsed_s=perf_counter() - start,
    )


def _words(result: CheckResult) -> str:
    """Return the summary, and why no race check stands behind it, where there should be one."""
    race_check, summary = result.race_check, check_summary(result)
    if race_check is None or race_check.outcome != "unavailable":
        return summary
    return f"{summary}; no race check: {race_check.reason}"
