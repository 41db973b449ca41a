"""Reads a report of Nsight Compute through NVIDIA's own library, the only importer of ncu_report.

It turns metrics into `LaunchCounters` and decides nothing. A metric that is missing, has no value
or comes in a unit that it does not know stays None.

Source: Nsight Compute documentation, "Metrics Reference" and "Python Report Interface".
"""

import importlib
import re
from collections import Counter
from pathlib import Path, PurePath
from typing import Any

from kopt.kernels.counters import (
    LaunchCounters,
    OccupancyLimiter,
    StallLine,
    StallShare,
)
from kopt.tools.cuda.compiler_log import CANDIDATE_FILE

HOW_TO_GET_READER = "pip install 'kopt-mcp[gpu]' (ncu-report)"
LINES_SHOWN = 8

# Reports hold base units; the unit's text is missing where the library does not know the GPU.
_US = {"": 1e-3, "ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
_BYTES = {"": 1.0, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
_PERCENT = 0.01
_LIMITS: dict[str, OccupancyLimiter] = {
    "launch__occupancy_limit_warps": "warps",
    "launch__occupancy_limit_blocks": "blocks",
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared_memory",
    "launch__occupancy_limit_barriers": "barriers",
}
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)")
_NOT_ISSUED = "_not_issued"
_AT_WORK = "selected"
"""The "reason" of a warp that issues: no stall."""


class ReportError(Exception):
    """The report cannot be read; the message says why and never leaves tools/gpu."""


def read_report(path: Path) -> tuple[LaunchCounters, ...]:
    """Return the counters of every launch in a .ncu-rep file, in the order profiled.

    Raises:
        ReportError: The library is not installed, or the file holds no launches, as one of a
            newer Nsight Compute than the library knows.
    """
    try:
        library: Any = importlib.import_module("ncu_report")
    except ImportError as error:
        raise ReportError(f"ncu-report is not installed: {HOW_TO_GET_READER}") from error
    try:
        report = library.load_report(str(path))
        actions = [action for entry in report for action in entry]
        found = tuple(_launch(action) for action in actions)
    except (OSError, RuntimeError, ValueError) as error:
        raise ReportError(f"ncu-report cannot read {path}: {error}") from error
    if not found:
        raise ReportError(f"{path} holds no kernels, or is newer than ncu-report knows")
    return found


def _launch(action: Any) -> LaunchCounters:
    metrics = _Metrics(action)
    return LaunchCounters(
        kernel=str(action.name()),
        time_us=metrics.in_units("gpu__time_duration.sum", _US),
        dram_read_bytes=_whole(metrics.in_units("dram__bytes_read.sum", _BYTES)),
        dram_written_bytes=_whole(metrics.in_units("dram__bytes_write.sum", _BYTES)),
        compute_fraction=metrics.fraction("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        memory_fraction=metrics.fraction(
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
        ),
        dram_fraction=metrics.fraction(
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        l2_fraction=metrics.fraction("lts__throughput.avg.pct_of_peak_sustained_elapsed"),
        l2_hit_fraction=metrics.fraction("lts__t_sector_hit_rate.pct"),
        achieved_occupancy=metrics.fraction("sm__warps_active.avg.pct_of_peak_sustained_active"),
        occupancy_limiters=_limiters(metrics),
        issue_fraction=metrics.number("smsp__issue_active.avg.per_cycle_active"),
        registers_per_thread=_whole(metrics.number("launch__registers_per_thread")),
        instructions=_whole(metrics.number("smsp__inst_executed.sum")),
        bank_conflicts=_whole(metrics.number("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")),
        stalls=_stalls(metrics),
        stall_lines=_stall_lines(action, metrics),
    )


class _Metrics:
    """The metrics of one launch, by name."""

    def __init__(self, action: Any) -> None:
        self._action = action
        self.names: tuple[str, ...] = tuple(action.metric_names())

    def get(self, name: str) -> Any:
        """Return the library's metric; None if the report has none of this name."""
        return self._action.metric_by_name(name) if name in self.names else None

    def number(self, *names: str) -> float | None:
        """Return the value of the first of these that has one."""
        for name in names:
            metric = self.get(name)
            if metric is not None and metric.has_value():
                value = metric.value()
                if isinstance(value, int | float):
                    return float(value)
        return None

    def fraction(self, *names: str) -> float | None:
        """Return a percentage as 0 to 1."""
        value = self.number(*names)
        return None if value is None else value * _PERCENT

    def in_units(self, name: str, units: dict[str, float]) -> float | None:
        """Return a value in the unit in which `units` is 1.0."""
        value = self.number(name)
        factor = None if value is None else units.get(str(self.get(name).unit()))
        return None if value is None or factor is None else value * factor


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _limiters(metrics: _Metrics) -> tuple[OccupancyLimiter, ...]:
    """Return what allows the fewest blocks; a resource that the kernel does not use allows many."""
    known: dict[OccupancyLimiter, float] = {}
    for metric, name in _LIMITS.items():
        blocks = metrics.number(metric)
        if blocks is not None:
            known[name] = blocks
    least = min(known.values(), default=0.0)
    return tuple(name for name, count in known.items() if count == least)


def _stalls(metrics: _Metrics) -> tuple[StallShare, ...]:
    cycles: dict[str, float] = {}
    for name in metrics.names:
        found = _STALL.fullmatch(name)
        value = metrics.number(name) if found else None
        if found is not None and value is not None and not found[1].endswith(_NOT_ISSUED):
            cycles[found[1]] = value
    total = sum(cycles.values())
    shares = [
        StallShare(reason=reason, cycles_per_instruction=value, fraction=value / total)
        for reason, value in cycles.items()
        if reason != _AT_WORK and value > 0
    ]
    return tuple(sorted(shares, key=lambda share: -share.fraction))


def _stall_lines(action: Any, metrics: _Metrics) -> tuple[StallLine, ...]:
    """Return the lines of the candidate at which most samples waited."""
    by_line: dict[int, Counter[str]] = {}
    all_samples = 0
    for name in metrics.names:
        found = _SAMPLES.fullmatch(name)
        if found is None or found[1].endswith(_NOT_ISSUED) or found[1] == _AT_WORK:
            continue
        for address, samples in _instances(metrics.get(name)):
            all_samples += samples
            line = _own_line(action, address) if samples else None
            if line is not None:
                by_line.setdefault(line, Counter())[found[1]] += samples
    ranked = sorted(by_line.items(), key=lambda item: -item[1].total())
    return tuple(
        StallLine(
            line=line,
            reason=reasons.most_common(1)[0][0],
            samples=reasons.total(),
            fraction=reasons.total() / all_samples,
        )
        for line, reasons in ranked[:LINES_SHOWN]
    )


def _instances(metric: Any) -> list[tuple[int, int]]:
    """Return address and count of every instance."""
    if not metric.has_correlation_ids():
        return []
    addresses = metric.correlation_ids()
    return [
        (int(addresses.as_uint64(i)), int(metric.as_uint64(i)))
        for i in range(metric.num_instances())
    ]


def _own_line(action: Any, address: int) -> int | None:
    """Return the line of the candidate's own file; None for other files and without line table."""
    info = action.source_info(address)
    if info is None or PurePath(info.file_name()).name != CANDIDATE_FILE:
        return None
    return int(info.line())
