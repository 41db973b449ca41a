"""`kopt profile --tune all`: a table of what differs, and its JSON document."""

from pathlib import Path

import pytest

from kopt.kernels.profile_result import ChoiceProfile, ProfileChoices
from kopt.kernels.status import Status
from kopt.server.session import print_view
from kopt.server.views.profile_view import profile_choices_view
from support.command_line import Kopt

pytestmark = pytest.mark.slow  # every choice is compiled and run

REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"


def test_all_choices_are_a_table_of_what_differs(kopt: Kopt) -> None:
    ending = kopt("profile", REFERENCE, "--arch", "sm_90a", "--device", "sim", "--tune", "all")
    assert ending.code == 0
    header, *rows = ending.stdout.splitlines()[1:6]
    assert header.split()[:3] == ["estimated", "us", "BLOCK"]
    assert sum(row.startswith("*") for row in rows) == 1
    assert {row.removeprefix("*").split()[1] for row in rows} == {"128", "256", "512", "1024"}
    assert "The same in all: " in ending.stdout
    assert "blocks 8" in ending.stdout
    assert "measured us" not in ending.stdout


def test_values_beside_all_hold_a_name_fast(kopt: Kopt) -> None:
    words = ("--device", "sim", "--tune", "all", "--tune", "BLOCK=512", "--json")
    document = kopt("profile", REFERENCE, *words).document
    assert document["schema"] == "kopt.profile_choices/1"
    assert [choice["tune"] for choice in document["choices"]] == [{"BLOCK": 512}]


def test_a_value_that_is_not_declared_is_refused_beside_all(kopt: Kopt) -> None:
    ending = kopt("profile", REFERENCE, "--tune", "all,BLOCK=100")
    assert ending.code == 2
    assert "256, 128, 512, 1024" in ending.stderr


def test_a_choice_that_failed_is_told_below_the_table_as_tune_takes_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = ChoiceProfile(
        tune={"BLOCK": 1024, "ROWS": 2},
        is_default=False,
        status=Status.COMPILE_ERROR,
        why="too wide",
    )
    passed = wide.model_copy(update={"tune": {"BLOCK": 64, "ROWS": 2}, "status": Status.PASSED})
    profile = ProfileChoices(
        status=Status.PASSED,
        kernel="silu_and_mul_b8xh14336",
        candidate="0" * 64,
        arch="sm_90a",
        gpu="H100",
        device=None,
        choices=(passed, wide),
    )
    print_view(profile_choices_view("mine.cu", profile))
    told = [line for line in capsys.readouterr().out.splitlines() if "too wide" in line]
    assert told == ["BLOCK=1024,ROWS=2: compile_error, too wide"]


def test_a_candidate_without_a_plan_is_not_said_to_have_begun(kopt: Kopt, tmp_path: Path) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text("/* kopt: 2 */\nint x;\n", "utf-8")
    ending = kopt("profile", broken, "--kernel", "silu_and_mul_b8xh14336", "--device", "sim")
    shown = " ".join(ending.stdout.split())
    assert "Accesses are not counted: the candidate was not executed, or not to its end." in shown
