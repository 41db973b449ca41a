"""The case of a candidate: its kernel is named, or that of the folder in which its file lies."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import find_kernel, load_problem, load_problems
from kopt.kernels.shipped_kernels import evidence_of
from kopt.tools.review.extension_call import is_torch_extension


def find_case(
    file: Path, kernel_id: str | None, settings: Settings, tune: Mapping[str, int] | None = None
) -> Case:
    """Return the candidate in `file` with its kernel.

    Args:
        file: The candidate's source.
        kernel_id: Its kernel. Without one, a file below a problem folder belongs to that problem:
            to the first workload that a winner or unproven kernel serves, else to its first.
        settings: Where problems of the user's own are.
        tune: Tune values by name; those left out have their default.

    Raises:
        ToolError: The file cannot be read or is a torch extension, the id is unknown, the file lies
            in no problem, or a tune value is not declared.
    """
    candidate = read_named_candidate(file, kernel_id)
    case = Case(*_kernel_of(file, kernel_id, settings), candidate, tune or {})
    refuse_unknown_tune(case)
    return case


def read_named_candidate(file: Path, kernel_id: str | None) -> Candidate:
    """Return the candidate in a file that the user named, with the kernel id named beside it.

    Raises:
        ToolError: The file cannot be read or is a torch extension.
    """
    candidate = read_candidate(file)
    if is_torch_extension(candidate.source):
        raise ToolError(
            f"{file} is a torch extension and no candidate: kopt review {file} --claim 1.5x"
            f" --kernel {kernel_id or 'ID'} judges it (kopt list has the ids); to make its kernel a"
            " candidate, open a file with /* kopt: 1 and leave the host code out"
            " (docs/candidates.md)"
        )
    return candidate


def case_of(
    candidate: Candidate, kernel_id: str, settings: Settings, tune: Mapping[str, int] | None = None
) -> Case:
    """Return a candidate with the kernel that is named, its tune values among those it declares.

    Raises:
        ToolError: The id is unknown, or a tune value is not declared.
    """
    case = Case(*find_kernel(kernel_id, settings.problems), candidate, tune or {})
    refuse_unknown_tune(case, option="tune")
    return case


def _kernel_of(file: Path, kernel_id: str | None, settings: Settings) -> tuple[Problem, Workload]:
    if kernel_id is not None:
        return find_kernel(kernel_id, settings.problems)
    folder = file.resolve().parent
    for parent in (folder, *folder.parents):
        if (parent / "problem.yaml").is_file():
            problem = load_problem(parent)
            return problem, _workload_of(file, problem)
    raise ToolError(
        f"{file} lies in no problem folder: name its kernel with --kernel ID (kopt list)"
    )


def refuse_foreign_kernel(case: Case) -> None:
    """Refuse a kernel that `where` leaves out; a header with mistakes is the check's.

    Raises:
        ToolError: The message has what `where` holds for.
    """
    claimed = [workload.name for workload in case.domain]
    if claimed and case.workload.name not in claimed:
        raise ToolError(
            f"{case.candidate.name} does not claim {case.workload.name}: its `where` holds for "
            f"{', '.join(claimed)}"
        )


def find_problems(parts: Sequence[str], settings: Settings) -> tuple[Problem, ...]:
    """Return every problem, with only the workloads whose kernel id contains one of `parts`.

    Without parts those are left out that are there to be checked (`use: check`).

    Raises:
        ToolError: A part fits no kernel id.
    """
    problems = load_problems(settings.problems).values()
    ids = [kernel for problem in problems for kernel in problem.kernel_ids]
    for part in parts:
        if not any(part in kernel for kernel in ids):
            raise ToolError(f"no kernel id contains {part!r}; 'kopt list' shows all")
    chosen = (_with_workloads(problem, parts or ("",)) for problem in problems)
    return tuple(problem for problem in chosen if problem.workloads)


def has_baseline(problem: Problem, gpu: GpuSpec) -> bool:
    """Return whether a library baseline of `problem` is meant for `gpu`."""
    capability = ".".join(map(str, gpu.compute_capability))
    return any(capability in baseline.devices for baseline in problem.baselines)


def _with_workloads(problem: Problem, parts: Sequence[str]) -> Problem:
    kept = tuple(
        workload
        for workload in problem.workloads
        if any(part in problem.kernel_id(workload) for part in parts)
        and (any(parts) or workload.use != "check")
    )
    return problem.model_copy(update={"workloads": kept})


def refuse_unknown_tune(case: Case, option: str = "--tune") -> None:
    """Refuse tune values that the header does not declare, or that each of its variants overrides.

    A header with mistakes of its own is left to the compile stage.

    Args:
        case: A candidate with the tune values asked for.
        option: How the caller gives them, for messages.

    Raises:
        ToolError: A name or a value is not declared, and the message has those that are; or the
            value would change nothing.
    """
    if not case.tune or case.header is None:
        return
    header, file = case.header, case.candidate.name
    for name, value in case.tune.items():
        declared = header.tune.get(name)
        if declared is None:
            known = ", ".join(header.tune) or "nothing"
            raise ToolError(f"{option} {name}={value}: {file} declares {known}")
        if value not in declared:
            listed = ", ".join(str(option) for option in declared)
            raise ToolError(f"{option} {name}={value}: {file} declares {listed}")
        if all(name in variant.set for variant in header.variants):
            raise ToolError(
                f"{option} {name}={value} changes nothing: every variant of {file}"
                f" sets its own {name}; edit `set` in the header"
            )


def _workload_of(file: Path, problem: Problem) -> Workload:
    """Return the first workload that the file's name, receipts or facts name, else the first."""
    named = {path.name.split(".")[0] for path in (file, *evidence_of(file))}
    served = [workload for workload in problem.workloads if workload.name in named]
    return (*served, *problem.workloads)[0]
