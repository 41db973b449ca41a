"""The README of an export: what it is, how to build, test and call it, what was proven."""

from .dispatch_file import served_shapes, served_when
from .receipt_words import receipt_words
from .routes import Route
from .signature import Signature
from .subject import Form, Subject
from .template_files import filled

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


def _proof(subject: Subject) -> str:
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
