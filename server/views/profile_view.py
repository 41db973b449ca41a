"""A profile as text, a screenful: bottleneck, times against floors, launches, bytes, suspects."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kopt.kernels.profile_result import LaunchProfile, ProfileResult, TensorTraffic
from kopt.kernels.status import Status
from kopt.tools.facts.compile_facts import mix_words
from kopt.tools.facts.wording import short_id

from .diagnostics import advice_text, diagnostics_text, status_text
from .measured_view import bottleneck_lines, hardware_lines, measured_lines
from .tables import View

MIX_SHOWN = 8
SUSPECTS_SHOWN = 4


def profile_view(name: str, profile: ProfileResult) -> View:
    """Yield the profile of the file `name`."""
    yield Text.assemble(
        status_text(profile.status),
        f"  {profile.kernel}  {name} ({short_id(profile.candidate)})"
        f"  {profile.arch}, data sheet of {profile.gpu}",
    )
    if profile.status is Status.PASSED:
        yield Text("correctness: not checked", style="yellow")
    if profile.bottleneck is not None:
        yield from bottleneck_lines(profile.bottleneck)
    yield from _time_lines(profile)
    for launch in profile.launches:
        yield from _launch_lines(launch)
    if profile.traffic:
        yield _traffic_table(profile)
    if profile.counters is None:
        yield Text("Accesses are not counted: the candidate was not executed.", style="yellow")
    for suspect in profile.suspects[:SUSPECTS_SHOWN]:
        gain = f" (worth up to {suspect.gain_us:.2f} us, estimated)" if suspect.gain_us else ""
        yield Text.assemble(
            (suspect.name.replace("_", " "), "bold"), f": {suspect.statement}{gain}"
        )
        yield Text(
            f"  {'; '.join(suspect.evidence)}. Try: {', '.join(suspect.families)}", style="dim"
        )
    if profile.diagnostics:
        yield diagnostics_text(name, profile.diagnostics)
    if profile.status is not Status.PASSED:
        yield advice_text(profile.status)


def _time_lines(profile: ProfileResult) -> Iterator[Text]:
    line = profile.roofline
    limit = "an empty launch" if line.is_launch_dominated else line.bound
    yield Text(
        f"Floor: {line.floor_us:.3f} us for {profile.byte_model.total_bytes:,} bytes and"
        f" {profile.byte_model.flop:,} flop, bound by {limit} (computed:"
        f" memory {line.memory_floor_us:.3f} us, compute {line.compute_floor_us:.3f} us,"
        f" empty launch {line.null_kernel_us:.3f} us;"
        f" {line.flop_per_byte:.2f} flop/byte, ridge {line.ridge_flop_per_byte:.1f})"
    )
    if profile.measured is not None:
        yield from measured_lines(profile.measured)
    if profile.hardware is not None:
        yield from hardware_lines(profile.hardware)
    estimate = profile.estimate
    if estimate is None:
        return
    fraction = profile.floor_fraction
    floor = "" if fraction is None else f"; the floor is {fraction:.0%} of it"
    parts = (part for launch in estimate.launches for part in launch.parts)
    largest = sorted(parts, key=lambda part: -part.time_us)[:4]
    shares = ", ".join(f"{part.name.replace('_', ' ')} {part.time_us:.2f}" for part in largest)
    yield Text.assemble(
        (
            f"Model: {estimate.latency_us:.3f} us estimated"
            if profile.measured
            else f"Time: {estimate.latency_us:.3f} us estimated, not measured",
            "" if profile.measured else "bold",
        ),
        f"{floor}; mostly {estimate.dominant}; largest parts in us, which may overlap: {shares}",
    )
    for assumption in estimate.missing:
        yield Text(f"  {assumption}", style="dim")


def _launch_lines(launch: LaunchProfile) -> Iterator[Text]:
    resources, occupancy = launch.resources, launch.occupancy
    smem = resources.static_smem_bytes + launch.dynamic_smem_bytes
    limiters = " and ".join(occupancy.limiters).replace("_", " ")
    yield Text(
        f"{launch.kernel} <<<{_dim(launch.grid)}, {_dim(launch.block)}>>>:"
        f" {resources.registers_per_thread} registers,"
        f" {resources.spill_store_bytes + resources.spill_load_bytes} B spilled, {smem} B shared;"
        f" occupancy {occupancy.theoretical_occupancy:.0%} (theoretical) limited by {limiters},"
        f" {occupancy.waves:.2f} waves"
    )
    if resources.instructions is not None:
        counts = mix_words(resources, MIX_SHOWN)
        yield Text(f"  {resources.instructions} SASS instructions: {counts}", style="dim")


def _dim(dim: tuple[int, int, int]) -> str:
    """Return (128, 1, 1) as `128` and (8, 4, 1) as `8x4`."""
    parts = [str(part) for part in dim]
    while len(parts) > 1 and parts[-1] == "1":
        parts.pop()
    return "x".join(parts)


def _traffic_table(profile: ProfileResult) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("buffer", no_wrap=True)
    table.add_column("role", no_wrap=True)
    for column in ("needs", "loads", "stores", "sectors/request", "ideal"):
        table.add_column(column, justify="right")
    for row in profile.traffic:
        table.add_row(row.name, row.role, *_traffic_cells(row))
    return table


def _traffic_cells(row: TensorTraffic) -> Iterator[str]:
    yield f"{row.needed_read_bytes + row.needed_written_bytes:,}"
    for count in (row.load_bytes, row.store_bytes):
        yield "-" if count is None else f"{count:,}"
    for sectors in (row.sectors_per_request, row.ideal_sectors_per_request):
        yield "-" if sectors is None else f"{sectors:.1f}"
