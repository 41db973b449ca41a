"""The self-test stage: every sample checked on one device, as a user's candidate would be."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from itertools import groupby
from time import perf_counter

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.config.time_left import TimeLeft
from kopt.kernels.check_result import CheckResult
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device, is_simulator
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

    `settings.jobs` samples of a kernel are under way at a time, at most eight, and one kernel after
    the other: a GPU's worker serves one problem. A sample that only the simulator cannot run
    says nothing about a GPU and is left out there, as is one for another architecture.

    Raises:
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not a sample.
    """
    taken = [
        one for one in request.samples if is_simulator(device) or _is_of_gpu(one, request.arch)
    ]
    result = SelftestResult(
        device=device.name,
        arch=request.arch,
        planned=len(taken),
        left_out=tuple(one.name for one in request.samples if one not in taken),
    )
    left = TimeLeft(len(taken))
    request.progress(f"{left.place(0)} samples done")
    done: dict[str, SampleResult] = {}
    for found in _results(taken, device, request.arch, settings):
        done[found.name] = found
        result = result.with_samples(done[one.name] for one in taken if one.name in done)
        keep(result)
        told = f"{left.place(len(done))} samples done{left.left(len(done) + 1)}"
        request.progress(f"{told}: {found.name}")
    return result


def _results(
    samples: Sequence[ShippedSample], device: Device, arch: str, settings: Settings
) -> Iterator[SampleResult]:
    """Yield results as they come, those of one kernel before those of the next."""
    workers = min(settings.jobs, _MOST_AT_ONCE)
    shared = replace(settings, jobs=settings.jobs // workers)
    with thread_pool(workers, "selftest") as pool:
        for _, group in groupby(sorted(samples, key=_kernel), key=_kernel):
            futures = [pool.submit(_checked, one, device, arch, shared) for one in group]
            for future in as_completed(futures):
                yield future.result()


def _kernel(sample: ShippedSample) -> str:
    return sample.kernel


def _is_of_gpu(sample: ShippedSample, arch: str) -> bool:
    return sample.status is not Status.UNSUPPORTED_ON_SIM and sample.arch_instead_of(arch) == arch


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
