"""Tune choices side by side: every choice a row, the fastest first, and what cannot be a row."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.status import Status
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.profiling.choices import MOST_CHOICES, profile_choices
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest
from support.tiny_problem import BODY, tiny_problem

SOURCE = """\
/* kopt: 1
family: other
tune: {TUNES}
launch:
  - {kernel: scale_rows, grid: B, block: BLOCK, args: [x, out, H, scale]}
*/
"""
TUNED = '{BLOCK: [64, 256], STEP: [1, 2]}\ntune_where: ["BLOCK > 64 or STEP < 2"]'
VARIED = """\
/* kopt: 1
family: other
tune: {BLOCK: [64, 256], STEP: [1, 2]}
variants:
  - when: B > 8
    set: {BLOCK: 256}
    launch: [{kernel: scale_rows, grid: B, block: BLOCK, args: [x, out, H, scale]}]
  - when: "true"
    launch: [{kernel: scale_rows, grid: B, block: BLOCK, args: [x, out, H, scale]}]
*/
"""
ASSERTED = 'static_assert(STEP < 2 || BLOCK < 64, "too wide");\n'


def request_of(tmp_path: Path, tune: str, body: str = BODY) -> ProfileRequest:
    problem = tiny_problem(tmp_path)
    return ProfileRequest(
        case=Case(
            problem, problem.workload("b32xh256"), Candidate(SOURCE.replace("{TUNES}", tune) + body)
        ),
        arch="sm_90a",
    )


def test_every_choice_is_a_row_and_the_fastest_comes_first(
    tmp_path: Path, settings: Settings, toolchain: FoundToolchain
) -> None:
    asked = request_of(tmp_path, TUNED)
    steps: list[str] = []
    found = profile_choices(replace(asked, progress=steps.append), settings, ProfileDevices())
    tunes = [(row.tune["BLOCK"], row.tune["STEP"], row.is_default) for row in found.choices]
    assert sorted(tunes) == [(64, 1, True), (256, 1, False), (256, 2, False)]
    assert (found.status, found.device) == ("passed", None)
    assert [row.estimated_us for row in found.choices] == sorted(
        row.estimated_us or 0.0 for row in found.choices
    )
    assert {row.threads_per_block for row in found.choices} == {64, 256}
    assert {(row.blocks, row.spill_bytes, row.measured_us) for row in found.choices} == {
        (32, 0, None)
    }
    assert steps[0] == "1 of 3: BLOCK=64 STEP=1"


@pytest.mark.slow  # several profiles
def test_a_choice_that_does_not_compile_comes_last_and_says_why(
    tmp_path: Path, settings: Settings, toolchain: FoundToolchain
) -> None:
    asked = request_of(tmp_path, TUNED, ASSERTED + BODY)
    found = profile_choices(
        replace(asked, case=replace(asked.case, tune={"BLOCK": 256})), settings, ProfileDevices()
    )
    assert [row.status for row in found.choices] == [Status.PASSED, Status.COMPILE_ERROR]
    assert found.status is Status.PASSED
    assert found.choices[1].estimated_us is None
    assert "too wide" in found.choices[1].why


@pytest.mark.slow  # several profiles
def test_what_the_variant_sets_is_no_choice(
    tmp_path: Path, settings: Settings, toolchain: FoundToolchain
) -> None:
    asked = request_of(tmp_path, TUNED)
    asked = replace(asked, case=replace(asked.case, candidate=Candidate(VARIED + BODY)))
    found = profile_choices(asked, settings, ProfileDevices())
    tunes = [(row.tune["BLOCK"], row.tune["STEP"]) for row in found.choices]
    assert (sorted(tunes), found.set_by_variant) == ([(256, 1), (256, 2)], ("BLOCK",))
    with pytest.raises(ToolError, match="what the workload's variant sets"):
        profile_choices(
            replace(asked, case=replace(asked.case, tune={"BLOCK": 64})), settings, ProfileDevices()
        )


@pytest.mark.parametrize(
    ("tune", "message"),
    [
        (f"{{BLOCK: [32, 64], NUMBER: {list(range(MOST_CHOICES))}}}", "hold some names fast"),
        ("{BLOCK: 64}", "header with mistakes"),
    ],
)
def test_too_many_choices_and_broken_headers_are_refused(
    tmp_path: Path, settings: Settings, tune: str, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        profile_choices(request_of(tmp_path, tune), settings, ProfileDevices())


def test_a_candidate_without_tune_values_is_refused(tmp_path: Path, settings: Settings) -> None:
    asked = request_of(tmp_path, TUNED)
    source = asked.case.candidate.source.replace(f"tune: {TUNED}\n", "").replace("BLOCK,", "64,")
    with pytest.raises(ToolError, match="no tune values"):
        profile_choices(
            replace(asked, case=replace(asked.case, candidate=Candidate(source))),
            settings,
            ProfileDevices(),
        )
