"""The best kernel that is known for what a tool call works on, to put beside its result.

A shipped kernel and the best of earlier runs that the caller may see; where a study hides earlier
results (KOPT_WITHOUT_SOURCES=winners) there is none. Estimates of shipped kernels are made once a
runner: they stay the same while their files do.
"""

from kopt.config.callbacks import ignore
from kopt.kernels.best_known import BestKnown
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.shipped_kernels import visible_kernels
from kopt.server.opened_device import OpenedDevice

from .work_site import WorkSite


def known_best(
    kernel: str, opened: OpenedDevice, site: WorkSite, without_run: str = ""
) -> BestKnown | None:
    """Return the fastest known kernel whose time compares with one on `opened`; None for none.

    Args:
        kernel: Kernel id.
        opened: The device and target of the work.
        site: Whose runs may be looked at.
        without_run: A run whose own candidates are no news to it.
    """
    # Not at the top: a runner that only compiles loads no search.
    from kopt.search.reports.best_of_runs import best_of_runs

    gpu = None if opened.timer is None else opened.timer.facts.name
    of_runs = [
        one
        for one in best_of_runs(kernel, site.owner, site.settings, without_run)
        if (one.measured.gpu == gpu if one.measured else gpu is None and one.arch == opened.arch)
    ]
    shipped = _shipped(kernel, opened, site)
    if shipped is not None and gpu is not None and shipped.measured is not None:
        # A time of another GPU model says nothing about this one's.
        shipped = shipped if shipped.measured.gpu == gpu else None
    known = [*([] if shipped is None else [shipped]), *of_runs]  # of equal ones the shipped
    return min(known, key=_time_us, default=None)


def _time_us(known: BestKnown) -> float:
    return known.time_us


def _shipped(kernel: str, opened: OpenedDevice, site: WorkSite) -> BestKnown | None:
    from kopt.search.evaluation.best_known_search import KnownKernelSearch, find_best_known

    kernels = visible_kernels(*find_kernel(kernel, site.settings.problems), site.settings)
    files = tuple((str(one.source), one.source.stat().st_mtime_ns) for one in kernels)
    key = (kernel, opened.device.name, opened.arch, *files)
    if key not in site.devices.known:
        asked = KnownKernelSearch(kernel, opened.arch, opened.device, site.settings, ignore)
        site.devices.known[key] = find_best_known(asked)
    return site.devices.known[key]
