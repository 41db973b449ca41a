"""`kopt export` from the command line: what WINNER may be, and what is written."""

import json
import re
from pathlib import Path

import pytest

from kopt.config.plain_text import is_plain
from kopt.kernels.candidate import read_candidate
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.receipt import ReceiptCubin
from kopt.kernels.shipped_kernels import evidence_of, source_of
from kopt.kernels.unproven_facts import facts_text, read_facts
from kopt.search.store.round_table import NewRound
from kopt.server.exits import ExitCode
from kopt.tools.bench.bound_files import problem_files
from support.bench_results import H100
from support.command_line import Kopt
from support.populations import passed
from support.receipts import evidence, sealed_receipts, write_winner
from support.scripted_runs import new_store, start
from support.shared_caches import share_caches
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # exports are compiled

PROBLEMS = Path(__file__).parents[2] / "kernels" / "problems"
REFERENCE = PROBLEMS / "merge_state" / "reference.cu"


@pytest.fixture
def problem_folder(tmp_path: Path) -> Path:
    return write_tiny_problem(tmp_path)


def ship(problem_folder: Path, folder: Path) -> Path:
    """Write a winner of scale_rows with its receipt to `folder` and return the receipt."""
    problem = load_problem(problem_folder)
    candidate = read_candidate(problem_folder / "reference.cu")
    names = tuple(workload.name for workload in problem.workloads)
    receipts = sealed_receipts(
        "scale_rows",
        candidate,
        problem_files=problem_files(problem),
        tune={"BLOCK": 128},
        cubins=(ReceiptCubin(arch="sm_90a", defines={}, workloads=names, sha256="a" * 64),),
        workloads=tuple(evidence(f"scale_rows_{name}", name) for name in names),
    )
    return write_winner(folder, *receipts)[0]


def test_a_receipt_is_exported_with_what_it_proves(
    kopt: Kopt, problem_folder: Path, tmp_path: Path
) -> None:
    receipt = ship(problem_folder, tmp_path)
    out = tmp_path / "out"
    words = ("--as", "cuda", "-o", out, "--problems", tmp_path)
    document = kopt("export", receipt, *words, "--json").document
    assert document["schema"] == "kopt.export/1"
    assert document["kernels"] == ["scale_rows_b8xh64", "scale_rows_b32xh256"]
    assert (
        sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
        == (document["files"])
    )
    assert {"src/scale_rows.h", "Makefile", "CMakeLists.txt", "LICENSE"} <= set(document["files"])
    said = (out / "README.md").read_text()
    assert "passed kopt's full check" in said
    assert "compute-sanitizer found nothing" in said
    assert document["receipt"] in said and H100.name in said and H100.driver_version in said
    assert re.search(
        r"\| b8xh64 \| reference \| 5.00 \| 4.00 \| 1.250x \| 1.2\d+ to 1.2\d+ \|", said
    )


def test_a_source_of_which_another_winner_took_a_workload_says_so(
    kopt: Kopt, problem_folder: Path, tmp_path: Path
) -> None:
    kept = ship(problem_folder, problem_folder / "winners")
    taken = kept.with_name("b32xh256.sm_90a.receipt.json")
    names = json.loads(taken.read_text()) | {"source_file": "scale_rows-2.sm_90a.cu"}
    taken.write_text(json.dumps(names))
    out = tmp_path / "out"
    assert kopt("export", kept, "--as", "cuda", "--problems", tmp_path, "-o", out).code == 0
    said = (out / "README.md").read_text()
    assert (
        "b8xh64.sm_90a.receipt.json (no receipt beside it is of this source for b32xh256)" in said
    )
    assert "| b32xh256 | reference |" not in said


def test_a_source_takes_the_receipt_beside_it_and_an_edited_one_does_not(
    kopt: Kopt, problem_folder: Path, tmp_path: Path
) -> None:
    source = source_of(ship(problem_folder, problem_folder / "winners"))
    words = ("--as", "tvm-ffi", "--problems", tmp_path)
    proven = kopt("export", source, *words, "-o", tmp_path / "proven")
    said = " ".join(proven.stdout.split())
    assert "claimed by its receipt; not measured here" in said
    assert "## What the receipt claims" in (tmp_path / "proven" / "README.md").read_text()
    source.write_text(source.read_text().replace("* scale", "* (scale)"))
    edited = kopt("export", source, *words, "-o", tmp_path / "edited")
    assert "without a receipt" in edited.stdout.splitlines()[0]
    assert "There is no receipt" in (tmp_path / "edited" / "README.md").read_text()


def test_a_kernel_id_is_its_promoted_winner(
    kopt: Kopt, problem_folder: Path, tmp_path: Path
) -> None:
    words = ("scale_rows_b8xh64", "--as", "torch", "--problems", tmp_path, "-o", tmp_path / "out")
    none = kopt("export", *words)
    assert (none.code, none.stdout) == (ExitCode.USAGE, "")
    assert "scale_rows_b8xh64 has no promoted winner" in none.stderr
    ship(problem_folder, problem_folder / "winners")
    other = kopt("export", *words, "--arch", "sm_100a")
    assert "no promoted winner for sm_100a; there is one for sm_90a" in other.stderr
    assert kopt("export", *words).code == ExitCode.PASSED
    assert (tmp_path / "out" / "scale_rows" / "csrc" / "torch_binding.cpp").is_file()


def test_a_candidate_of_a_run_says_what_the_run_found(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_caches: Path
) -> None:
    home = share_caches(tmp_path / "home", shared_caches)
    monkeypatch.setenv("KOPT_HOME", str(home))
    proposal = start(REFERENCE.read_text(), {"BLOCK": 512})
    with new_store(home, kernel="merge_state_n8xh64xd128", arch="sm_90a") as store:
        store.rounds.open(NewRound(number=0, kind="start", proposals=(proposal,)))
        lease = store.queue.lease_next("quick")
        assert lease is not None
        store.queue.finish(lease, passed(latency_us=2.0), 0.0)
    out = tmp_path / "out"
    ending = kopt("export", "run-1/0", "--as", "cuda", "--to", out)
    assert ending.code == ExitCode.PASSED, ending.stderr
    said = (out / "README.md").read_text()
    assert "candidate 0 of run-1" in said and "That is no receipt" in said
    assert "quick evaluation on sim: passed." in said
    assert "#define BLOCK 512\n" in (out / "src" / "merge_state_all.cu").read_text()
    missing = kopt("export", "run-1/9", "--as", "cuda", "-o", tmp_path / "other")
    assert "run-1 has no candidate 9; its 1 are numbered from 0" in missing.stderr
    # beam_step ends the names of its runs with hexadecimal digits.
    whole = kopt("export", "run-20260101-120000-5e7fbd00", "--as", "cuda", "-o", tmp_path / "other")
    assert "no run" in whole.stderr and "kernel" not in whole.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((REFERENCE,), "does not say for which GPU it is: name --arch"),
        ((REFERENCE.parent,), "is a folder: name a receipt or a .cu file in it"),
        (("no_such_kernel_b8",), "no kernel is called 'no_such_kernel_b8'"),
        (("missing.cu",), "cannot read missing.cu"),
        ((REFERENCE, "--arch", "sm_90a", "--tune", "WARPS=77"), "--tune WARPS=77"),
    ],
)
def test_what_cannot_be_found_says_what_is_missing(
    kopt: Kopt, tmp_path: Path, words: tuple[object, ...], says: str
) -> None:
    ending = kopt("export", *words, "--as", "cuda", "-o", tmp_path / "out")
    assert ending.code == ExitCode.USAGE
    assert says in ending.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(kopt: Kopt, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    words = ("export", REFERENCE, "--arch", "sm_90a", "--as", "cuda", "-o", tmp_path)
    ending = kopt(*words)
    assert (ending.code, "is not an empty folder" in ending.stderr) == (ExitCode.USAGE, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_tune_values_and_flags_are_those_of_the_command(kopt: Kopt, tmp_path: Path) -> None:
    words = ("--arch", "sm_100a", "--as", "torch", "--tune", "BLOCK=512", "-o", tmp_path / "out")
    source = PROBLEMS / "fused_add_rmsnorm" / "reference.cu"
    assert kopt("export", source, *words).code == ExitCode.PASSED
    package = tmp_path / "out" / "fused_add_rmsnorm"
    assert "#define BLOCK 512\n" in (package / "csrc" / "fused_add_rmsnorm_all.cu").read_text()
    assert '"-gencode=arch=compute_100a,code=sm_100a"' in (package / "__init__.py").read_text()


def test_an_unproven_kernel_says_that_it_never_ran_on_its_gpu(kopt: Kopt, tmp_path: Path) -> None:
    shipped = PROBLEMS / "nvfp4_quantize" / "unproven" / "nvfp4_quantize.sm_100a.cu"
    candidate = read_candidate(shipped)
    (evidence,) = evidence_of(shipped)
    facts = read_facts(evidence).model_copy(update={"candidate": candidate.id})
    source = tmp_path / shipped.name
    source.write_text(candidate.source)
    (tmp_path / evidence.name).write_text(facts_text(facts))
    words = ("export", source, "--kernel", "nvfp4_quantize_m128xk14336", "--as", "cuda", "-o")
    document = kopt(*words, tmp_path / "out", "--json").document
    assert (document["arch"], document["receipt"]) == ("sm_100a", None)
    said = (tmp_path / "out" / "README.md").read_text()
    assert "**Never run on a B200" in said and "CPU simulator, full check" in said
    source.write_text(candidate.source + "// edited\n")
    kopt(*words, tmp_path / "edited")
    assert "CPU simulator, full check" not in (tmp_path / "edited" / "README.md").read_text()


def test_an_export_has_no_character_that_is_not_seen(
    kopt: Kopt, problem_folder: Path, tmp_path: Path
) -> None:
    text = (problem_folder / "reference.cu").read_text()
    path = tmp_path / "mine\x1b[2J\u202e.cu"
    path.write_text(text)
    for form in ("cuda", "torch"):
        out = tmp_path / form
        words = ("--kernel", "scale_rows_b8xh64", "--arch", "sm_90a", "--problems", tmp_path)
        assert kopt("export", path, "--as", form, "-o", out, *words).code == 0
        written = [one for one in out.rglob("*") if one.is_file()]
        assert all(is_plain(str(one)) for one in written)
        assert [one for one in written if not is_plain(one.read_text(), "\n\t\f")] == []
