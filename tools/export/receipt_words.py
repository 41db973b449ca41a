"""What the README of an export says about a kernel with a receipt."""

from kopt.kernels.receipt import Receipt, WorkloadEvidence


def receipt_words(receipt: Receipt) -> str:
    """Return Markdown: what was checked and measured, on what, and what was not."""
    device = receipt.device
    rows = "".join(_row(one) for one in receipt.workloads)
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


def _row(one: WorkloadEvidence) -> str:
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
