"""`kopt check` and `kopt profile`: how results read, over records that the stages would give."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.kernels.check_result import CheckResult, Mismatch, TensorAccuracy, WorkloadCheck
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.server import opened_device
from kopt.server.exits import ExitCode
from kopt.tools import device_choice
from kopt.tools.check import stage as check_stage
from kopt.tools.check.stage import CheckRequest
from kopt.tools.facts.check_facts import check_facts
from support.command_line import Kopt
from support.extension_sources import SILU
from support.named_gpu import NamedGpu, opener

KERNEL = "silu_and_mul_b8xh14336"
REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"
Answer = Callable[..., list[CheckRequest]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return a function that sets the stage's result; it returns the requests that come in."""

    def set_result(status: Status, **fields: Any) -> list[CheckRequest]:
        requests: list[CheckRequest] = []

        def check(request: CheckRequest, *_: object) -> CheckResult:
            requests.append(request)
            known = {
                "status": status,
                "kernel": KERNEL,
                "candidate": request.case.candidate.id,
                "device": "sim",
                "level": request.level,
                "compiled": CompileResult(
                    status=Status.PASSED, kernel=KERNEL, candidate=request.case.candidate.id
                ),
                "elapsed_s": 1.25,
            }
            return CheckResult.model_validate(known | fields)

        monkeypatch.setattr(check_stage, "check_candidate", check)
        return requests

    return set_result


def _mismatch(**fields: Any) -> Mismatch:
    known: dict[str, Any] = {
        "workload": "b8xh14336",
        "tensor": "out",
        "gate": "ulp",
        "index": (3, 17),
        "row": 3,
        "column": 17,
        "expected": "1.5",
        "got": "0",
        "wrong_elements": 896,
        "total_elements": 114688,
        "pattern": "every 16th element",
        "seed": 1,
        "regime": "outliers",
    }
    return Mismatch.model_validate(known | fields)


def test_workloads_that_a_choice_of_tune_values_leaves_out_are_named(
    kopt: Kopt, answer: Answer
) -> None:
    compiled = CompileResult(
        status=Status.PASSED, kernel=KERNEL, candidate="c" * 64, left_out=("b1024xh14336",)
    )
    answer(Status.PASSED, compiled=compiled)
    assert "Left out: b1024xh14336: claimed by `where`" in kopt("check", REFERENCE).stdout
    checked = CheckResult.model_validate_json(kopt("check", REFERENCE, "--json").stdout)
    assert checked.compiled.left_out == ("b1024xh14336",)
    assert str(check_facts(checked, "concise")["left_out_workloads"]).startswith(
        "b1024xh14336: claimed"
    )


def test_a_variant_that_no_workload_takes_is_named(kopt: Kopt, answer: Answer) -> None:
    compiled = CompileResult(
        status=Status.PASSED, kernel=KERNEL, candidate="c" * 64, unserved=("B % 8 != 0",)
    )
    answer(Status.PASSED, compiled=compiled)
    said = " ".join(kopt("check", REFERENCE).stdout.split())
    assert "Variant 'when: B % 8 != 0': taken by no workload within `where`" in said
    checked = CheckResult.model_validate_json(kopt("check", REFERENCE, "--json").stdout)
    assert "B % 8 != 0" in str(check_facts(checked, "concise")["unserved_variants"])


def test_passed_is_0_and_says_what_was_not_covered(kopt: Kopt, answer: Answer) -> None:
    answer(Status.PASSED, sandbox="landlock")
    ending = kopt("check", REFERENCE)
    assert ending.code == ExitCode.PASSED
    assert ending.stdout.startswith(f"passed  {KERNEL}")
    assert "sandbox landlock" in ending.stdout
    assert "--level full" in ending.stdout


def test_a_mismatch_says_where_what_and_which_pattern(kopt: Kopt, answer: Answer) -> None:
    answer(Status.INCORRECT, mismatch=_mismatch())
    ending = kopt("check", REFERENCE)
    assert ending.code == ExitCode.FELL_SHORT
    assert "out[3, 17] is 0, expected 1.5 (row 3, column 17)" in ending.stdout
    assert "every 16th element; 896 of 114688 elements (0.78%) fail the ulp gate" in ending.stdout
    assert "inputs outliers, seed 1" in ending.stdout
    assert "What to do: Start from the first mismatch" in ending.stdout


def test_a_hidden_seed_stays_hidden(kopt: Kopt, answer: Answer) -> None:
    answer(Status.INCORRECT, mismatch=_mismatch(seed=None))
    assert "a hidden seed" in kopt("check", REFERENCE).stdout


def test_diagnostics_have_place_excerpt_and_hint(kopt: Kopt, answer: Answer) -> None:
    found = Diagnostic(message="read past the end", line=41, excerpt="x[i]\n  ^", hint="guard it")
    answer(Status.OUT_OF_BOUNDS, diagnostics=(found,))
    text = kopt("check", REFERENCE).stdout
    assert f"{REFERENCE}:41: error: read past the end\nx[i]\n  ^\n  hint: guard it\n" in text


def test_many_diagnostics_are_cut_and_counted(kopt: Kopt, answer: Answer) -> None:
    found = tuple(Diagnostic(message=f"number {index}", line=index) for index in range(40))
    answer(Status.COMPILE_ERROR, diagnostics=found)
    text = kopt("check", REFERENCE).stdout
    assert "number 0" in text
    assert "number 39" not in text
    assert "and 28 more" in text


def test_square_brackets_in_messages_are_shown_as_they_are(kopt: Kopt, answer: Answer) -> None:
    answer(Status.CRASH, diagnostics=(Diagnostic(message="in tile[bold][i]"),))
    assert "in tile[bold][i]" in kopt("check", REFERENCE).stdout


def test_workloads_and_accuracy_are_tables(kopt: Kopt, answer: Answer) -> None:
    answer(
        Status.PASSED,
        level="full",
        workloads=(
            WorkloadCheck(
                workload="b8xh14336",
                status=Status.PASSED,
                visible_seeds=3,
                hidden_seeds=2,
                poisons=2,
                schedules=4,
                executions=24,
                elapsed_s=3.0,
            ),
        ),
        accuracy=(
            TensorAccuracy(
                tensor="out",
                mismatch_fraction=0.0,
                max_abs=0.002,
                max_rel=0.0,
                within_fixed_limits=True,
                l2_ratio=1.02,
            ),
        ),
    )
    text = kopt("check", REFERENCE, "--level", "full").stdout
    words = " ".join(text.split())
    assert "b8xh14336 passed 3 2 2 4 24" in words
    assert "fill patterns" in words
    assert "abs < 1e-2, rel < 1e-3 error norm / rounding's" in words
    assert "yes 1.02" in words


def test_json_is_the_record_itself(kopt: Kopt, answer: Answer) -> None:
    answer(Status.INCORRECT, mismatch=_mismatch())
    ending = kopt("check", REFERENCE, "--json")
    assert (ending.code, ending.stderr) == (ExitCode.FELL_SHORT, "")
    assert ending.document["schema"] == "kopt.check/1"
    assert ending.document["mismatch"]["pattern"] == "every 16th element"


def test_flags_reach_the_stage(kopt: Kopt, answer: Answer) -> None:
    requests = answer(Status.PASSED)
    kopt(
        *("check", REFERENCE, "--kernel", "silu_and_mul_b128xh14336", "--level", "full"),
        *("--seeds", "4,5,4", "--tune", "BLOCK=512", "--arch", "sm_90a"),
    )
    (request,) = requests
    assert (request.case.problem.name, request.case.workload.name) == (
        "silu_and_mul",
        "b128xh14336",
    )
    assert (request.level, request.seeds, request.arch) == ("full", (4, 5), "sm_90a")
    assert request.case.tune == {"BLOCK": 512}


def test_on_a_gpu_the_architecture_is_its_own(
    kopt: Kopt, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))
    requests = answer(Status.PASSED)
    kopt("check", REFERENCE, "--device", "cuda:0")
    kopt("check", REFERENCE, "--arch", "sm_90a")
    assert [request.arch for request in requests] == ["sm_90a", "sm_90a"]


def test_an_architecture_that_contradicts_the_gpu_is_refused(
    kopt: Kopt, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))
    requests = answer(Status.PASSED)
    ending = kopt("check", REFERENCE, "--device", "cuda:0", "--arch", "sm_100a")
    assert ending.code == ExitCode.USAGE
    assert "which runs sm_90a: leave --arch out, or use --device sim" in ending.stderr
    assert requests == []


def test_a_gpu_that_cannot_be_used_is_named_where_auto_takes_sim(
    kopt: Kopt, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(Status.PASSED)
    monkeypatch.setattr(device_choice, "gpu_devices", lambda: (Path("/dev/nvidia0"),))
    monkeypatch.setattr(device_choice, "gpu_problem", lambda: "no cuda.bindings")
    assert "on sim, although there is a GPU: no cuda.bindings" in kopt("check", REFERENCE).stderr


def test_a_winner_is_checked_on_the_workload_that_it_serves(
    kopt: Kopt, answer: Answer, tmp_path: Path
) -> None:
    requests = answer(Status.PASSED)
    folder = tmp_path / "silu_and_mul"
    (folder / "winners").mkdir(parents=True)
    for name in ("problem.yaml", "oracle.py"):
        (folder / name).write_bytes((REFERENCE.parent / name).read_bytes())
    winner = folder / "winners" / "b128xh14336.sm_100a.cu"
    winner.write_bytes(REFERENCE.read_bytes())
    kopt("check", winner)
    assert requests[0].case.workload.name == "b128xh14336"
    (folder / "winners" / "b1024xh14336.sm_100a.facts.json").write_text('{"source_file": "a.cu"}')
    kopt("check", winner.rename(winner.with_name("a.cu")))
    assert requests[1].case.workload.name == "b1024xh14336"


@pytest.mark.parametrize("command", ["check", "bench", "profile"])
def test_several_files_are_told_how_they_are_judged(kopt: Kopt, command: str) -> None:
    ending = kopt(command, "a.cu", "b.cu")
    assert ending.code == ExitCode.USAGE
    assert ending.stderr.splitlines() == [
        f"kopt: kopt {command} takes one file, not 2: give it one after the other, kopt {command}"
        " a.cu; kopt compile a.cu b.cu sets their resources side by side"
    ]


def test_a_kernel_id_behind_the_file_is_told_its_option(kopt: Kopt) -> None:
    ending = kopt("check", REFERENCE, KERNEL, "--json")
    assert ending.code == ExitCode.USAGE
    assert f"{KERNEL} is none: a kernel is named by --kernel ID" in ending.document["message"]


def test_no_file_is_a_missing_argument(kopt: Kopt) -> None:
    ending = kopt("check")
    assert ending.code == ExitCode.USAGE
    assert "Missing argument 'FILE'" in ending.stderr


@pytest.mark.parametrize("kernel", [(), ("--kernel", KERNEL)])
@pytest.mark.parametrize("command", ["check", "bench", "profile", "compile"])
def test_a_torch_extension_is_sent_to_review(
    kopt: Kopt, command: str, kernel: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "ext.cu"
    file.write_text(SILU)
    ending = kopt(command, file, *kernel)
    assert ending.code == ExitCode.USAGE
    (line,) = ending.stderr.splitlines()
    named = kernel[1] if kernel else "ID"
    assert f"kopt review {file} --claim 1.5x --kernel {named} judges it" in line


@pytest.mark.parametrize("command", [("step",), ("run", "--no-models", "--start")])
def test_a_torch_extension_begins_no_run(
    kopt: Kopt, command: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "ext.cu"
    file.write_text(SILU)
    before = kopt("runs", "--json").stdout
    ending = kopt(*command, file, "--kernel", KERNEL)
    assert ending.code == ExitCode.USAGE
    assert f"kopt review {file} --claim 1.5x --kernel {KERNEL} judges it" in ending.stderr
    assert kopt("runs", "--json").stdout == before
