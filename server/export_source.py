"""What `kopt export WINNER` names: a receipt, a source file, a run's candidate, or a kernel id."""

import re
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import EVIDENCE, evidence_of, kernels_in, shipped_kernels
from kopt.kernels.unproven_facts import read_facts
from kopt.search.records.members import Member
from kopt.search.reports.run_report import view_run
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_parts import read_promotion
from kopt.tools.bench.reproduction import case_of, problem_of
from kopt.tools.export.readme import unproven_words
from kopt.tools.export.subject import ExportSubject

from .find_case import find_case, refuse_unknown_tune

_OF_RUN = re.compile(r"(?P<run>[^/]+)/(?P<seq>\d+)")
_ARCH = re.compile(r"\.(sm_\d{2,3}[af]?)\.cu$")


@dataclass(frozen=True)
class ExportChoice:
    """What the command line says beside WINNER."""

    kernel: str | None
    """The kernel that a source file is for."""
    arch: str | None
    """What the kernel is compiled for."""
    tune: dict[str, int] | None


def find_subject(winner: str, choice: ExportChoice, settings: Settings) -> ExportSubject:
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
        return _of_run(match["run"], int(match["seq"]), choice, settings)
    return _of_kernel(winner, choice, settings)


def _of_receipt(path: Path, choice: ExportChoice, settings: Settings) -> ExportSubject:
    receipt = read_promotion(path)
    if choice.tune:
        raise ToolError("--tune: a receipt has the tune values that it proves; name the .cu file")
    if choice.arch not in (None, receipt.arch):
        raise ToolError(
            f"--arch {choice.arch}: the receipt is of {receipt.arch}; name the .cu file"
        )
    case = case_of(receipt, problem_of(receipt, settings))
    return _subject(case, receipt.arch, f"the receipt {path.name}", receipt=receipt)


def _subject(
    case: Case, arch: str, origin: str, *, receipt: Receipt | None = None, facts: str = ""
) -> ExportSubject:
    return ExportSubject(
        case.problem,
        case.workload,
        case.candidate,
        case.tune,
        arch=arch,
        origin=origin,
        receipt=receipt,
        facts=facts,
    )


def _of_source(path: Path, choice: ExportChoice, settings: Settings) -> ExportSubject:
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
    return _subject(case, arch, f"the file {path.name}", facts=words)


def _of_run(run: str, seq: int, choice: ExportChoice, settings: Settings) -> ExportSubject:
    with view_run(run, settings) as (reader, folder):
        state = reader.state()
        members = {member.seq: member for member in reader.members()}
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
    return _subject(case, arch, f"candidate {seq} of {folder.name}", facts=_run_facts(member))


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


def _of_kernel(kernel: str, choice: ExportChoice, settings: Settings) -> ExportSubject:
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
