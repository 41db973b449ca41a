"""The README of an export: what it is, how to build, test and call it, what was proven."""

from collections.abc import Sequence

from kopt.kernels.receipt import Receipt, WorkloadEvidence
from kopt.kernels.unproven_facts import OtherGpuRun, UnprovenFacts

from .dispatch_file import served_shapes, served_when
from .file_text import filled
from .routes import Route
from .signature import Signature
from .subject import ExportSubject, Form

_USE: dict[Form, str] = {
    "cuda": "use_cuda.md",
    "torch": "use_torch.md",
    "tvm-ffi": "use_tvm_ffi.md",
    "flashinfer-trace": "use_trace.md",
}


def readme(signature: Signature, routes: tuple[Route, ...], form: Form) -> str:
    """Return README.md."""
    subject = signature.subject
    words = {
        "NAME": subject.name,
        "DESCRIPTION": " ".join(subject.problem.description.split()),
        "ARGUMENTS": ", ".join(t.name for t in signature.inputs),
        "ARCH": subject.arch,
    }
    parts = [
        f"# {subject.name}\n\n{words['DESCRIPTION']}\n",
        filled(_USE[form], words),
        "## Which shapes\n\n" + _shapes(signature, routes),
        "## What was proven\n\n" + _proof(subject),
        "## What to know\n\n" + _notes(signature, form),
        filled("about_test.md", words),
    ]
    return "\n".join(parts)


def _shapes(signature: Signature, routes: tuple[Route, ...]) -> str:
    subject = signature.subject
    where = subject.header.where.strip()
    needs = [] if where == "true" else [f"`{where}`"]
    needs += [f"{axis} a multiple of {number}" for axis, number in signature.exact_multiples()]
    rows = "".join(_row(signature, route) for route in routes)
    if subject.unserved:
        rows += "| otherwise | nothing: refused | | |\n"
    return (
        f"Compiled for {subject.arch}."
        + (f" A shape needs {' and '.join(needs)}." if needs else "")
        + " The first *when* that holds decides; a shape that it was not built for is refused with"
        " a reason, before anything is launched. The test covers the workloads; another shape runs"
        " the same code and was compared with nothing.\n\n"
        f"| when | built for | workloads | tune values |\n|---|---|---|---|\n{rows}"
    )


def _row(signature: Signature, route: Route) -> str:
    values = [f"{name}={route.defines[name]}" for name in signature.subject.header.tune]
    cells = (
        served_when(signature, route) or "always",
        served_shapes(signature, route) or "all",
        ", ".join(route.workloads),
        ", ".join(values) or "none",
    )
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def _proof(subject: ExportSubject) -> str:
    source = f"Source: {subject.origin}, SHA-256 `{subject.candidate.id}`.\n\n"
    if subject.receipt is None:
        return source + (subject.facts or _NO_RECEIPT)
    return source + receipt_words(subject.receipt)


_NO_RECEIPT = (
    "There is no receipt: neither its results nor its speed were proven by a promotion on a GPU."
    " Run the test below before you use it, and `kopt bench FILE --promote` for a proven speedup.\n"
)


def _notes(signature: Signature, form: Form) -> str:
    subject = signature.subject
    static = [tensor.name for tensor in subject.problem.tensors if tensor.static]
    notes: list[str] = []
    if signature.is_dependent:
        notes.append(
            "The kernel is launched with programmatic stream serialization: it starts before the"
            " kernel before it in the stream has ended, and waits before it touches what that one"
            " may write."
            + (
                f" {_listed(static)} may be read before that wait: no earlier kernel may still"
                f" write {'it' if len(static) == 1 else 'them'}. Put a launch without programmatic"
                " serialization, or a synchronization, in between."
                if static
                else ""
            )
        )
    if subject.header.fast_math:
        notes.append(
            "kopt compiles it with --use_fast_math. "
            + (
                "FlashInfer-Trace carries no compiler flags, so that its builds are without it:"
                " other instructions, perhaps another time."
                if form == "flashinfer-trace"
                else "The build here does so too."
            )
        )
    fixed = [f"{scalar.name} = {scalar.value!r}" for scalar in signature.fixed_scalars]
    if fixed:
        notes.append(f"Constants of the kernel: {', '.join(fixed)}.")
    if form != "flashinfer-trace" and signature.scalars:
        defaults = ", ".join(f"{s.name} = {s.value!r}" for s in signature.scalars)
        notes.append(
            f"kopt's workloads have {defaults} alone; other values are taken all the same."
        )
    padded = [t.name for t in signature.outputs if t.layout != "row_major"]
    if padded:
        notes.append(f"{_listed(padded)} has padding that is never written.")
    notes.append("Tensors are contiguous; the C++ header has the alignment that each needs.")
    return "".join(f"- {note}\n" for note in notes)


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def receipt_words(receipt: Receipt) -> str:
    """Return Markdown: what was checked and measured, on what, and what was not."""
    device = receipt.device
    rows = "".join(_measured_row(one) for one in receipt.workloads)
    return (
        f"Receipt: digest `{receipt.digest}`, {receipt.promoted_at[:10]}, kopt "
        f"{receipt.kopt_version}. Measured on {device.name} (driver {device.driver_version}, CUDA "
        f"{device.cuda_version}), compiled by {receipt.toolchain.compiler}"
        f" {receipt.toolchain.version}. Each row is the median of {_counts(receipt)} in fresh"
        " processes, cold L2, each paired with the baseline;"
        " the range runs from the least to the greatest of them.\n\n"
        "| workload | baseline | baseline us | kernel us | speedup | range |\n"
        f"|---|---|---|---|---|---|\n{rows}\n"
        f"{_checked(receipt)}\n\n"
        "`kopt verify RECEIPT` measures it again. The figures are of kopt's own build, run in a"
        " CUDA graph. The same compiler makes the same machine code of this folder; the host code"
        " here adds its own time to a call that no graph holds.\n"
    )


def _counts(receipt: Receipt) -> str:
    counts = sorted({len(one.measurements) for one in receipt.workloads})
    return f"{' or '.join(str(count) for count in counts)} measurements"


def _measured_row(one: WorkloadEvidence) -> str:
    latencies = sorted(m.latency.median_us for m in one.measurements)
    baselines = sorted(m.baseline_latency.median_us for m in one.measurements)
    middle = len(latencies) // 2
    return (
        f"| {one.workload} | {one.baseline.label} | {baselines[middle]:.2f} | "
        f"{latencies[middle]:.2f} | {one.speedup:.3f}x | {one.range[0]:.3f} to "
        f"{one.range[1]:.3f} |\n"
    )


def _checked(receipt: Receipt) -> str:
    """Return what stood before the measurements, and what no tool judged."""
    silent = [
        f"{run.tool} at {result.kernel} ({run.reason or run.outcome})"
        for result in receipt.sanitizer
        for run in result.runs
        if run.outcome in ("unavailable", "timeout")
    ]
    judged = (
        "compute-sanitizer found nothing"
        if receipt.sanitizer and not silent
        else f"not judged by compute-sanitizer: {'; '.join(silent) or 'everything'}"
    )
    flags = f" Flagged: {'; '.join(receipt.flagged)}." if receipt.flagged else ""
    return (
        f"Before that it passed kopt's {receipt.check.level} check at every workload, hidden seeds"
        f" included; {judged}.{flags}"
    )


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
