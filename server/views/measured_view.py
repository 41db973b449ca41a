"""What a GPU said of a candidate, as lines of a profile: its time, its counters, its bottleneck."""

from collections.abc import Iterator

from rich.text import Text

from kopt.kernels.hardware_counters import HardwareCounters, LaunchCounters
from kopt.kernels.profile_result import Bottleneck, MeasuredTime
from kopt.kernels.status import Provenance
from kopt.tools.facts.bench_words import l2_words

STALLS_SHOWN = 3
LINES_SHOWN = 3


def bottleneck_lines(found: Bottleneck) -> Iterator[Text]:
    """Yield the name, what it means, and the facts that say so."""
    how = "measured" if found.provenance is Provenance.MEASURED else "estimated"
    yield Text.assemble(
        ("Bottleneck: ", "bold"), (found.name, "bold yellow"), f" ({how}). {found.statement}"
    )
    for fact in found.facts:
        yield Text(f"  {fact}")
    if found.families:
        yield Text(f"  Try: {', '.join(found.families)}", style="dim")


def measured_lines(measured: MeasuredTime) -> Iterator[Text]:
    """Yield the time on the GPU and how it compares with what the GPU can do."""
    latency, rotation = measured.latency, measured.rotation
    spread = "p10 {:.3f}, p90 {:.3f}, ".format(*latency.spread) if latency.spread else ""
    yield Text.assemble(
        (f"Time: {latency.median_us:.3f} us measured on {measured.gpu.name}", "bold"),
        f" ({spread}{latency.replays} replays, L2 {l2_words(rotation)});"
        f" {measured.above_null_us:.3f} us above empty kernels of its launch shape"
        f" ({measured.null_kernel_us:.3f} us)",
    )
    yield Text(
        f"  {measured.achieved_gb_s:,.0f} GB/s: {measured.copy_fraction:.0%} of the copy bandwidth"
        f" measured here ({measured.copy_gb_s:,.0f} GB/s), {measured.roofline_fraction:.0%} of the"
        " data sheet's roofline"
    )


def hardware_lines(counters: HardwareCounters) -> Iterator[Text]:
    """Yield the counters of each launch, or the line that says why there are none."""
    if counters.provenance is Provenance.UNAVAILABLE:
        yield Text(f"Counters are unavailable: {counters.reason}", style="yellow")
    for launch in counters.launches:
        yield from _launch_lines(launch)
    for note in counters.notes:
        yield Text(f"  {note}", style="dim")
    if counters.report_path is not None:
        yield Text(f"  {counters.tool}: {counters.report_path}", style="dim")


def _launch_lines(launch: LaunchCounters) -> Iterator[Text]:
    shares = {
        "SM": launch.compute_fraction,
        "memory": launch.memory_fraction,
        "DRAM": launch.dram_fraction,
        "L2": launch.l2_fraction,
        "L2 hits": launch.l2_hit_fraction,
        "occupancy achieved": launch.achieved_occupancy,
        "issue": launch.issue_fraction,
    }
    parts = [f"{name} {_percent(value)}" for name, value in shares.items()]
    yield Text(f"Counters of {launch.kernel}: {', '.join(parts)}")
    counts = {
        "B read from DRAM": launch.dram_read_bytes,
        "B written": launch.dram_written_bytes,
        "warp instructions": launch.instructions,
        "bank conflicts": launch.bank_conflicts,
    }
    yield Text(
        "  " + ", ".join(f"{_count(value)} {name}" for name, value in counts.items()), style="dim"
    )
    waits = [f"{stall.reason} {stall.fraction:.0%}" for stall in launch.stalls[:STALLS_SHOWN]]
    lines = [
        f"line {line.line} {line.fraction:.0%} ({line.reason})"
        for line in launch.stall_lines[:LINES_SHOWN]
    ]
    if waits:
        yield Text(f"  Warps wait for: {', '.join([*waits, *lines])}", style="dim")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
