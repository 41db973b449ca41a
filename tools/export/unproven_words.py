"""What the README of an export says about a kernel that never ran on the GPU it is written for."""

from collections.abc import Sequence

from kopt.kernels.unproven_facts import OtherGpuRun, UnprovenFacts


def unproven_words(kernels: Sequence[UnprovenFacts]) -> str:
    """Return Markdown: nothing was measured there; what was found out without that GPU.

    Args:
        kernels: One source at each workload that it has facts of; none gives no words.
    """
    if not kernels:
        return ""
    sim = kernels[0].sim
    bodies = f" {', '.join(sim.cpu_bodies)} ran their CPU body there." if sim.cpu_bodies else ""
    return (
        f"**Never run on a {kernels[0].gpu}, the GPU that it is written for**: neither its results"
        " nor its speed there are known. Run the test below before you use it.\n\n"
        f"- CPU simulator, {sim.level} check at {', '.join(sim.workloads)}: {sim.status.value} in "
        f"{sim.executions} executions.{bodies}\n"
        f"{''.join(_computed(facts) for facts in kernels)}"
    )


def _computed(facts: UnprovenFacts) -> str:
    own = facts.own
    elsewhere = "" if facts.other_gpu is None else _elsewhere(facts.other_gpu)
    return (
        f"- Compiled for {facts.arch} by {facts.compiler} (computed, for {facts.kernel}): "
        f"{own.registers_per_thread} registers a thread, {own.spill_bytes} bytes spilled, "
        f"{own.occupancy.theoretical_occupancy:.2f} theoretical occupancy. Estimated "
        f"{own.estimated_us:.2f} us; the reference kernel {facts.reference.estimated_us:.2f} us.\n"
        f"{elsewhere}"
    )


def _elsewhere(run: OtherGpuRun) -> str:
    bodies = f", other bodies of {', '.join(run.other_bodies)}" if run.other_bodies else ""
    times = "."
    if run.ratio is not None and run.interval is not None:
        low, high = run.interval
        times = (
            f"; {run.ratio:.2f}x as fast as the reference kernel there (measured, 95 % interval"
            f" {low:.2f} to {high:.2f}), which says nothing about the GPU that it is written for."
        )
    return (
        f"- On {run.gpu} as {run.arch}, which is another binary{bodies}: full check "
        f"{run.status.value}{times}\n"
    )
