"""A profile as text, a screenful: bottleneck, times against floors, launches, bytes, suspects.

The profiles of several tune choices are a table in which only what differs has a column.
"""

from collections.abc import Callable, Iterator

from rich.table import Table
from rich.text import Text

from kopt.kernels.counters import HardwareCounters, LaunchCounters
from kopt.kernels.profile_result import (
    Bottleneck,
    ChoiceProfile,
    LaunchProfile,
    MachineExcerpt,
    MeasuredTime,
    ProfileChoices,
    ProfileResult,
    Suspect,
)
from kopt.kernels.status import Provenance, Status
from kopt.tools.facts.bench_facts import l2_words
from kopt.tools.facts.compile_facts import mix_words
from kopt.tools.facts.profile_facts import (
    NOT_COUNTED,
    READING,
    bound_words,
    dim_words,
    interval_words,
    parts_words,
    waits_words,
)
from kopt.tools.facts.wording import plain, tune_words

from .diagnostics import advice_text, diagnostics_text, profiled_text
from .tables import NOTHING, View, count_cell, grid, percent_cell, us_cell, words_cell

MIX_SHOWN = 8
SUSPECTS_SHOWN = 4
WAITS_SHOWN = 3
_TRAFFIC = ("buffer", "role", "needs#", "loads#", "stores#", "sectors/request#", "ideal#")
_TIMES: dict[str, Callable[[ChoiceProfile], str]] = {
    "": lambda one: "*" if one.is_default else "",
    "measured us": lambda one: us_cell(one.measured_us),
    "estimated us": lambda one: us_cell(one.estimated_us),
}
_FACTS: dict[str, Callable[[ChoiceProfile], str]] = {
    "blocks": lambda one: count_cell(one.blocks),
    "threads": lambda one: _text(one.threads_per_block),
    "waves": lambda one: NOTHING if one.waves is None else f"{one.waves:.2f}",
    "registers": lambda one: _text(one.registers_per_thread),
    "spilled": lambda one: NOTHING if one.spill_bytes is None else f"{one.spill_bytes} B",
    "occupancy": lambda one: percent_cell(one.theoretical_occupancy),
    "instructions": lambda one: _text(one.instructions),
    "mostly": lambda one: words_cell(one.mostly or None),
    "status": lambda one: one.status.value,
}
_TEXTS = ("mostly", "status")
_EXPLANATION = (
    "Estimated times order choices and claim nothing about microseconds: what is nearer than the"
    " estimate's resolution is a tie, and the model sees no cache hints. No value was checked. * is"
    " the default."
)


def profile_view(name: str, profile: ProfileResult) -> View:
    """Yield the profile of the file `name`."""
    yield profiled_text(name, profile)
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
        yield Text(f"{NOT_COUNTED.capitalize()}.", style="yellow")
    for suspect in profile.suspects[:SUSPECTS_SHOWN]:
        yield from _suspect_lines(suspect)
    if profile.machine_code is not None:
        yield from _machine_code_lines(profile.machine_code)
    if profile.diagnostics:
        yield diagnostics_text(name, profile.diagnostics)
    if profile.status is not Status.PASSED:
        yield advice_text(profile.status)


def _suspect_lines(suspect: Suspect) -> Iterator[Text]:
    """Yield what a suspect costs and where, and below it what stands behind it and what to try."""
    gain = f" (worth up to {suspect.gain_us:.2f} us, estimated)"
    line = "" if suspect.line is None else f", line {suspect.line}"
    name_of = suspect.name.replace("_", " ") + line
    yield Text.assemble((name_of, "bold"), f": {suspect.statement}{gain}")
    tried = (f"try {', '.join(suspect.families)}",) if suspect.families else ()
    if suspect.evidence or tried:
        yield Text(f"  {'; '.join((*suspect.evidence, *tried))}", style="dim")


def _machine_code_lines(code: MachineExcerpt) -> Iterator[Text]:
    """Yield an excerpt of machine code below its head; the code is the compiler's, no markup."""
    left_out = f"; {code.left_out} of them left out" if code.left_out else ""
    yield Text.assemble(
        (f"Machine code of {plain(code.function)} for {code.arch}", "bold"),
        f", {code.about}{left_out} ({READING})",
    )
    yield from (Text(f"  {plain(row)}", no_wrap=True) for row in code.rows)


def bottleneck_lines(found: Bottleneck) -> Iterator[Text]:
    """Yield the name, what it means, and the facts that say so."""
    yield Text.assemble(
        ("Bottleneck: ", "bold"),
        (found.name, "bold yellow"),
        f" ({found.provenance.value}). {found.statement}",
    )
    yield from (Text(f"  {fact}") for fact in found.facts)
    if found.families:
        yield Text(f"  Try: {', '.join(found.families)}", style="dim")


def hardware_lines(counters: HardwareCounters) -> Iterator[Text]:
    """Yield the counters of each launch, or the line that says why there are none."""
    if counters.provenance is Provenance.UNAVAILABLE:
        yield Text(f"Counters are unavailable: {counters.reason}", style="yellow")
    for launch in counters.launches:
        yield from _counter_lines(launch)
    yield from (Text(f"  {note}", style="dim") for note in counters.notes)
    if counters.report_path is not None:
        yield Text(f"  {counters.tool}: {counters.report_path}", style="dim")


def _counter_lines(launch: LaunchCounters) -> Iterator[Text]:
    shares = {
        "SM": launch.compute_fraction,
        "memory": launch.memory_fraction,
        "DRAM": launch.dram_fraction,
        "L2": launch.l2_fraction,
        "L2 hits": launch.l2_hit_fraction,
        "occupancy achieved": launch.achieved_occupancy,
        "issue": launch.issue_fraction,
    }
    parts = (f"{name} {percent_cell(value)}" for name, value in shares.items())
    yield Text(f"Counters of {launch.kernel}: {', '.join(parts)}")
    counts = {
        "B read from DRAM": launch.dram_read_bytes,
        "B written": launch.dram_written_bytes,
        "warp instructions": launch.instructions,
        "bank conflicts": launch.bank_conflicts,
    }
    parts = (f"{count_cell(value)} {name}" for name, value in counts.items())
    yield Text(f"  {', '.join(parts)}", style="dim")
    if launch.stalls:
        yield Text(f"  Warps wait for: {waits_words(launch, WAITS_SHOWN)}", style="dim")


def _measured_lines(measured: MeasuredTime) -> Iterator[Text]:
    """Yield the time on the GPU and how it compares with what the GPU can do."""
    latency = measured.latency
    spread = "p10 {:.3f}, p90 {:.3f}, ".format(*latency.spread) if latency.spread else ""
    yield Text.assemble(
        (f"Time: {latency.median_us:.3f} us measured on {measured.gpu.name}", "bold"),
        f" ({spread}{latency.replays} replays, L2 {l2_words(measured.rotation)});"
        f" {measured.above_null_us:.3f} us above empty kernels of its launch shape"
        f" ({measured.null_kernel_us:.3f} us)",
    )
    yield Text(
        f"  {measured.achieved_gb_s:,.0f} GB/s: {measured.copy_fraction:.0%} of the copy bandwidth"
        f" measured here ({measured.copy_gb_s:,.0f} GB/s), {measured.roofline_fraction:.0%} of the"
        " data sheet's roofline"
    )


def _time_lines(profile: ProfileResult) -> Iterator[Text]:
    line = profile.roofline
    yield Text(
        f"Floor: {line.floor_us:.3f} us for {profile.byte_model.total_bytes:,} bytes and"
        f" {profile.byte_model.flop:,} flop, bound by {bound_words(line)} (computed:"
        f" memory {line.memory_floor_us:.3f} us, compute {line.compute_floor_us:.3f} us,"
        f" empty launch {line.null_kernel_us:.3f} us;"
        f" {line.flop_per_byte:.2f} flop/byte, ridge {line.ridge_flop_per_byte:.1f})"
    )
    if profile.measured is not None:
        yield from _measured_lines(profile.measured)
    if profile.hardware is not None:
        yield from hardware_lines(profile.hardware)
    estimate = profile.estimate
    if estimate is None:
        return
    fraction = profile.floor_fraction
    floor = "" if fraction is None else f"; the floor is {fraction:.0%} of it"
    time = f"{estimate.latency_us:.3f} us estimated"
    mostly = estimate.dominant.replace("_", " ")
    yield Text.assemble(
        f"Model: {time}" if profile.measured else (f"Time: {time}, not measured", "bold"),
        f" ({interval_words(estimate)}){floor}; mostly {mostly}; in us: {parts_words(estimate)}",
    )
    yield from (Text(f"  {assumption}", style="dim") for assumption in estimate.missing)


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
    return dim_words(dim).removesuffix("x1").removesuffix("x1")


def _traffic_table(profile: ProfileResult) -> Table:
    table = grid(*_TRAFFIC, whole=("buffer", "role"))
    for row in profile.traffic:
        sectors = (row.sectors_per_request, row.ideal_sectors_per_request)
        table.add_row(
            row.name,
            row.role,
            f"{row.needed_read_bytes + row.needed_written_bytes:,}",
            count_cell(row.load_bytes),
            count_cell(row.store_bytes),
            *(NOTHING if one is None else f"{one:.1f}" for one in sectors),
        )
    return table


def profile_choices_view(file: str, profile: ProfileChoices) -> View:
    """Yield the table of the choices of `file`."""
    tunes = {name: _tune_cell(name) for name in profile.choices[0].tune}
    columns = _TIMES | tunes | _FACTS
    cells = {name: [cell(one) for one in profile.choices] for name, cell in columns.items()}
    # One choice has nothing to differ from: all of it is shown.
    differing = [name for name in cells if len(set(cells[name])) > 1 or len(profile.choices) == 1]
    yield profiled_text(file, profile)
    heads = (name if name in _TEXTS else f"{name}#" for name in differing)
    yield grid(*heads, rows=zip(*(cells[name] for name in differing), strict=True))
    same = {name: found[0] for name, found in cells.items() if name not in differing}
    words = [f"{name} {cell}" for name, cell in same.items() if name and cell != NOTHING]
    if words:
        yield Text(f"The same in all: {', '.join(words)}.")
    if profile.set_by_variant:
        yield Text(f"Set by the workload's variant: {', '.join(profile.set_by_variant)}.")
    for one in profile.choices:
        if one.status is not Status.PASSED:
            why = f", {one.why}" if one.why else ""
            yield Text(f"{tune_words(one.tune)}: {one.status.value}{why}")
    yield Text(_EXPLANATION)


def _tune_cell(name: str) -> Callable[[ChoiceProfile], str]:
    return lambda one: str(one.tune[name])


def _text(count: int | None) -> str:
    return NOTHING if count is None else str(count)
