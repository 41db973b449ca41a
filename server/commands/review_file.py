"""`kopt review FILE --claim 1.7x`: whether a kernel that somebody else says is fast, is."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from kopt.config.callbacks import ignore
from kopt.config.counted import counted
from kopt.config.device_names import asks_for_simulator
from kopt.config.errors import SetupError, ToolError
from kopt.config.files import ensure_folder, write_atomically
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Workload
from kopt.kernels.review_result import Claim, ReviewAnswer, ReviewResult
from kopt.server.exits import ExitCode
from kopt.server.find_case import case_of, find_case, refuse_foreign_kernel
from kopt.server.opened_device import DeviceChoice, opened_device
from kopt.server.options import (
    device_arch_option,
    device_option,
    file_argument,
    tune_option,
)
from kopt.server.progress import status_line
from kopt.server.review_reference import import_reference, reference_words
from kopt.server.session import Session, command_body
from kopt.server.views.review_page import review_markdown, review_view
from kopt.server.work.stages import review, review_torch
from kopt.tools.device_choice import device_name
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.facts.wording import short_id
from kopt.tools.pytorch.importing.stage import ImportResult
from kopt.tools.review.extension_call import (
    ExtensionCall,
    default_call,
    is_torch_extension,
    read_call,
)
from kopt.tools.review.extension_stage import ExtensionRequest
from kopt.tools.review.stage import ReviewRequest, refuse_unknown_baseline

EPILOG = """\b
Examples:
  kopt review theirs.cu --claim 1.7x --kernel silu_and_mul_b8xh14336
  kopt review theirs.cu --claim 1.3 --mean --kernel silu_and_mul_b8xh14336
  kopt review theirs.cu --claim 2x --against reference --kernel silu_and_mul_b8xh14336
  kopt review theirs.cu --claim 2x --reference model.py
  kopt review ext.cu --claim 2x --kernel silu_and_mul_b8xh14336 --call 'out = forward(input)'
  kopt review theirs.cu --claim 50x --kernel silu_and_mul_b8xh14336 --device sim --arch sm_90a

\b
Full check, compute-sanitizer and paired timing at every workload that the header
claims, and the most that physics leaves; then one page (docs/review.md has the
rule). On sim nothing is timed: what is wrong is refuted there, and a claim that
no kernel can reach on a GPU of --arch, where a winner's receipt has a baseline's
time.
Exit codes: 0 the claim holds, 1 it does not, 2 wrong usage, 3 it cannot be told,
or this machine lacks something."""

_EXIT_CODES: dict[ReviewAnswer, ExitCode] = {
    "holds": ExitCode.PASSED,
    "does_not_hold": ExitCode.FELL_SHORT,
    "cannot_be_told": ExitCode.MACHINE,
}
_MOST = 1e6  # a claim beyond is a slip of the pen


def _speedup(_: click.Context, __: click.Parameter, text: str) -> float:
    """Read `1.7x` or `1.7`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*[xX\u00d7]?", text.strip())
    if found is None:
        raise click.BadParameter(
            f"{text!r} is not of the form 1.7x: baseline time / the kernel's time"
        )
    speedup = float(found[1])
    if not 1 < speedup <= _MOST:
        raise click.BadParameter(f"{text}: a claim is above 1x, and at most {_MOST:,.0f}x")
    return speedup


@dataclass(frozen=True)
class ReviewOptions:
    """The options of `kopt review`."""

    file: Path
    claim: float
    kernel: str | None
    reference: Path | None
    against: str | None
    mean: bool
    device: str
    arch: str | None
    tune: dict[str, int] | None
    page: Path | None
    call: str | None


@click.command("review", epilog=EPILOG)
@file_argument()
@click.option(
    "--claim",
    required=True,
    callback=_speedup,
    metavar="SPEEDUP",
    help="What is claimed: 1.7x, baseline time / the kernel's time.",
)
@click.option(
    "--kernel",
    metavar="ID",
    help="Kernel id (kopt list) that the claim is of. Default: the problem in whose folder the "
    "file lies, and every workload that the header claims.",
)
@click.option(
    "--reference",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.py",
    help="In place of --kernel the PyTorch module or function that it replaces, of which a problem "
    "is made as by kopt new.",
)
@click.option(
    "--against",
    metavar="NAME",
    help="The claim's baseline: a library's function as `kopt show ID` names it, or reference.  "
    "[default: the fastest that does the same work]",
)
@click.option(
    "--mean",
    is_flag=True,
    help="The claim is of the geometric mean over every workload that the header claims.",
)
@device_option
@device_arch_option
@tune_option
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the page is written, as Markdown.  [default: a file in KOPT_HOME/reviews]",
)
@click.option(
    "--call",
    metavar="TEXT",
    help="Of a torch extension: how it is called with the kernel's tensors and scalars, e.g. "
    "'out = forward(input)' or 'silu(out, input)'.  [default: its only function, given all inputs, "
    "then the scalars]",
)
@command_body(ReviewOptions)
def command(session: Session, options: ReviewOptions) -> int:
    """Say whether a kernel is as fast as somebody claims: it holds, does not, or cannot be told.

    FILE is a candidate, checked and timed as your own would be, or a torch extension
    (PYBIND11_MODULE or TORCH_LIBRARY), of which wrong results are refuted and no time is believed.
    Nothing that its author says counts, and the page has everything that the answer rests on.
    """
    settings, told = session.settings, tuple[str, ...]()
    if options.reference is not None:
        options, settings, made = _with_reference(options.reference, options, session)
        told = reference_words(made)
    claim = Claim(speedup=options.claim, against=options.against, is_mean=options.mean)
    reviewed = _reviewed(options, settings)
    refuse_unknown_baseline(claim, reviewed.case.problem)
    path = options.page or _default_page(reviewed.case, settings)
    _refuse_unwritable(path)

    def make(keep: Callable[[ReviewResult], None]) -> ReviewResult:
        choice = DeviceChoice(options.device, options.arch, has_spare=False, is_fresh=True)
        with (
            status_line(quiet=session.as_json) as show,
            opened_device(choice, settings, show) as opened,
        ):
            request = ReviewRequest(
                reviewed.case, claim, reviewed.claimed, progress=show, keep=keep
            )
            if reviewed.call is None:
                result = review(request, opened, settings)
            else:
                asked = ExtensionRequest(request, reviewed.call)
                result = review_torch(asked, opened, settings)
        result = result.model_copy(update={"page_path": str(path), "reference": told})
        _write(path, review_markdown(result))
        return result

    found = session.show_growing(make, review_view, _amount, _page_of)
    return ExitCode.INTERRUPTED if found is None else _EXIT_CODES[found.answer]


def _with_reference(
    reference: Path, options: ReviewOptions, session: Session
) -> tuple[ReviewOptions, Settings, ImportResult]:
    """Return the options with the kernel that `reference` is made, and settings that know it.

    Raises:
        click.UsageError: A kernel is named, too.
        ToolError: The file cannot be imported.
        SetupError: torch is not installed, or the page cannot be written.
    """
    if options.kernel is not None:
        raise click.UsageError("--reference makes a problem of its own: leave --kernel out")
    if options.page is not None:
        _refuse_unwritable(options.page)
    with status_line(quiet=session.as_json) as show:
        made = import_reference(reference, session.settings, show)
    # The simulator takes the small shape, a GPU the one that the claim is of.
    pick = min if asks_for_simulator(device_name(options.device, ignore)) else max
    workload = pick(made.workloads, key=lambda one: one.tensor_bytes)
    known = replace(session.settings, problems=Path(made.folder).parent)
    return replace(options, kernel=workload.kernel, reference=None), known, made


def _page_of(result: ReviewResult) -> NextCommand:
    return NextCommand(("cat", result.page_path or ""), "what the answer rests on")


@dataclass(frozen=True)
class _Reviewed:
    """What is reviewed."""

    case: Case
    claimed: tuple[Workload, ...]
    call: ExtensionCall | None = None
    """How a torch extension is called; None for a candidate."""


def _reviewed(options: ReviewOptions, settings: Settings) -> _Reviewed:
    """Return the candidate or the extension in the file, with its kernel.

    Raises:
        ToolError: The file cannot be read, or its kernel or the call of an extension is not clear.
        click.UsageError: Options that do not go with what the file is.
    """
    source = read_candidate(options.file)
    if is_torch_extension(source.source):
        return _extension(options, source, settings)
    if options.call is not None:
        raise click.UsageError("--call is for a torch extension; a candidate's header says it")
    case = find_case(options.file, options.kernel, settings, options.tune)
    if options.kernel is not None:
        refuse_foreign_kernel(case)
        return _Reviewed(case, (case.workload,))
    case = case.at(case.domain[0]) if case.domain else case
    return _Reviewed(case, case.domain_from_here)


def _extension(options: ReviewOptions, source: Candidate, settings: Settings) -> _Reviewed:
    if options.mean or options.tune is not None:
        raise click.UsageError("--mean and --tune are for candidates: this is a torch extension")
    if options.kernel is None:
        raise ToolError(
            f"{options.file} is a torch extension: name the kernel that it computes with --kernel"
            " ID (kopt list), or the PyTorch code that it replaces with --reference FILE.py"
        )
    case = case_of(source, options.kernel, settings)
    call = (
        default_call(source.source, case.problem)
        if options.call is None
        else read_call(options.call, case.problem)
    )
    return _Reviewed(case, (case.workload,), call)


def _default_page(case: Case, settings: Settings) -> Path:
    stem = re.sub(r"[^\w.-]", "_", case.candidate.name.removesuffix(".cu"))[:60]
    name = f"{case.kernel_id}.{stem}-{short_id(case.candidate.id)}.md"
    return ensure_folder(settings.reviews) / name


def _refuse_unwritable(path: Path) -> None:
    """Refuse, before minutes of work, a page that could not be written.

    Raises:
        SetupError: Its folder does not exist or cannot be written.
    """
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise SetupError(f"cannot write {path}: {folder} is no folder that can be written")


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text, mode=0o644)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from error


def _amount(result: ReviewResult) -> str:
    timed = sum(one.bench is not None for one in result.workloads)
    return f"the check, and the timing of {timed} of {counted(len(result.workloads), 'workload')}"
