"""What is said about a promoted winner beside its code: its speedups, as its receipt has them.

A receipt that is missing, damaged or of other code gives no speedup: it is then said so. Of an
unproven kernel it is said that it never ran on its GPU, and what else is known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.candidate import Candidate
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import FOLDERS
from kopt.kernels.unproven_facts import facts_of, read_facts
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.docs.code_tokens import arch_tag

from .corpus import CorpusFile, is_unproven, receipt_of


@dataclass(frozen=True)
class WinnerFacts:
    """One winning source, which may serve several workloads."""

    file: CorpusFile
    title: str
    """For example: winner of fused_add_rmsnorm, 1.25x on sm_90a."""
    about: str
    """One or two sentences."""
    archs: tuple[str, ...]
    also_at: tuple[str, ...]
    """The files of its other workloads."""


def winner_facts(winners: Iterable[CorpusFile]) -> list[WinnerFacts]:
    """Return the facts of each distinct source among `winners`."""
    by_source: dict[tuple[str, bytes], list[CorpusFile]] = {}
    for file in winners:
        by_source.setdefault((_arch(file), file.data), []).append(file)
    return [_facts(files) for files in by_source.values()]


def _facts(files: list[CorpusFile]) -> WinnerFacts:
    first = files[0]
    folders = first.path.split("/")[:-1]
    problem = folders[-2] if folders[-1] in FOLDERS.values() else folders[-1]
    arch = _arch(first)
    receipt, reason = (None, "") if is_unproven(first.file) else _receipt(files)
    if is_unproven(first.file):
        title = f"unproven kernel of {problem} for {arch}"
        about = " ".join((f"Never run on {arch}, no speedup is known.", *_known(files)))
    elif receipt is None:
        title = f"winner of {problem} on {arch}"
        about = f"Promoted winner; its speedup is not known: {reason}."
    else:
        title = f"winner of {receipt.problem}, {receipt.geometric_mean_speedup:.2f}x on {arch}"
        about = _measured(receipt)
    tag = arch_tag(arch)
    return WinnerFacts(
        file=first,
        title=title,
        about=about,
        archs=(tag,) if tag else (),
        also_at=tuple(f"{file.path}:1" for file in files[1:]),
    )


def _known(files: list[CorpusFile]) -> Iterator[str]:
    """Yield what the facts beside unproven sources say, as far as they are of this very code."""
    for file in files:
        try:
            facts = read_facts(facts_of(file.file))
        except ToolError:
            continue
        if facts.candidate == Candidate(file.text).id:
            yield (
                f"{facts.kernel}: full check on sim {facts.sim.status},"
                f" estimated {facts.own.estimated_us:.2f} us on {facts.gpu},"
                f" the reference kernel {facts.reference.estimated_us:.2f} us."
            )


def _receipt(files: list[CorpusFile]) -> tuple[Receipt | None, str]:
    """Return the first receipt that is whole and of this very source, or why there is none."""
    reason = "there is no receipt"
    for file in files:
        try:
            receipt = read_receipt(receipt_of(file.file))
        except ToolError:
            reason = "its receipt cannot be read or was damaged"
            continue
        if receipt.source.encode() == file.data:
            return receipt, ""
        reason = "its receipt is of other code"
    return None, reason


def _measured(receipt: Receipt) -> str:
    speedups = ", ".join(
        f"{one.workload} {one.speedup:.3f}x ({one.range[0]:.3f} to {one.range[1]:.3f})"
        f" against {one.baseline.name}"
        for one in receipt.workloads
    )
    return (
        f"Promoted winner, measured on {receipt.device.name} ({receipt.arch})"
        f" on {receipt.promoted_at[:10]}: speedup {speedups}."
    )


def _arch(file: CorpusFile) -> str:
    """Return the `sm_90a` of `b8xh64.sm_90a.cu`."""
    return file.path.removesuffix(".cu").rsplit(".", 1)[-1]
