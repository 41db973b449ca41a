"""The very same call again: which job it gets."""

import pytest

from kopt.server.jobs.records import JobNeeds, JobRequest, JobState, JobView
from kopt.server.jobs.same_work import SameWork, serves_again
from kopt.server.work.requests import (
    BenchWork,
    CheckWork,
    CompileWork,
    ProfileWork,
    StepWork,
    Work,
)

COMPILE = CompileWork(kernel="k", source="a")


def request(work: Work, number: int = 1, needs: JobNeeds | None = None) -> JobRequest:
    return JobRequest(
        id=f"job-20260101-000000-{number:08x}",
        work=work,
        caller="",
        created_us=0,
        needs=needs or JobNeeds(),
    )


def view(work: Work, state: JobState, needs: JobNeeds | None = None) -> JobView:
    result = {"schema": "x"} if state == "done" else None
    return JobView(request=request(work, needs=needs), state=state, result=result)


def test_equal_work_of_one_owner_is_known_by_its_last_job() -> None:
    same = SameWork()
    assert same.known(COMPILE, "") is None
    same.note(request(COMPILE, 1))
    same.note(request(COMPILE, 2))
    assert same.known(CompileWork(kernel="k", source="a"), "") == request(COMPILE, 2).id
    assert same.known(COMPILE, "token:1") is None
    for other in (
        COMPILE.model_copy(update={"source": "b"}),
        COMPILE.model_copy(update={"tune": {"BLOCK": 1}}),
        COMPILE.model_copy(update={"arch": ("sm_90a",)}),
        ProfileWork(kernel="k", source="a"),
    ):
        assert same.known(other, "") is None
    same.forget(request(COMPILE, 1).id)  # an earlier one
    assert same.known(COMPILE, "") == request(COMPILE, 2).id
    same.forget(request(COMPILE, 2).id)
    assert same.known(COMPILE, "") is None


def test_no_more_than_some_hundred_are_remembered() -> None:
    same = SameWork()
    for number in range(300):
        same.note(request(COMPILE.model_copy(update={"source": str(number)}), number))
    assert same.known(COMPILE.model_copy(update={"source": "0"}), "") is None
    assert same.known(COMPILE.model_copy(update={"source": "299"}), "") is not None


@pytest.mark.parametrize(
    "work", [COMPILE, BenchWork(kernel="k"), CheckWork(kernel="k", level="full")]
)
def test_work_under_way_is_joined(work: Work) -> None:
    assert serves_again(view(work, "queued")) and serves_again(view(work, "running"))


def test_a_step_is_a_round_of_its_own() -> None:
    assert not serves_again(view(StepWork(kernel="k"), "running"))


@pytest.mark.parametrize(
    ("work", "again"),
    [
        (COMPILE, True),
        (CheckWork(kernel="k"), True),
        (CheckWork(kernel="k", level="full"), False),
        (ProfileWork(kernel="k"), True),
        (BenchWork(kernel="k"), False),
    ],
)
def test_a_finished_result_serves_where_it_hangs_on_the_source_alone(
    work: Work, again: bool
) -> None:
    assert serves_again(view(work, "done")) is again
    assert not serves_again(view(work, "failed"))
    assert not serves_again(view(work, "cancelled"))
    assert not serves_again(view(work, "done", JobNeeds(device="cuda:0")))
    assert not serves_again(view(work, "done", JobNeeds(problems="/mine")))
