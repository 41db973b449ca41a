"""`kopt verify` of several receipts and of folders."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.receipt import Receipt
from kopt.kernels.verify_result import Reproduction, VerifyListResult, VerifyResult
from kopt.server.exits import ExitCode
from kopt.tools.bench import verify_all
from kopt.tools.bench.bound_files import problem_files
from kopt.tools.bench.reproduction import VerifyRequest
from kopt.tools.bench.verify_all import places_of
from support.command_line import Kopt
from support.receipts import claiming_one, sealed_receipt, write_receipt
from support.tiny_problem import write_tiny_problem
from support.verified import verified

Outcome = Reproduction | Exception


class Verifier:
    """Ends each receipt as it is told, by the name of its source; counts them."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome | type[BaseException]] = {}
        self.verified: list[str] = []
        self.note: str | None = None

    def __call__(self, request: VerifyRequest, *_: object) -> VerifyResult:
        receipt = request.receipt
        self.verified.append(receipt.source_name)
        outcome = self.outcomes.get(receipt.source_name, "reproduced")
        if not isinstance(outcome, str):
            raise outcome
        if request.progress is not None:
            request.progress("timing")
        reasons = () if outcome == "reproduced" else (f"{receipt.source_name} is {outcome}",)
        notes = () if self.note is None else (self.note,)
        kernel = receipt.workloads[0].kernel
        return verified(outcome, kernel=kernel, reasons=reasons, notes=notes)


@pytest.fixture
def verifier(monkeypatch: pytest.MonkeyPatch) -> Verifier:
    made = Verifier()
    monkeypatch.setattr(verify_all, "verify_receipt", made)
    return made


@pytest.fixture
def winners(tmp_path: Path) -> Path:
    """Receipts a and b of scale_rows; that of `a` lies there twice."""
    write_tiny_problem(tmp_path)
    folder = tmp_path / "winners"
    for name in ("a/1", "a/2", "b/1"):
        source = name[0]
        write_receipt(folder / f"{name}.sm_90a.receipt.json", receipt(tmp_path, source))
    return folder


def receipt(folder: Path, name: str, **fields: Any) -> Receipt:
    problem = load_problem(folder / "scale_rows")
    reference = claiming_one(read_candidate(problem.folder / "reference.cu"))
    candidate = Candidate(f"{reference.source}// {name}\n", name)
    known = {"problem_files": problem_files(problem), **fields}
    return sealed_receipt("scale_rows", candidate, **known)


@pytest.fixture
def verify(kopt: Kopt, tmp_path: Path) -> Callable[..., Any]:
    return lambda *words: kopt("verify", *words, "--problems", tmp_path)


def test_a_folder_s_receipts_are_verified_once_each(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    ending = verify(winners, "--json")
    found = VerifyListResult.model_validate_json(ending.stdout)
    assert (ending.code, ending.stderr) == (ExitCode.PASSED, "")
    assert (found.schema_, found.planned) == ("kopt.verify_list/1", 2)
    assert verifier.verified == ["a", "b"]
    assert [len(entry.files) for entry in found.results] == [2, 1]


def test_files_and_their_folder_name_a_receipt_once(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    one = winners / "a" / "1.sm_90a.receipt.json"
    verify(one, one, winners / "a")
    assert verifier.verified == ["a"]


def test_the_table_ends_with_what_did_not_reproduce(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    verifier.outcomes["b"] = "not_reproduced"
    ending = verify(winners)
    lines = ending.stdout.splitlines()
    assert lines[0].split()[:2] == ["kernel", "receipt"]
    assert lines[1].startswith("scale_rows_b8xh64") and lines[1].endswith("  reproduced")
    assert lines[2].endswith("not reproduced")
    assert any(line.endswith("receipt.json: b is not_reproduced") for line in lines)
    assert lines[-1].startswith("1 of 2 receipts reproduced, 1 not reproduced")
    assert ending.code == ExitCode.FELL_SHORT


def test_what_holds_for_every_receipt_is_told_once(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    verifier.note = "driver 590"
    said = verify(winners).stdout
    assert "All 2 receipts: differs from then: driver 590\n" in said
    assert said.count("driver 590") == 1


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ({"b": "unavailable"}, ExitCode.MACHINE),
        ({"b": "other_device"}, ExitCode.MACHINE),
        ({"a": InfraError("the worker died")}, ExitCode.MACHINE),
        ({"a": InfraError("the worker died"), "b": "not_reproduced"}, ExitCode.FELL_SHORT),
    ],
)
def test_the_worst_outcome_decides_the_exit_code(
    verify: Callable[..., Any],
    verifier: Verifier,
    winners: Path,
    outcomes: dict[str, Outcome],
    code: ExitCode,
) -> None:
    verifier.outcomes.update(outcomes)
    assert verify(winners).code == code
    assert verifier.verified == ["a", "b"]


@pytest.mark.parametrize("spoil", ["damaged", "other_problem"])
def test_an_unusable_receipt_is_told_and_the_others_are_verified(
    verify: Callable[..., Any], verifier: Verifier, winners: Path, tmp_path: Path, spoil: str
) -> None:
    path = winners / "b" / "1.sm_90a.receipt.json"
    if spoil == "damaged":
        path.write_text(path.read_text("utf-8").replace("1.25", "1.35"), "utf-8")
    else:
        write_receipt(path, receipt(tmp_path, "b", problem_files={"problem.yaml": "0" * 64}))
    ending = verify(winners)
    assert verifier.verified == ["a"]
    said = "damaged or edited" if spoil == "damaged" else "has changed since the receipt was made"
    assert said in " ".join(ending.stdout.split())
    assert "1 of 2 receipts reproduced, 1 could not be verified" in ending.stdout
    assert ending.code == ExitCode.USAGE


def test_interrupting_shows_what_there_is(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    verifier.outcomes["b"] = KeyboardInterrupt
    ending = verify(winners)
    assert ending.code == ExitCode.INTERRUPTED
    assert "1 of 2 receipts reproduced, 1 not reached" in ending.stdout
    assert "interrupted after 1 of 2 receipts" in ending.stderr


def test_what_ends_all_still_shows_what_there_is(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    verifier.outcomes["b"] = SetupError("no compiler")
    ending = verify(winners)
    assert (ending.code, "no compiler" in ending.stderr) == (ExitCode.MACHINE, True)
    assert "1 of 2 receipts reproduced" in ending.stdout


def test_a_folder_without_receipts_is_wrong_usage(
    verify: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    ending = verify(tmp_path / "empty")
    assert ending.code == ExitCode.USAGE
    assert "no receipt lies below" in ending.stderr


def test_a_source_among_several_ends_the_call(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    ending = verify(winners, winners / "b" / "1.sm_90a.cu")
    assert ending.code == ExitCode.USAGE
    assert "is a source, and no receipt lies beside it" in ending.stderr
    assert verifier.verified == []


def test_source_without_a_receipt_is_answered_with_how_to_get_one(
    verify: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "mine.cu").write_text("/* kopt: 1 */")
    ending = verify(tmp_path / "mine.cu")
    assert ending.code == ExitCode.USAGE
    assert "no receipt lies beside it: kopt bench" in ending.stderr
    assert "mine.receipt.json" not in ending.stderr


def test_hidden_folders_below_a_folder_are_not_looked_into(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    """They hold caches and other people's checkouts."""
    before = len(verify(winners, "--json").document["results"])
    shutil.copytree(winners / "b", winners / ".cache" / "b")
    assert len(verify(winners, "--json").document["results"]) == before


def test_progress_says_which_receipt_of_how_many(
    verify: Callable[..., Any], verifier: Verifier, winners: Path
) -> None:
    del verifier
    assert "receipt 2 of 2: timing" in verify(winners).stderr


def test_a_kernel_id_stands_for_the_receipts_of_its_winner(tmp_path: Path) -> None:
    write_tiny_problem(tmp_path)
    own = Settings(home=tmp_path / "home", problems=tmp_path)
    path = own.winners / "scale_rows" / "b8xh64.sm_90a.receipt.json"
    write_receipt(path, receipt(tmp_path, "a"))
    assert places_of((Path("scale_rows_b8xh64"),), own) == (path,)
    shipped = tmp_path / "scale_rows" / "winners" / path.name
    write_receipt(shipped, receipt(tmp_path, "b"))
    assert places_of((Path("scale_rows_b8xh64"), path), own) == (shipped, path)
    with pytest.raises(ToolError, match="scale_rows_b32xh256 has no winner yet"):
        places_of((Path("scale_rows_b32xh256"),), own)
    with pytest.raises(ToolError, match="scale_rows_b9 is no file and no kernel id"):
        places_of((Path("scale_rows_b9"),), own)
