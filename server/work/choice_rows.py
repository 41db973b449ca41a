"""A table of candidates and tune choices as a piece of work: row by row, each told when it begins.

Only the named kernel is looked at. A row of a benchmark is checked at level quick before it is
timed; what a table leads to, a full check and a verdict, is the work of `benchmark` on one row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kopt.config.callbacks import ignore
from kopt.config.device_names import sheet_of
from kopt.config.errors import ToolError
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import candidate_of_text
from kopt.kernels.case import Case
from kopt.kernels.choice_table import ChoiceTable, TableRow
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ChoiceProfile
from kopt.kernels.record import because
from kopt.kernels.status import Provenance, Status
from kopt.server.find_case import case_of
from kopt.server.opened_device import OpenedDevice
from kopt.tools.bench.request import BenchRequest
from kopt.tools.facts.check_facts import check_summary
from kopt.tools.facts.compile_facts import named_builds
from kopt.tools.facts.wording import tune_words
from kopt.tools.profiling.choices import MOST_CHOICES, asked_choices, choice_row, set_by_variant
from kopt.tools.profiling.stage import ProfileRequest

from . import stages
from .known_best import known_best
from .requests import Progress, TableWork, source_name
from .work_site import WorkSite


@dataclass(frozen=True)
class _Choice:
    """One row that is asked for."""

    file: str
    case: Case
    """With every tune value of the row."""
    is_default: bool
    set_by_variant: tuple[str, ...]


def choice_table(work: TableWork, opened: OpenedDevice, site: WorkSite) -> ChoiceTable:
    """Return the table of everything that `work` names.

    Raises:
        ToolError: A file has no choices where every choice is asked for, a tune value is not
            declared, or there are too many rows.
    """
    chosen = list(_choices(work, site))
    if len(chosen) > MOST_CHOICES:
        raise ToolError(
            f"{len(chosen)} rows are too many, at most {MOST_CHOICES}: fewer files, or some values"
            " held fast, e.g. all,BLOCK=256"
        )
    rows: list[TableRow] = []
    benches: list[BenchResult] = []
    for place, one in enumerate(chosen):
        words = f"{one.file} {tune_words(dict(one.case.tune))}".strip()
        site.say(Progress(done=place, total=len(chosen), message=words))
        if work.tool == "profile":
            rows.append(_profiled(one, opened, site))
        else:
            benches.append(_benchmarked(one, opened, site))
            rows.append(_bench_row(one, benches[-1]))
    first = rows[0]
    passed = any(row.status is Status.PASSED for row in rows)
    base = ChoiceTable(
        tool=work.tool,
        status=Status.PASSED if passed else first.status,
        kernel=work.kernel,
        arch=opened.arch,
        gpu=_gpu_name(opened),
        device=opened.device.name,
        rows=tuple(sorted(rows, key=lambda row: (row.status is not Status.PASSED, row.order_us))),
    )
    if work.tool == "profile":
        return base
    known = known_best(work.kernel, opened, site)
    return base.model_copy(update={"best_known": known, **_baseline(benches)})


def _gpu_name(opened: OpenedDevice) -> str:
    if opened.timer is not None:
        return opened.timer.facts.name
    return sheet_of(opened.device.name, opened.arch).name


def _choices(work: TableWork, site: WorkSite) -> Iterator[_Choice]:
    for file in work.files:
        candidate = candidate_of_text(file.source, source_name(file.path))
        case = case_of(candidate, work.kernel, site.settings, work.tune)
        forced = set_by_variant(case)
        if not work.every or case.header is None:  # a mistake there is the row's status
            tune = {**case.full_tune, **forced}
            is_default = tune == {**case.default_tune, **forced}
            yield _Choice(file.path, case.with_tune(tune), is_default, tuple(forced))
            continue
        asked = asked_choices(case)
        for choice in asked.choices:
            is_default = choice == asked.default
            yield _Choice(file.path, case.with_tune(choice), is_default, tuple(forced))


def _profiled(one: _Choice, opened: OpenedDevice, site: WorkSite) -> TableRow:
    request = ProfileRequest(one.case, counters=False, suspects=False, progress=ignore)
    result = stages.profile(request, opened, site.settings)
    row = choice_row(dict(one.case.tune), result, is_default=one.is_default)
    return _named(row, one)


def _benchmarked(one: _Choice, opened: OpenedDevice, site: WorkSite) -> BenchResult:
    return stages.bench(BenchRequest(one.case, progress=ignore), opened, site.settings)


def _bench_row(one: _Choice, result: BenchResult) -> TableRow:
    latency = result.latency
    time_us = None if latency is None else latency.median_us
    is_measured = latency is not None and latency.provenance is Provenance.MEASURED
    registers, spilled = _resources(result.check.compiled)
    row = ChoiceProfile(
        tune=dict(one.case.tune),
        is_default=one.is_default,
        status=result.status,
        why=_why(result),
        estimated_us=None if is_measured else time_us,
        resolution=result.resolution,
        measured_us=time_us if is_measured else None,
        registers_per_thread=registers,
        spill_bytes=spilled,
    )
    against = result.comparisons[0] if result.comparisons and is_measured else None
    if against is None:
        return _named(row, one)
    found = {"verdict": against.verdict, "speedup": against.speedup, "interval": against.interval}
    return _named(row, one).model_copy(update=found)


def _why(result: BenchResult) -> str:
    """Return why there is no time, in a line; empty for a candidate that was timed."""
    if result.status is Status.PASSED:
        return ""
    if result.check.status is not Status.PASSED:
        return check_summary(result.check)
    return because(result.diagnostics).removeprefix(": ")


def _named(row: ChoiceProfile, one: _Choice) -> TableRow:
    return TableRow(file=one.file, set_by_variant=one.set_by_variant, **row.model_dump())


def _resources(compiled: CompileResult) -> tuple[int | None, int | None]:
    """Return the most registers and spilled bytes of any function; None without a build."""
    builds = named_builds(compiled) if compiled.builds else []
    kernels = [kernel for build in builds for kernel in build.kernels]
    spilled = (one.spill_store_bytes + one.spill_load_bytes for one in kernels)
    registers = (one.registers_per_thread for one in kernels)
    return max(registers, default=None), max(spilled, default=None)


def _baseline(benches: list[BenchResult]) -> dict[str, object]:
    main = next((one.comparisons[0] for one in benches if one.comparisons), None)
    if main is None:
        return {}
    latency = main.baseline_latency
    return {
        "baseline": main.baseline.label,
        "baseline_us": None if latency is None else latency.median_us,
    }
