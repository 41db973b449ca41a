"""A profile as facts: the bottleneck, the numbers that say so, and which strategies address it.

Each group of numbers stands under how it came to be; what is unavailable says why.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

from kopt.kernels.counters import HardwareCounters, LaunchCounters
from kopt.kernels.profile_result import (
    Bottleneck,
    LaunchProfile,
    MachineExcerpt,
    MeasuredTime,
    ProfileResult,
    Suspect,
    TensorTraffic,
)
from kopt.kernels.roofline import Roofline
from kopt.kernels.status import Provenance, Status
from kopt.kernels.time_estimate import LaunchEstimate, PartName, TimeEstimate
from kopt.tools.profiling.machine_excerpt import MOST_SHOWN

from .bench_facts import l2_words
from .compile_facts import occupancy_facts, resource_facts
from .findings import advice, diagnostic_facts, head
from .fitting import Detail, Facts, Listing, given
from .wording import Quoted, file_name

STALLS_SHOWN = 3
READING = (
    "address, L = line of the source, instruction, scoreboards that it waits for, sets with its"
    " result and frees once its operands are read, stall = clocks before the next"
)
_BESIDE_CODE = ("status", "kernel", "candidate", "tune", "arch", "data_sheet", "diagnostics")
NOT_COUNTED = "accesses are not counted: the candidate was not executed, or not to its end"


def profile_facts(result: ProfileResult, detail: Detail) -> Facts:
    """Return the facts of a profile."""
    facts = head(result, result.chosen_tune)
    if result.status is Status.PASSED:
        facts["correctness"] = "not checked"
    facts |= {"arch": result.arch, "data_sheet": result.gpu}
    facts |= diagnostic_facts(result.diagnostics) | advice(result)
    if result.bottleneck is not None:
        facts["bottleneck"] = bottleneck_facts(result.bottleneck)
    if result.measured is not None:
        facts["measured"] = _measured(result.measured)
    if result.hardware is not None:
        facts["hardware_counters"] = _hardware(result.hardware, detail)
    if result.estimate is not None:
        fraction = given(floor_fraction=result.floor_fraction)
        facts["estimated"] = _estimate(result.estimate, detail) | fraction
    if result.machine_code is not None:
        code = _machine_code(result.machine_code)
        if detail == "concise":  # it was asked for: the rest would leave it no room
            return {name: facts[name] for name in _BESIDE_CODE if name in facts} | code
        facts |= code
    suspects = Listing(tuple(map(_suspect, result.suspects)), most=3)
    return facts | given(computed=_computed(result, detail), suspects=suspects)


def _machine_code(found: MachineExcerpt) -> Facts:
    """Return an excerpt of machine code: data, as all that comes of a candidate."""
    shown = given(
        function=Quoted(found.function),
        arch=found.arch,
        about=found.about,
        instructions_of_function=found.instructions,
        not_shown=found.left_out or None,
        sass=Listing(tuple(map(Quoted, found.rows)), most=MOST_SHOWN),
    )
    return {"computed": {"machine_code": shown}, "reading": READING}


def bottleneck_facts(found: Bottleneck) -> Facts:
    """Return a bottleneck with the numbers that say so."""
    return {
        "name": found.name,
        "means": found.statement,
        "because": Listing(found.facts, most=3),
        "families": ", ".join(found.families),
        "provenance": found.provenance.value,
    }


def _measured(time: MeasuredTime) -> Facts:
    return {
        "gpu": time.gpu.name,
        "latency_us": time.latency.median_us,
        "replays": time.latency.replays,
        "l2": l2_words(time.rotation),
        "null_kernel_us": time.null_kernel_us,
        "above_null_us": time.above_null_us,
        "achieved_gb_s": time.achieved_gb_s,
        "copy_fraction": time.copy_fraction,
        "roofline_fraction": time.roofline_fraction,
    }


def _hardware(counters: HardwareCounters, detail: Detail) -> Facts:
    if counters.provenance is Provenance.UNAVAILABLE:
        return {"provenance": "unavailable", "reason": counters.reason}
    path = counters.report_path if detail == "full" else None
    return {
        "provenance": "measured",
        "launches": Listing(tuple(_launch_counters(one, detail) for one in counters.launches), 3),
        **given(notes=Listing(counters.notes, most=2), report=path and file_name(path)),
    }


def _launch_counters(launch: LaunchCounters, detail: Detail) -> Facts:
    facts: Facts = {"function": Quoted(launch.kernel)}
    left_out = {"kernel", "stalls", "stall_lines", "time_us"}
    if detail == "concise":
        left_out |= {"dram_read_bytes", "dram_written_bytes", "registers_per_thread"}
    facts |= launch.model_dump(mode="json", exclude=left_out, exclude_none=True)
    shown = None if detail == "full" else STALLS_SHOWN
    return facts | {"warps_wait_for": waits_words(launch, shown)}


def waits_words(launch: LaunchCounters, most: int | None) -> str:
    """Return what warps wait for and at which lines, the first `most` of each."""
    stalls = [f"{stall.reason} {stall.fraction:.0%}" for stall in launch.stalls[:most]]
    lines = [
        f"line {line.line} {line.fraction:.0%} ({line.reason})"
        for line in launch.stall_lines[:most]
    ]
    return ", ".join([*stalls, *lines])


def _estimate(estimate: TimeEstimate, detail: Detail) -> Facts:
    launches = tuple(_launch_estimate(one) for one in estimate.launches)
    is_split = detail == "full" and len(launches) > 1
    return {
        "latency_us": estimate.latency_us,
        "interval": interval_words(estimate),
        "ties_within": f"{100 * estimate.resolution:g}%",
        "dominant": estimate.dominant,
        "parts_us": parts_words(estimate),
        **given(
            launches=Listing(launches) if is_split else None,
            assumed=Listing(estimate.missing, most=2),
        ),
    }


def interval_words(estimate: TimeEstimate) -> str:
    """Return where a measured time lies."""
    least, most = estimate.interval_us
    end = "us or longer" if most is None else f"to {most:.3g} us"
    return f"{least:.3g} {end} at {estimate.interval_rate:.0%}"


def parts_words(estimate: TimeEstimate) -> str:
    """Return the parts in microseconds, the largest first; units are busy side by side."""
    shown = {name: estimate.part_us(name) for name in get_args(PartName)}
    return _parts(shown)


def _parts(parts_us: Mapping[PartName, float]) -> str:
    largest = sorted(parts_us.items(), key=lambda part: -part[1])
    return ", ".join(f"{name.replace('_', ' ')} {us:.3g}" for name, us in largest)


def _launch_estimate(launch: LaunchEstimate) -> str:
    return f"{launch.kernel} {launch.latency_us:.3g} us: {_parts(launch.parts_us)}"


def _computed(result: ProfileResult, detail: Detail) -> Facts:
    line, is_full = result.roofline, detail == "full"
    rows = result.traffic if is_full else _wasteful(result.traffic)
    return {
        "floor_us": line.floor_us,
        "bound_by": bound_words(line),
        "memory_floor_us": line.memory_floor_us,
        "compute_floor_us": line.compute_floor_us,
        "empty_launch_us": line.null_kernel_us,
        "bytes": result.byte_model.total_bytes,
        "flop_per_byte": line.flop_per_byte,
        **given(
            roofline=line.model_dump(mode="json") if is_full else {},
            launches=Listing(tuple(map(_launch, result.launches)), most=3),
            traffic=Listing(tuple(map(_traffic, rows)), most=4),
            traffic_note=NOT_COUNTED if result.counters is None else None,
        ),
    }


def _launch(launch: LaunchProfile) -> Facts:
    return {
        "function": Quoted(launch.kernel),
        "grid": dim_words(launch.grid),
        "block": dim_words(launch.block),
        "dynamic_smem_bytes": launch.dynamic_smem_bytes,
        **resource_facts(launch.resources),
        **occupancy_facts(launch.occupancy),
    }


def bound_words(line: Roofline) -> str:
    """Return what sets the floor of a roofline: memory, compute or an empty launch."""
    return "an empty launch" if line.is_launch_dominated else line.bound


def dim_words(dim: tuple[int, int, int]) -> str:
    """Return the size of a grid or block in all three dimensions: `128x1x1`."""
    return "x".join(map(str, dim))


def _wasteful(traffic: Sequence[TensorTraffic]) -> list[TensorTraffic]:
    """Return the buffers that are moved more than needed or in more sectors than needed."""
    return [row for row in traffic if _excess(row) > 1.01]


def _excess(row: TensorTraffic) -> float:
    moved = (row.load_bytes or 0) + (row.store_bytes or 0)
    needed = row.needed_read_bytes + row.needed_written_bytes
    by_bytes = moved / needed if needed else 0.0
    sectors, ideal = row.sectors_per_request, row.ideal_sectors_per_request
    return max(by_bytes, sectors / ideal if sectors and ideal else 0.0)


def _traffic(row: TensorTraffic) -> Facts:
    facts: Facts = {
        "buffer": Quoted(row.name),
        "role": row.role,
        "needed_bytes": row.needed_read_bytes + row.needed_written_bytes,
    }
    fields = ("load_bytes", "store_bytes", "sectors_per_request", "ideal_sectors_per_request")
    return facts | row.model_dump(mode="json", include=set(fields), exclude_none=True)


def _suspect(suspect: Suspect) -> Facts:
    return given(
        name=suspect.name,
        statement=suspect.statement,
        evidence="; ".join(suspect.evidence),
        line=suspect.line,
        gain_us=suspect.gain_us,
        families=", ".join(suspect.families),
        provenance=suspect.provenance.value,
    )
