"""Telling a failed promise of the launch plan from an error in the kernel's own code.

Behind the candidate stands C++ that asserts the parameter types of every launched kernel. If
nothing but those assertions fails, plan and code disagree; if anything else fails there, the
candidate itself ends in the middle of something.
"""

import re
from collections.abc import Iterable, Sequence

from kopt.kernels.parameter_types import ASSERTIONS_FILE, type_assertions
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Problem
from kopt.kernels.record import Diagnostic

_FAILED_ASSERTION = re.compile(r'static assertion failed with "(.*)"$')
_HEADER_LINE = re.compile(r"launched in line (\d+) of the header")


def plan_assertions(plans: Sequence[LaunchPlan], problem: Problem) -> str:
    """Return one text of assertions for all plans that a cubin serves."""
    launches: dict[object, Launch] = {}
    for launch in (launch for plan in plans for launch in plan.launches):
        names = tuple((argument.name, argument.is_axis) for argument in launch.arguments)
        launches.setdefault((launch.kernel, launch.line, names), launch)
    whole = plans[0].model_copy(update={"launches": tuple(launches.values())})
    return type_assertions(whole, problem)


def as_plan_errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the errors as mistakes of the plan; nothing if any is a mistake of the code."""
    found: dict[Diagnostic, None] = {}
    for diagnostic in diagnostics:
        if diagnostic.severity != "error":
            continue
        assertion = _FAILED_ASSERTION.search(diagnostic.message)
        if diagnostic.file != ASSERTIONS_FILE or assertion is None:
            return ()
        message = assertion.group(1).replace('\\"', '"')
        line = _HEADER_LINE.search(message)
        found[Diagnostic(message=message, line=int(line.group(1)) if line else None)] = None
    return tuple(found)


def as_unfinished_source(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return `diagnostics` with errors behind the candidate's end explained as what they are.

    Assertions that fail beside an error in the candidate's own lines are left out: they are told
    once the code compiles.
    """
    found = tuple(diagnostics)
    has_own_error = any(d.severity == "error" and d.file != ASSERTIONS_FILE for d in found)
    hint = "the source ends inside an open brace, bracket, #if or string"
    return tuple(
        diagnostic
        if diagnostic.file != ASSERTIONS_FILE
        else diagnostic.model_copy(update={"file": None, "hint": hint})
        for diagnostic in found
        if not (has_own_error and _is_assertion(diagnostic))
    )


def _is_assertion(diagnostic: Diagnostic) -> bool:
    is_behind = diagnostic.file == ASSERTIONS_FILE
    return is_behind and _FAILED_ASSERTION.search(diagnostic.message) is not None
