"""How what stopped a job is told to those who asked for it."""

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.server.exits import Interrupted, failure_of
from kopt.server.jobs.records import job_error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ToolError("no kernel 'x'"), "usage"),
        (SetupError("no compiler"), "machine"),
        (InfraError("the GPU was lost"), "machine"),
        (OSError(28, "No space left on device"), "machine"),
        (Interrupted("stopped"), "bug"),
        (ZeroDivisionError("1/0"), "bug"),
    ],
)
def test_kind_of_an_error_says_who_can_act(error: Exception, kind: str) -> None:
    assert job_error(failure_of(error)).kind == kind


def test_message_of_any_length_is_cut() -> None:
    assert len(job_error(failure_of(ToolError("x" * 100_000))).message) == 4000
