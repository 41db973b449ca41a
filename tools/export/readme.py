"""The README of an export: what it is, how to build, test and call it, what was proven."""

from collections.abc import Sequence
from statistics import median_high

from kopt.kernels.receipt import Receipt
from kopt.kernels.unproven_facts import UnprovenFacts
from kopt.tools.bench.receipt_seal import STANDINGS

from .dispatch_file import served_shapes, served_when
from .exported_kernel import Form
from .file_text import cell, filled
from .routes import Route
from .signature import Signature

_USE: dict[Form, str] = {
    "cuda": "use_cuda.md.txt",
    "torch": "use_torch.md.txt",
    "tvm-ffi": "use_tvm_ffi.md.txt",
    "flashinfer-trace": "use_trace.md.txt",
    "kernelbench": "use_kernelbench.md.txt",
}
_NO_RECEIPT = (
    "There is no receipt: neither its results nor its speed were proven by a promotion on a GPU."
    " Run the test below before you use it, and `kopt bench FILE --promote` for a proven speedup.\n"
)
_HEADINGS = {
    (False, False): "What is known",
    (True, False): "What the receipt claims",
    (True, True): "What was proven",
}
"""By whether there is a receipt, and whether this machine has measured what it says."""


def readme(
    signature: Signature, routes: tuple[Route, ...], form: Form, *, module: bool = False
) -> str:
    """Return README.md."""
    exported = signature.exported
    padded = [tensor.name for tensor in signature.outputs if tensor.layout != "row_major"]
    return filled(
        "README.md",
        **signature.words,
        form=form,
        module=module,
        use=_USE[form],
        needs=_needs(signature),
        builds=[_cells(signature, route) for route in routes],
        early=_early_reads(signature),
        padded=_listed(padded),
        no_receipt=_NO_RECEIPT,
        receipt=exported.receipt,
        heading=_HEADINGS[exported.receipt is not None, exported.is_proven],
        standing=STANDINGS[exported.standing],
        **({} if exported.receipt is None else _proof_words(exported.receipt)),
    )


def _needs(signature: Signature) -> str:
    where = signature.exported.header.where.strip()
    needs = [] if where == "true" else [f"`{where}`"]
    needs += [f"{axis} a multiple of {number}" for axis, number in signature.exact_multiples()]
    return f" A shape needs {' and '.join(needs)}." if needs else ""


def _cells(signature: Signature, route: Route) -> list[str]:
    """Return a row of the table of shapes."""
    values = [f"{name}={route.defines[name]}" for name in signature.exported.header.tune]
    cells = (
        served_when(signature, route) or "always",
        served_shapes(signature, route) or "all",
        ", ".join(route.workloads),
        ", ".join(values) or "none",
    )
    return [cell.replace("|", "\\|") for cell in cells]


def _early_reads(signature: Signature) -> str:
    """Return which tensors a dependent launch may read before its wait."""
    static = [tensor.name for tensor in signature.exported.problem.tensors if tensor.static]
    if not static:
        return ""
    return (
        f" {_listed(static)} may be read before that wait: no earlier kernel may still"
        f" write {'it' if len(static) == 1 else 'them'}. Put a launch without programmatic"
        " serialization, or a synchronization, in between."
    )


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _proof_words(receipt: Receipt) -> dict[str, object]:
    """Return what was measured, what stood before that, and what no tool judged."""
    silent = [
        cell(f"{run.tool} at {result.kernel} ({run.reason or run.outcome})")
        for result in receipt.sanitizer
        for run in result.runs
        if run.outcome in ("unavailable", "timeout")
    ]
    judged = f"not judged by compute-sanitizer: {'; '.join(silent) or 'everything'}"
    if receipt.sanitizer and not silent:
        judged = "compute-sanitizer found nothing"
    races = receipt.check.race_check
    if races is not None:
        judged += f"; {cell(races.words)}"
    counts = sorted({len(one.measurements) for one in receipt.workloads})
    return {
        "counts": " or ".join(map(str, counts)),
        "measured": [
            (
                one,
                median_high(m.baseline_latency.median_us for m in one.measurements),
                median_high(m.latency.median_us for m in one.measurements),
            )
            for one in receipt.workloads
        ],
        "judged": judged,
        "flags": f" Flagged: {'; '.join(map(cell, receipt.flagged))}." if receipt.flagged else "",
    }


def unproven_words(kernels: Sequence[UnprovenFacts]) -> str:
    """Return Markdown on one source at each workload that it has facts of; no words for none.

    Nothing was measured there; it says what was found out without that GPU.
    """
    return filled("unproven.md", first=kernels[0], kernels=kernels) if kernels else ""
