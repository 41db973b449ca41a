"""The headroom of every kernel as Markdown: printed, or written into a document.

    .venv/bin/python benchmarks/headroom_table.py [--headroom headroom.json] [--write FILE]

A document takes it between two lines of its own (`MARKS`).
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Literal

from markdown_tables import classes, grid, insert_between
from pydantic import Field

from kopt.kernels.bench_result import Latency, RejectedBaseline
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record


class PathTime(Record):
    """One library path that computes what the oracle does."""

    name: str
    pdl: bool
    library: str | None
    latency: Latency
    differences: tuple[str, ...] = ()
    """Why it is not like for like; such a path is shown and never the baseline."""

    @property
    def label(self) -> str:
        """`flashinfer_cute +PDL`."""
        return f"{self.name}{' +PDL' if self.pdl else ''}"


class PathTimes(Record):
    """One kernel: its library paths, its reference kernel and empty kernels, in one session."""

    paths: tuple[PathTime, ...]
    rejected: tuple[RejectedBaseline, ...]
    reference: Latency
    empty_us: float
    """An empty kernel of one warp."""
    empty_pdl_us: float
    """An empty kernel with programmatic dependent launch, which triggers at once."""

    @property
    def baseline(self) -> PathTime:
        """The fastest library path that is like for like, else the reference kernel."""
        like = [path for path in self.paths if not path.differences]
        stand_in = PathTime(name="reference", pdl=False, library=None, latency=self.reference)
        return min(like, key=lambda path: path.latency.median_us, default=stand_in)


class CopyTime(Record):
    """The fastest of several copies of half as many bytes into another half."""

    total_bytes: int
    """Read and written."""
    latency: Latency
    block: int
    vectors: int
    """Words of 16 bytes a thread."""
    pdl: bool

    @property
    def gb_s(self) -> float:
        """1e9 bytes per second."""
        return self.total_bytes / self.latency.median_us / 1e3


class HeadroomRow(Record):
    """One kernel before anybody made it faster."""

    kernel: str
    rows: int
    total_bytes: int
    """Bytes that one call reads and writes at least."""
    measured_at: str
    """UTC, ISO 8601."""
    times: PathTimes
    copy_time: CopyTime
    """A copy of as many bytes."""
    ceiling_gb_s: float
    """The driver's copy of at least 512 MB, reads and writes counted."""

    @property
    def floor_us(self) -> float:
        """max(empty kernel, bytes / ceiling): no kernel of one launch takes less."""
        empty_us = min(self.times.empty_us, self.times.empty_pdl_us)
        return max(empty_us, self.total_bytes / self.ceiling_gb_s / 1e3)

    @property
    def headroom(self) -> float:
        """Fastest baseline / floor: the speedup that is left at most."""
        return self.times.baseline.latency.median_us / self.floor_us

    @property
    def over_copy(self) -> float:
        """Fastest baseline / a copy of as many bytes: the speedup that a copy has already."""
        return self.times.baseline.latency.median_us / self.copy_time.latency.median_us


class Headroom(Record):
    """All that was measured on one device, in one call or several."""

    schema_: Literal["kopt.headroom/1"] = Field(default="kopt.headroom/1", alias="schema")
    gpu: DeviceFacts
    planned: int
    rows: tuple[HeadroomRow, ...] = ()
    copies: tuple[CopyTime, ...] = ()
    failed: dict[str, str] = Field(default_factory=dict[str, str])
    """Kernels without a row, and why; tried again by the next call."""


MARKS = ("<!-- headroom: written by benchmarks/headroom_table.py -->", "<!-- end of headroom -->")
KEPT = Path(__file__).with_name("headroom.json")
"""What docs/headroom.md and the table of results are made from."""
_COLUMNS = (
    "kernel",
    "MB",
    "baseline",
    "baseline us",
    "empty us",
    "at ceiling us",
    "copy us",
    "copy GB/s",
    "headroom",
    "over copy",
)
_TEXT = ("kernel", "baseline", "path", "remark")
_PATH_COLUMNS = ("kernel", "path", "us", "p10", "p90", "remark")
_EXPLANATION = (
    "All times are measured, medians of one call with a cold L2, not paired. *empty*: an empty"
    " kernel of one warp, the faster of those with and without programmatic dependent launch."
    " *at ceiling*: the call's bytes at the bandwidth of a large copy, {ceiling:,.0f} GB/s. *copy*:"
    " the fastest of eight copy kernels of as many bytes. *headroom*: baseline / max(empty, at"
    " ceiling). *over copy*: baseline / copy; below 1 the baseline beats kopt's plain copies."
)


def headroom_markdown(found: Headroom) -> str:
    """Return the table, the means, all paths, and what is missing."""
    if not found.rows:
        return "Nothing was measured.\n"
    ceiling = max(row.ceiling_gb_s for row in found.rows)
    gpu = found.gpu
    dates = sorted({row.measured_at[:10] for row in found.rows})
    parts = [
        f"{gpu.name}, driver {gpu.driver_version}, CUDA {gpu.cuda_version}, {' and '.join(dates)}."
        f" {_EXPLANATION.format(ceiling=ceiling)}",
        grid(_COLUMNS, [_cells(row) for row in found.rows], _TEXT),
        "\n".join(_means(found.rows)),
        "Every path:",
        grid(_PATH_COLUMNS, [cells for row in found.rows for cells in _paths(row)], _TEXT),
        "\n".join(_missing(found)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(row: HeadroomRow) -> tuple[str, ...]:
    best = row.times.baseline
    return (
        row.kernel,
        f"{row.total_bytes / 1e6:.2f}",
        best.label,
        f"{best.latency.median_us:.3f}",
        f"{min(row.times.empty_us, row.times.empty_pdl_us):.3f}",
        f"{row.total_bytes / row.ceiling_gb_s / 1e3:.3f}",
        f"{row.copy_time.latency.median_us:.3f}",
        f"{row.copy_time.gb_s:,.0f}",
        f"{row.headroom:.2f}x",
        f"{row.over_copy:.2f}x",
    )


def _means(rows: Sequence[HeadroomRow]) -> Iterator[str]:
    """Yield the geometric means of both classes of workloads."""
    for name, some in classes(rows):
        headroom = geometric_mean([row.headroom for row in some])
        over_copy = geometric_mean([row.over_copy for row in some])
        yield (
            f"- {name} ({len(some)}): geometric mean of the headroom {headroom:.2f}x,"
            f" over the copy {over_copy:.2f}x"
        )


def _paths(row: HeadroomRow) -> Iterator[tuple[str, ...]]:
    times = row.times
    measured = [(path.label, path.latency, "; ".join(path.differences)) for path in times.paths]
    measured.append(("reference", times.reference, "kopt's starting point"))
    for label, latency, remark in sorted(measured, key=lambda entry: entry[1].median_us):
        low, high, _ = latency.spread or (0.0, 0.0, 0.0)
        numbers = (f"{latency.median_us:.3f}", f"{low:.3f}", f"{high:.3f}")
        yield (row.kernel, label, *numbers, remark)
    for path in times.rejected:
        label = f"{path.name}{' +PDL' if path.pdl else ''}"
        yield (row.kernel, label, "-", "-", "-", f"{path.status.replace('_', ' ')}: {path.reason}")


def _missing(found: Headroom) -> Iterator[str]:
    missing = found.planned - len(found.rows)
    if missing:
        yield f"INCOMPLETE: {missing} of {found.planned} kernels have no row."
    for kernel, reason in found.failed.items():
        yield f"- {kernel}: {reason}"


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description="The headroom of every kernel.")
    parser.add_argument("--headroom", type=Path, default=KEPT, help="of bench_headroom.py")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = Headroom.model_validate_json(options.headroom.read_text("utf-8"))
    text = headroom_markdown(found)
    if options.write is None:
        print(text, end="")
        return
    document = options.write.read_text("utf-8")
    options.write.write_text(insert_between(document, MARKS, text), "utf-8")


if __name__ == "__main__":
    main()
