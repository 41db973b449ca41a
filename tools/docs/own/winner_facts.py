"""What is said about a promoted winner beside its code: its speedups, as its receipt has them.

A receipt that is missing, damaged or of other code gives no speedup: it is then said so. Of an
unproven kernel it is said that it never ran on its GPU, and what else is known.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.candidate import Candidate
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import FOLDERS, evidence_of
from kopt.kernels.unproven_facts import read_facts
from kopt.tools.docs.words.code_tokens import arch_tag

from .corpus import CorpusFile, is_unproven


@dataclass(frozen=True)
class WinnerFacts:
    """One winning source, which may serve several workloads."""

    title: str
    """For example: winner of fused_add_rmsnorm, 1.25x on sm_90a."""
    about: str
    """One or two sentences."""
    archs: tuple[str, ...]


def winner_facts(file: CorpusFile) -> WinnerFacts:
    """Return the facts of the winner or unproven kernel in `file`."""
    folders = file.path.split("/")[:-1]
    problem = folders[-2] if folders[-1] in FOLDERS.values() else folders[-1]
    arch = _arch(file)
    if is_unproven(file.file):
        title = f"unproven kernel of {problem} for {arch}"
        about = " ".join((f"Never run on {arch}, no speedup is known.", *_known(file)))
    elif isinstance(receipt := _receipt(file), str):
        title = f"winner of {problem} on {arch}"
        about = f"Promoted winner; its speedup is not known: {receipt}."
    else:
        title = f"winner of {receipt.problem}, {receipt.geometric_mean_speedup:.2f}x on {arch}"
        about = _measured(receipt)
    tag = arch_tag(arch)
    return WinnerFacts(title, about, archs=(tag,) if tag else ())


def _known(file: CorpusFile) -> Iterator[str]:
    """Yield what the facts beside an unproven source say, as far as they are of this very code."""
    for path in evidence_of(file.file, Candidate(file.text).id):
        try:
            facts = read_facts(path)
        except ToolError:
            continue
        yield (
            f"{facts.kernel}: full check on sim {facts.sim.status},"
            f" estimated {facts.own.estimated_us:.2f} us on {facts.gpu},"
            f" the reference kernel {facts.reference.estimated_us:.2f} us."
        )


def _receipt(file: CorpusFile) -> Receipt | str:
    """Return the receipts of a source, which must be whole and of this very code, or why not."""
    receipts = evidence_of(file.file)
    if not receipts:
        return "there is no receipt"
    of_it = evidence_of(file.file, Candidate(file.text).id)
    if not of_it:
        return "its receipt is of other code"
    # A fifth of a second of CPU, which only those pay whose index is made anew.
    from kopt.tools.bench.receipt_parts import read_promotion

    try:
        return read_promotion(of_it[0])
    except ToolError:
        return "its receipt cannot be read or was damaged"


def _measured(receipt: Receipt) -> str:
    speedups = ", ".join(
        f"{one.workload} {one.speedup:.3f}x ({one.range[0]:.3f} to {one.range[1]:.3f})"
        f" against {one.baseline.name}"
        for one in receipt.workloads
    )
    return (
        f"Promoted winner; its receipt claims, measured on {receipt.device.name} ({receipt.arch})"
        f" on {receipt.promoted_at[:10]}: speedup {speedups}."
    )


def _arch(file: CorpusFile) -> str:
    """Return the `sm_90a` of `silu_and_mul.sm_90a.cu`."""
    return file.path.removesuffix(".cu").rsplit(".", 1)[-1]
