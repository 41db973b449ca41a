"""The calls of NVIDIA's ncu_report that kopt makes, over made-up launches.

A real report is binary and holds a kernel's code, so none is kept here; that the real library gives
the same through the same calls is for tests on a GPU to show.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

FIRST_METRICS: Mapping[str, float] = {
    "dram__bytes_read.sum": 1572864,
    "dram__bytes_write.sum": 16384,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 41.0,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 38.0,
    "gpu__time_duration.sum": 3456,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 7,
    "launch__occupancy_limit_blocks": 32,
    "launch__occupancy_limit_registers": 12,
    "launch__occupancy_limit_shared_mem": 12,
    "launch__occupancy_limit_warps": 16,
    "launch__registers_per_thread": 40,
    "lts__t_sector_hit_rate.pct": 47.5,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 22.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.5,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 25.0,
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 2.0,
    "smsp__average_warps_issue_stalled_long_scoreboard_not_issued_per_issue_active.ratio": 5.0,
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 6.0,
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": 1.0,
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 1.0,
    "smsp__inst_executed.sum": 123456,
    "smsp__issue_active.avg.per_cycle_active": 0.125,
}
SAMPLES: Mapping[str, Mapping[int, int]] = {
    "smsp__pcsamp_warps_issue_stalled_barrier": {272: 28, 288: 0},
    "smsp__pcsamp_warps_issue_stalled_barrier_not_issued": {272: 999},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {112: 2, 256: 50},
    "smsp__pcsamp_warps_issue_stalled_selected": {112: 300},
}
"""Counts by address."""


@dataclass(frozen=True)
class Addresses:
    """The correlation ids of a metric."""

    values: tuple[int, ...]

    def as_uint64(self, index: int) -> int:
        """Return one."""
        return self.values[index]


@dataclass(frozen=True)
class Metric:
    """One metric; with `counts`, one instance for each address."""

    number: float | None
    unit_text: str = ""
    counts: Mapping[int, int] = field(default_factory=dict[int, int])

    def has_value(self) -> bool:
        """Whether there is a number."""
        return self.number is not None

    def value(self) -> float | None:
        """Return it."""
        return self.number

    def unit(self) -> str:
        """Return its unit; empty where the library does not know the GPU."""
        return self.unit_text

    def has_correlation_ids(self) -> bool:
        """Whether its instances have addresses."""
        return bool(self.counts)

    def correlation_ids(self) -> Addresses:
        """Return them."""
        return Addresses(tuple(self.counts))

    def num_instances(self) -> int:
        """Return how many there are."""
        return len(self.counts)

    def as_uint64(self, index: int) -> int:
        """Return the count of one."""
        return tuple(self.counts.values())[index]


@dataclass(frozen=True)
class SourceInfo:
    """Where an instruction comes from."""

    file: str
    number: int

    def file_name(self) -> str:
        """Return the file."""
        return self.file

    def line(self) -> int:
        """Return the line, from 1."""
        return self.number


@dataclass(frozen=True)
class Action:
    """One launch."""

    kernel: str
    metrics: Mapping[str, Metric]
    lines: Mapping[int, SourceInfo] = field(default_factory=dict[int, SourceInfo])

    def name(self) -> str:
        """Return the kernel's name."""
        return self.kernel

    def metric_names(self) -> tuple[str, ...]:
        """Return the names of all metrics."""
        return tuple(self.metrics)

    def metric_by_name(self, name: str) -> Metric:
        """Return one; KeyError if it is not there."""
        return self.metrics[name]

    def source_info(self, address: int) -> SourceInfo | None:
        """Return where the instruction at `address` comes from; None without a line table."""
        return self.lines.get(address)


def scripted_library(*actions: Action) -> ModuleType:
    """Return a module whose reports hold one range with `actions`."""

    def load_report(path: str) -> tuple[tuple[Action, ...], ...]:
        del path
        return (actions,)

    module = ModuleType("ncu_report")
    vars(module)["load_report"] = load_report
    return module
