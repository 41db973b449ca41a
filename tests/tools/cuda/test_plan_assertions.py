"""Which failed assertions are the plan's mistake and which errors are the code's."""

from kopt.kernels.parameter_types import ASSERTIONS_FILE
from kopt.kernels.record import Diagnostic
from kopt.tools.cuda.planned_build import as_plan_errors, as_unfinished_source


def assertion(text: str) -> Diagnostic:
    message = f'static assertion failed with "{text}"'
    return Diagnostic(message=message, file=ASSERTIONS_FILE)


def test_failed_assertions_alone_are_plan_errors_with_the_launch_s_line() -> None:
    text = "kernel 'k' (launched in line 7 of the header): is extern \\\"C\\\""
    (error,) = as_plan_errors(
        [assertion(text), assertion(text), Diagnostic(message="x", severity="note")]
    )
    assert error.line == 7
    assert error.message.endswith('is extern "C"')
    assert error.file is None


def test_an_error_of_the_code_beside_them_makes_it_a_compile_error() -> None:
    assert as_plan_errors([assertion("kernel"), Diagnostic(message="expected a ;", line=3)]) == ()


def test_another_error_behind_the_source_is_not_the_plan_s() -> None:
    broken = Diagnostic(message="expected a declaration", file=ASSERTIONS_FILE)
    assert as_plan_errors([broken]) == ()
    (explained,) = as_unfinished_source([broken])
    assert (explained.file, explained.message) == (None, broken.message)
    assert "open brace" in (explained.hint or "")


def test_a_candidate_cannot_pass_its_own_assertion_off_as_the_plan_s() -> None:
    own = Diagnostic(message='static assertion failed with "kernel"', line=4)
    assert as_plan_errors([own]) == ()


def test_an_assertion_beside_an_error_of_the_code_is_no_unfinished_source() -> None:
    own = Diagnostic(message="expected an integral type", line=19)
    assert as_unfinished_source([own, assertion("parameter 3 must be int")]) == (own,)
