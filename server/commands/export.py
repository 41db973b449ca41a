"""`kopt export WINNER --as FORM`: a kernel as ordinary code, with its launcher and its test."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from kopt.config.errors import ToolError
from kopt.config.plain_text import plain
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.shipped_kernels import EVIDENCE, evidence_of, kernels_in, shipped_kernels
from kopt.kernels.unproven_facts import read_facts
from kopt.search.records.members import Member
from kopt.search.reports.run_report import view_run
from kopt.server.exits import ExitCode
from kopt.server.find_case import find_case, refuse_unknown_tune
from kopt.server.options import arch_or_none_option, kernel_option, to_folder_option, tune_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.diagnostics import unserved_lines
from kopt.server.views.tables import View
from kopt.server.what_next import after_export
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_parts import read_promotion
from kopt.tools.bench.receipt_seal import STANDINGS, standing_of
from kopt.tools.bench.reproduction import case_of, problem_of
from kopt.tools.export.exported_kernel import FORMS, ExportedKernel, Form
from kopt.tools.export.host_screen import refuse_host_code
from kopt.tools.export.readme import unproven_words
from kopt.tools.export.stage import ExportResult, export, refuse_full_folder

EPILOG = """\b
Examples:
  kopt export b8xh4096.sm_90a.receipt.json --as torch
  kopt export fused_add_rmsnorm_b8xh4096 --as cuda -o fused_add_rmsnorm/
  kopt export run-20260101-120000-000 --as torch
  kopt export run-20260101-120000-000/12 --as tvm-ffi
  kopt export kb/level1/l1_19_relu/reference.cu --arch sm_90a --as torch --module
  kopt export kb/level1/l1_19_relu/reference.cu --arch sm_90a --as kernelbench
  kopt export mine.cu --kernel silu_and_mul_b8xh14336 --arch sm_90a --as cuda

\b
WINNER is a receipt, a source (a receipt beside it is taken along), RUN for the
winner of a run, RUN/NUMBER for a candidate of it, or a kernel id, which means its
promoted winner. The folder builds and tests itself: its README has the command
(docs/export.md).
Exit codes: 0 written, 2 nothing that can be exported so, 3 the folder cannot be
written."""
_OF_RUN = re.compile(r"(?P<run>[^/]+)/(?P<seq>\d+)|(?P<whole>run-[\w-]+|[\d-]+)")
_ARCH = re.compile(r"\.(sm_\d{2,3}[af]?)\.cu$")


@click.command("export", epilog=EPILOG)
@click.argument("winner", metavar="WINNER")
@click.option(
    "--as",
    "form",
    required=True,
    type=click.Choice(FORMS),
    help="cuda: C++ and CUDA sources, make and CMake. torch: a package with an operator. tvm-ffi: "
    "a package with a function of TVM-FFI. flashinfer-trace: a Solution with its Definition. "
    "kernelbench: a file with ModelNew, of a kernel for an imported module.",
)
@to_folder_option("A new or empty folder.  [default: ./PROBLEM-FORM]")
@click.option(
    "--module",
    is_flag=True,
    help="With --as torch, of a kernel for an imported module: an nn.Module with its state_dict.",
)
@kernel_option(required=False)
@arch_or_none_option(
    "Compiler target.  [default: what the receipt, the run or the file's name says]"
)
@tune_option
@command_body()
def command(
    session: Session, winner: str, form: Form, folder: Path | None, *, module: bool, **choice: Any
) -> int:
    """Write a kernel as ordinary code: sources, launcher, binding, test against the oracle."""
    if module and form != "torch":
        raise ToolError(f"--module is of --as torch: --as {form} has no nn.Module")
    exported = kernel_to_export(winner, ExportChoice(**choice), session.settings)
    place = folder or Path(f"{exported.name}-{form}")
    refuse_full_folder(place)
    with status_line(quiet=session.as_json) as show:
        refuse_host_code(exported, session.settings, show)
        show("writing")
        result = export(exported, form, place, module=module)
    session.show(result, export_view(result), after_export(result))
    return ExitCode.PASSED


def export_view(result: ExportResult) -> View:
    """Yield where the export lies, what proves it, and how to build and test it."""
    proof = "without a receipt: nothing proves its results or its speed"
    if result.receipt and result.standing:
        proof = f"receipt {result.receipt[:12]}, {STANDINGS[result.standing]}"
    yield Text(f"{result.folder}: {len(result.files)} files, {result.form}, {result.arch}, {proof}")
    yield Text(f"serves {', '.join(result.kernels)}")
    yield from unserved_lines(result.unserved)
    yield Text(f"test it on a GPU: cd {result.folder} && {result.test}")


@dataclass(frozen=True)
class ExportChoice:
    """The options of `kopt export` that say which kernel WINNER means."""

    kernel: str | None
    """The kernel that a source file is for."""
    arch: str | None
    """What the kernel is compiled for."""
    tune: dict[str, int] | None


def kernel_to_export(winner: str, choice: ExportChoice, settings: Settings) -> ExportedKernel:
    """Return the kernel that `winner` names.

    Raises:
        ToolError: It names nothing, or something that needs an option; the message says which.
    """
    path = Path(winner)
    if winner.endswith(".json"):
        return _of_receipt(path, choice, settings)
    if winner.endswith(".cu") or path.is_file():
        return _of_source(path, choice, settings)
    if path.is_dir():
        raise ToolError(f"{winner} is a folder: name a receipt or a .cu file in it")
    match = _OF_RUN.fullmatch(winner)
    if match is not None:
        seq = None if match["seq"] is None else int(match["seq"])
        return _of_run(match["run"] or match["whole"], seq, choice, settings)
    return _of_kernel(winner, choice, settings)


def _of_receipt(path: Path, choice: ExportChoice, settings: Settings) -> ExportedKernel:
    receipt = read_promotion(path)
    if choice.tune:
        raise ToolError("--tune: a receipt has the tune values that it proves; name the .cu file")
    if choice.arch not in (None, receipt.arch):
        raise ToolError(
            f"--arch {choice.arch}: the receipt is of {receipt.arch}; name the .cu file"
        )
    case = case_of(receipt, problem_of(receipt, settings))
    proven = {entry.workload for entry in receipt.workloads}
    missing = ", ".join(name for name in receipt.claimed if name not in proven)
    remark = f" (no receipt beside it is of this source for {missing})" if missing else ""
    exported = _exported(case, receipt.arch, f"the receipt {path.name}{remark}")
    standing = standing_of(receipt.read, settings)
    return replace(exported, receipt=receipt, standing=standing)


def _exported(case: Case, arch: str, origin: str, facts: str = "") -> ExportedKernel:
    return ExportedKernel(
        case.problem,
        case.workload,
        Candidate(case.candidate.source, plain(case.candidate.name, "")),
        case.tune,
        arch=arch,
        origin=plain(origin, ""),
        facts=plain(facts),
    )


def _of_source(path: Path, choice: ExportChoice, settings: Settings) -> ExportedKernel:
    case = find_case(path, choice.kernel, settings, choice.tune)
    beside = evidence_of(path, case.candidate.id)
    receipts = [one for one in beside if one.name.endswith(EVIDENCE["winner"])]
    if receipts and not choice.tune and choice.arch in (None, read_receipt(receipts[0]).arch):
        return _of_receipt(receipts[0], choice, settings)
    named = _ARCH.search(path.name)
    arch = choice.arch or (named[1] if named else None)
    if arch is None:
        raise ToolError(f"{path} does not say for which GPU it is: name --arch, e.g. --arch sm_90a")
    facts = [] if choice.tune else [read_facts(one) for one in beside if one not in receipts]
    words = unproven_words([one for one in facts if one.arch == arch])
    return _exported(case, arch, f"the file {path.name}", facts=words)


def _of_run(run: str, seq: int | None, choice: ExportChoice, settings: Settings) -> ExportedKernel:
    with view_run(run, settings) as (reader, folder):
        state = reader.state()
        members = {member.seq: member for member in reader.members()}
    seq = state.winner if seq is None else seq
    if seq is None:
        raise ToolError(
            f"{folder.name} has no winner: name a candidate of it, as {folder.name}/0; see"
            f" 'kopt runs show {folder.name}'"
        )
    if seq not in members:
        raise ToolError(
            f"{folder.name} has no candidate {seq}; its {len(members)} are numbered from 0, see"
            f" 'kopt runs show {folder.name}'"
        )
    member = members[seq]
    kernel = find_kernel(state.settings.kernel, settings.problems)
    asked = Case(*kernel, Candidate(member.source, member.source_name), choice.tune or {})
    refuse_unknown_tune(asked)
    case = asked.with_tune({**member.tune, **asked.tune})
    arch = choice.arch or state.settings.arch
    return _exported(case, arch, f"candidate {seq} of {folder.name}", facts=_run_facts(member))


def _run_facts(member: Member) -> str:
    """Return what the run found out about a candidate, which is no receipt."""
    last = member.full or member.quick
    if last is None:
        return ""
    level = "full" if member.full else "quick"
    return (
        f"Its run's {level} evaluation on {last.device}: {last.status.value}. {last.summary}\n\n"
        "That is no receipt: run the test below before you use it, and `kopt bench FILE --promote`"
        " for a proven speedup.\n"
    )


def _of_kernel(kernel: str, choice: ExportChoice, settings: Settings) -> ExportedKernel:
    """Return the promoted winner of a kernel id: one of kopt's own, else one of this machine."""
    problem, workload = find_kernel(kernel, settings.problems)
    found = {
        one.arch: one.source
        for folder in (settings.winners / problem.name, problem.folder / "winners")
        for one in kernels_in(folder, workload)
    }
    if choice.arch is None and len(found) > 1:
        raise ToolError(f"{kernel} has winners for {', '.join(sorted(found))}: choose by --arch")
    arch = choice.arch or next(iter(found), None)
    if arch is None or arch not in found:
        raise ToolError(_no_winner(kernel, arch, sorted(found), (problem, workload)))
    return _of_source(found[arch], ExportChoice(kernel, arch, choice.tune), settings)


def _no_winner(
    kernel: str, arch: str | None, others: list[str], of: tuple[Problem, Workload]
) -> str:
    problem, workload = of
    wanted = f" for {arch}" if arch else ""
    there = f"; there is one for {', '.join(others)}" if others else ""
    unproven = [k for k in shipped_kernels(problem, workload) if k.standing == "unproven"]
    hint = f", and {unproven[0].source} was never run on its GPU" if unproven else ""
    return (
        f"{kernel} has no promoted winner{wanted}{there}{hint}. Name a file to export it all the"
        " same, or promote one: kopt bench FILE --promote"
    )
