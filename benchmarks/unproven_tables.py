"""The tables of docs/blackwell.md, from the facts beside the unproven kernels."""

from collections.abc import Iterator, Sequence
from math import prod

from markdown_tables import grid

from kopt.kernels.unproven_facts import StaticFacts, UnprovenFacts

MARKS = ("<!-- tables: written by benchmarks/unproven_facts.py -->", "<!-- end of tables -->")
_STATIC = (
    *("kernel", "", "blocks x threads", "registers", "spilled bytes", "occupancy", "SASS"),
    *("loads", "stores", "conversions", "shuffles, barriers", "bytes loaded, stored"),
    "estimated us",
)
_ON_GPU = (
    *("kernel", "check there", "this kernel, us", "reference kernel, us", "reference / this"),
    "empty kernel, us",
)


def tables(all_facts: Sequence[UnprovenFacts]) -> str:
    """Return what is known of each kernel, and what another GPU said of it."""
    compilers = ", ".join(sorted({facts.compiler for facts in all_facts}))
    rows = [row for facts in all_facts for row in _static_rows(facts)]
    ran = [_gpu_row(facts) for facts in all_facts]
    return f"""\
Static facts, computed ({compilers}); bytes counted on the simulator; times estimated:

{grid(_STATIC, rows, _STATIC)}

{_where(all_facts)}

{grid(_ON_GPU, ran, _ON_GPU)}
"""


def _where(all_facts: Sequence[UnprovenFacts]) -> str:
    runs = [facts.other_gpu for facts in all_facts if facts.other_gpu]
    if not runs:
        return "On another GPU: not run yet."
    places = sorted({f"{run.gpu}, {run.arch}, driver {run.driver_version}" for run in runs})
    dates = sorted({run.measured_at[:10] for run in runs})
    return (
        f"On another GPU, measured ({'; '.join(places)}; {', '.join(dates)}): another binary,"
        " e2m1 in software, against the reference kernel there:"
    )


def _static_rows(facts: UnprovenFacts) -> Iterator[tuple[str, ...]]:
    yield _static_row(facts.kernel, "this", facts.own)
    yield _static_row("", "reference", facts.reference)
    yield _static_row("", "this", facts.elsewhere)


def _static_row(kernel: str, what: str, one: StaticFacts) -> tuple[str, ...]:
    mix = one.instruction_mix
    return (
        kernel,
        f"{what}, {one.arch}",
        f"{prod(one.grid):,} x {prod(one.block)}",
        str(one.registers_per_thread),
        str(one.spill_bytes),
        f"{one.occupancy.theoretical_occupancy:.0%}",
        str(one.instructions),
        _by_width(mix, "ldg_"),
        _by_width(mix, "stg_"),
        _listed(one.conversions),
        f"{mix.get('shfl', 0)}, {mix.get('bar', 0)}",
        f"{_megabytes(one.loaded_bytes)}, {_megabytes(one.stored_bytes)}",
        f"{one.estimated_us:.2f}",
    )


def _by_width(mix: dict[str, int], prefix: str) -> str:
    """Return `3 x 256, 1 x 32`: instructions by the bits that a thread moves with each."""
    found = {
        int(name.removeprefix(prefix)): n for name, n in mix.items() if name.startswith(prefix)
    }
    return ", ".join(f"{found[bits]} x {bits}" for bits in sorted(found, reverse=True))


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "0"


def _megabytes(count: int | None) -> str:
    return "unavailable" if count is None else f"{count / 1e6:.2f} MB"


def _gpu_row(facts: UnprovenFacts) -> tuple[str, ...]:
    run = facts.other_gpu
    if run is None:
        return facts.kernel, "not run", "", "", "", ""
    if run.ratio is None or run.interval is None:
        return facts.kernel, run.status, "unavailable", "", "", ""
    low, high = run.interval
    return (
        facts.kernel,
        f"{run.status}, {run.executions} runs",
        f"{run.candidate_us:.2f}",
        f"{run.reference_us:.2f}",
        f"{run.ratio:.2f} ({low:.2f} to {high:.2f})",
        f"{run.null_kernel_us:.2f}",
    )
