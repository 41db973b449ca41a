"""The next step after a result: the tool to call, with the arguments of the same case.

`archs` are the targets that the call asked for, () for the default: a candidate that was not built
has none in its result.
"""

import json
from itertools import chain

from kopt.config.device_names import is_simulated
from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.choice_table import ChoiceTable
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.status import Status, Verdict
from kopt.tools.facts.findings import Judged
from kopt.tools.facts.wording import plain, plain_beginning

Archs = tuple[str, ...]
"""Compiler targets."""
_TUNE_NAME_CHARACTERS = 80
_TUNE_CHARACTERS = 400
_PATH_CHARACTERS = 400
_HEADER_STATUSES = (Status.PLAN_ERROR, Status.REFUSED)


def compile_next(result: CompileResult, archs: Archs) -> str:
    """Return what to do after this result."""
    if result.status is Status.PASSED:
        return f"Call {same_call('check_correctness', result, *arch_argument(archs))}."
    asked = (f"arch={json.dumps(archs)}",) if archs else ()
    return mend_and_call("compile", result, *asked)


def check_next(result: CheckResult, archs: Archs) -> str:
    """Return what to do after this result."""
    arch = arch_argument(archs)
    same = (*arch, f"device={result.device}")
    if result.status is Status.UNSUPPORTED_ON_SIM:
        instead = mend_and_call("check_correctness", result, *same)
        return f"{instead[:-1]}; on a machine with a GPU device=cuda:0 runs it as it is."
    if result.status is Status.PASSED:
        if result.level == "quick":
            full = same_call("check_correctness", result, *same, "level=full")
            speed = same_call("benchmark", result, *arch)
            return f"Call {speed} for its speed; before it is used, call {full}."
        return f"Call {same_call('benchmark', result, *same)}."
    level = ("level=full",) if result.level == "full" else ()
    return mend_and_call("check_correctness", result, *same, *level)


def bench_next(result: BenchResult, archs: Archs) -> str:
    """Return what to do after this result."""
    arch = arch_argument(archs)
    same = (*arch, f"device={result.device}")
    if result.status is not Status.PASSED:
        return mend_and_call("check_correctness", result, *same)
    step = f"beam_step with kernel={result.kernel}"
    match result.verdict:
        case Verdict.FASTER if result.is_unproven:
            full = same_call("check_correctness", result, *same, "level=full")
            return f"Call {full} to make sure of it, or {step} to go on from it."
        case Verdict.FASTER:
            return f"A full check stands behind it. Call {step} to go on from it."
        case Verdict.IMPOSSIBLE:
            profile = same_call("profile", result, *arch)
            return f"Find the work that timed calls skip, then call {profile}."
        case Verdict.ESTIMATED:
            profile = same_call("profile", result, *arch)
            return f"Call {profile} for what limits it."
        case _:
            profile = same_call("profile", result, *same)
            return f"Call {profile} for what limits it, or {step} to search on."


def profile_next(result: ProfileResult, archs: Archs) -> str:
    """Return what to do after this result."""
    arch = arch_argument(archs)
    if result.status is not Status.PASSED:
        return mend_and_call("check_correctness", result, *arch)
    # What promises most, then what holds it back altogether, then the rest.
    ordered = sorted(result.suspects, key=lambda suspect: (suspect.is_limit, -suspect.gain_us))
    best = [suspect.families for suspect in ordered[:1] if not suspect.is_limit]
    limit = [result.bottleneck.families] if result.bottleneck else []
    named = chain.from_iterable((*best, *limit, *(suspect.families for suspect in ordered)))
    families = list(dict.fromkeys(named))[:3]
    strategy = f" of the family {' or '.join(families)}" if families else ""
    check = ", ".join((f"check_correctness with kernel={result.kernel}", *arch))
    return f"Write a candidate{strategy} and call {check} and its source."


def table_next(table: ChoiceTable) -> str:
    """Return what to do after a table: look at its first row alone, or mend what failed."""
    first = table.rows[0]
    kernel = f"kernel={table.kernel}"
    if first.status is not Status.PASSED:
        return f"Mend the first that failed, then call check_correctness with {kernel}."
    free = {k: value for k, value in first.tune.items() if k not in first.set_by_variant}
    chosen = [kernel, *tune_argument(free)]
    chosen.append(_file_argument(first.file))
    if is_simulated(table.device):
        chosen += arch_argument((table.arch,))
    chosen.append(f"device={table.device}")
    tool = "benchmark"
    if is_simulated(table.device):
        tool = "check_correctness"
        chosen.append("level=full")
    other = ", or with another row that is tied with it" if table.tied_with_first else ""
    return f"Call {tool} with {', '.join(chosen)}{other}."


def _file_argument(file: str) -> str:
    """Return the argument that names a file of a table, which is never cut: it is to be called."""
    if not file:
        return "the same source"
    is_shown = len(file) <= _PATH_CHARACTERS and plain(file) == file
    return f"path={file}" if is_shown else "the path of the first row"


def tune_argument(tune: dict[str, int]) -> tuple[str, ...]:
    """Return the argument that chooses these tune values; nothing if there are none."""
    if not tune:
        return ()
    shown = {plain_beginning(name, _TUNE_NAME_CHARACTERS): value for name, value in tune.items()}
    whole = f"tune={json.dumps(shown)}"
    return (whole if len(whole) <= _TUNE_CHARACTERS else "the same tune",)


def arch_argument(archs: Archs) -> tuple[str, ...]:
    """Return the argument that chooses the one target; nothing for the default, or for several."""
    return (f"arch={archs[0]}",) if len(archs) == 1 and archs[0] != DEFAULT_ARCH else ()


def same_call(tool: str, result: Judged, *more: str) -> str:
    """Return `tool with arch=..., the same kernel and source` with `more` of its arguments."""
    chosen = (*tune_argument(result.chosen_tune), *more)
    return f"{tool} with {', '.join((*chosen, 'the same kernel and source'))}"


def mend_and_call(tool: str, result: Judged, *more: str) -> str:
    """Return the next step after a failure: fix the source, call `tool` again."""
    if result.status is Status.QUARANTINED:
        arguments = ", ".join((f"kernel={result.kernel}", *more))
        return f"Write another candidate and call {tool} with {arguments} and its source."
    chosen = (*tune_argument(result.chosen_tune), *more)
    arguments = ", ".join((f"kernel={result.kernel}", *chosen))
    grammar = ""
    if result.status in _HEADER_STATUSES:
        grammar = f" (kopt://kernels/{result.kernel} shows a valid one)"
    return f"Change the source as what_to_do says{grammar}, then call {tool} with {arguments}."
