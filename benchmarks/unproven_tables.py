"""The tables of docs/blackwell.md, from the facts beside the unproven kernels."""

from collections.abc import Iterator, Sequence
from math import prod

from kopt.kernels.unproven_facts import StaticFacts, UnprovenFacts

BEGIN = "<!-- tables: written by benchmarks/unproven_facts.py -->"
END = "<!-- end of tables -->"
_STATIC = (
    "| kernel | | blocks x threads | registers | spilled bytes | occupancy | SASS | loads | stores"
    " | conversions | shuffles, barriers | bytes loaded, stored | estimated us |"
)
_ON_GPU = (
    "| kernel | check there | this kernel, us | reference kernel, us | reference / this |"
    " empty kernel, us |"
)


def insert_tables(document: str, all_facts: Sequence[UnprovenFacts]) -> str:
    """Return `document` with the tables between its two lines.

    Raises:
        ValueError: It does not have both lines.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"put these two lines where the tables belong:\n{BEGIN}\n{END}")
    return "\n".join((before + BEGIN, *_lines(all_facts), END + after))


def _lines(all_facts: Sequence[UnprovenFacts]) -> Iterator[str]:
    compilers = ", ".join(sorted({facts.compiler for facts in all_facts}))
    yield f"Static facts, computed ({compilers}); bytes counted on the simulator; times estimated:"
    yield from ("", _STATIC, _rule(_STATIC))
    for facts in all_facts:
        yield _static_row(facts.kernel, f"this, {facts.own.arch}", facts.own)
        yield _static_row("", f"reference, {facts.reference.arch}", facts.reference)
        yield _static_row("", f"this, {facts.elsewhere.arch}", facts.elsewhere)
    yield from ("", _where(all_facts), "", _ON_GPU, _rule(_ON_GPU))
    yield from (_gpu_row(facts) for facts in all_facts)


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


def _rule(head: str) -> str:
    return "|" + "---|" * (head.count("|") - 1)


def _static_row(kernel: str, what: str, one: StaticFacts) -> str:
    mix = one.instruction_mix
    loads, stores = (_by_width(mix, prefix) for prefix in ("ldg_", "stg_"))
    return (
        f"| {kernel} | {what} | {prod(one.grid):,} x {prod(one.block)} |"
        f" {one.registers_per_thread} | {one.spill_bytes} |"
        f" {one.occupancy.theoretical_occupancy:.0%} | {one.instructions} | {loads} | {stores} |"
        f" {_listed(one.conversions)} | {mix.get('shfl', 0)}, {mix.get('bar', 0)} |"
        f" {_megabytes(one.loaded_bytes)}, {_megabytes(one.stored_bytes)} |"
        f" {one.estimated_us:.2f} |"
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


def _gpu_row(facts: UnprovenFacts) -> str:
    run = facts.other_gpu
    if run is None:
        return f"| {facts.kernel} | not run | | | | |"
    if run.ratio is None or run.interval is None:
        return f"| {facts.kernel} | {run.status} | unavailable | | | |"
    low, high = run.interval
    return (
        f"| {facts.kernel} | {run.status}, {run.executions} runs | {run.candidate_us:.2f} |"
        f" {run.reference_us:.2f} | {run.ratio:.2f} ({low:.2f} to {high:.2f}) |"
        f" {run.null_kernel_us:.2f} |"
    )
