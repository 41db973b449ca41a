"""`kopt bench --all`: which kernels are timed, one table as text, Markdown and JSON, its ending."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, KoptError, ToolError
from kopt.kernels.bench_result import BenchAllResult, BenchResult, Rotation
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status, Verdict
from kopt.server import opened_device
from kopt.server.exits import ExitCode
from kopt.tools.bench import bench_all
from kopt.tools.bench.request import BenchRequest
from support.bench_results import bench_result, comparison, failed_bench
from support.command_line import Kopt
from support.named_gpu import NamedGpu, opener

Bench = Callable[[BenchRequest], BenchResult]
Script = Callable[[Bench], list[BenchRequest]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a function that sets what each benchmark gives; it returns the requests."""
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))

    def set_bench(bench: Bench) -> list[BenchRequest]:
        requests: list[BenchRequest] = []

        def stand_in(request: BenchRequest, *_: object) -> BenchResult:
            requests.append(request)
            return bench(request)

        monkeypatch.setattr(bench_all, "bench_candidate", stand_in)
        return requests

    return set_bench


def _slower(request: BenchRequest) -> BenchResult:
    del request
    return bench_result(
        Verdict.SLOWER,
        comparisons=(
            comparison(Verdict.SLOWER, speedup=0.9, interval=(0.89, 0.91)),
            comparison(Verdict.INCONCLUSIVE, speedup=1.0, interval=(0.999, 1.001)),
        ),
    )


def _copy_problem(name: str, into: Path) -> Path:
    """Return a folder in `into` with silu_and_mul under another name, without winners."""
    packaged = Path(bench_all.__file__).parents[2] / "kernels" / "problems" / "silu_and_mul"
    folder = into / name
    folder.mkdir()
    for file in ("problem.yaml", "oracle.py", "reference.cu"):
        text = (packaged / file).read_text("utf-8")
        (folder / file).write_text(text.replace("name: silu_and_mul", f"name: {name}", 1))
    return folder


@pytest.mark.slow  # every kernel
def test_every_reference_kernel_is_timed_against_every_baseline(kopt: Kopt, script: Script) -> None:
    requests = script(_slower)
    ending = kopt("bench", "--all", "--json")
    ids = [
        problem.kernel_id(workload)
        for problem in load_problems().values()
        for workload in problem.workloads
        if workload.use != "check"
    ]
    timed = [f"{request.case.problem.name}_{request.case.workload.name}" for request in requests]
    assert list(dict.fromkeys(timed)) == ids  # a shipped winner is timed right after its reference
    assert {request.baselines for request in requests} == {"every"}
    table = BenchAllResult.model_validate_json(ending.stdout)
    assert [row.kernel for row in table.rows if row.source == "reference"] == ids


def test_a_reference_kernel_slower_than_the_library_is_no_failure(
    kopt: Kopt, script: Script
) -> None:
    script(_slower)
    assert kopt("bench", "--all", "--kernel", "silu_and_mul").code == ExitCode.PASSED


def test_filters_are_parts_of_kernel_ids(kopt: Kopt, script: Script) -> None:
    requests = script(_slower)
    kopt("bench", "--all", "--kernel", "silu_and_mul_b8x", "--kernel", "merge_state_n8x")
    timed = {f"{request.case.problem.name}_{request.case.workload.name}" for request in requests}
    assert timed == {"silu_and_mul_b8xh14336", "merge_state_n8xh64xd128"}


def test_winners_of_the_device_s_architecture_are_timed_too(
    kopt: Kopt, script: Script, tmp_path: Path
) -> None:
    folder = _copy_problem("my_silu", tmp_path)
    (folder / "winners").mkdir()
    for arch in ("sm_90a", "sm_100a"):
        winner = folder / "winners" / f"b8xh14336.{arch}.cu"
        winner.write_text((folder / "reference.cu").read_text("utf-8"))
    requests = script(_slower)
    words = ("--kernel", "my_silu_b8xh14336", "--problems", tmp_path)
    kopt("bench", "--all", *words)
    names = [request.case.candidate.name for request in requests]
    assert names == ["reference.cu", "b8xh14336.sm_90a.cu"]


def test_the_table_has_a_row_for_each_baseline_and_says_why_others_are_missing(
    kopt: Kopt, script: Script, tmp_path: Path
) -> None:
    script(_slower)
    page = tmp_path / "table.md"
    words = ("--kernel", "silu_and_mul", "--markdown", page)
    text = kopt("bench", "--all", *words).stdout
    markdown = page.read_text("utf-8")
    row = "| silu_and_mul_b8xh14336 | reference | 2.390 | flashinfer_cute (PDL on) | 2.900 |"
    assert f"{row} 0.900x | 0.890 to 0.910 | slower |" in markdown
    assert f"{row} 1.000x | 0.999 to 1.001 | inconclusive |" in markdown
    for document in (text, markdown):
        assert "NVIDIA H100 80GB HBM3 (cuda:0), driver 580.159.04" in document
        assert "silu_and_mul_b128xh14336" in document
    reason = "flashinfer (PDL off): failed check, output never written"
    assert markdown.count(reason) == text.count(reason) == 1
    assert "Not timed: silu_and_mul_b8xh14336" in text
    assert "warm" not in text + markdown


def test_kernels_whose_times_are_warm_are_named(kopt: Kopt, script: Script, tmp_path: Path) -> None:
    script(lambda _: bench_result(rotation=Rotation(sets=8, set_bytes=1 << 20, over_l2=0.2)))
    page = tmp_path / "table.md"
    words = ("--kernel", "silu_and_mul_b8x", "--markdown", page)
    said = "Times are warm: the buffer sets do not fill the L2 twice: silu_and_mul_b8xh14336."
    assert said in kopt("bench", "--all", *words).stdout
    assert said in page.read_text("utf-8")


@pytest.mark.parametrize(
    "error", [ToolError("the reference | kernel is wrong"), InfraError("the worker ended")]
)
def test_what_is_no_kernel_s_fault_costs_its_own_row_and_is_exit_code_3(
    kopt: Kopt, script: Script, error: KoptError
) -> None:
    def bench(request: BenchRequest) -> BenchResult:
        if request.case.workload.name == "b8xh14336":
            raise error
        return _slower(request)

    script(bench)
    ending = kopt("bench", "--all", "--kernel", "silu_and_mul")
    assert ending.code == ExitCode.MACHINE
    assert f"silu_and_mul_b8xh14336: reference: {error}" in ending.stdout
    assert "silu_and_mul_b128xh14336" in ending.stdout


@pytest.mark.parametrize(
    "result",
    [
        failed_bench(Status.INCORRECT),
        bench_result(Verdict.IMPOSSIBLE, comparisons=(comparison(Verdict.IMPOSSIBLE),)),
    ],
)
def test_a_kernel_that_falls_short_is_exit_code_1(
    kopt: Kopt, script: Script, result: BenchResult
) -> None:
    script(lambda _: result)
    assert kopt("bench", "--all", "--kernel", "silu_and_mul").code == ExitCode.FELL_SHORT


def test_an_interrupted_table_shows_and_keeps_the_rows_that_it_has(
    kopt: Kopt, script: Script, tmp_path: Path
) -> None:
    def bench(request: BenchRequest) -> BenchResult:
        if request.case.workload.name == "b1024xh14336":
            raise KeyboardInterrupt
        return _slower(request)

    folder = _copy_problem("my_silu", tmp_path)  # no winners: a row for each workload
    script(bench)
    page = tmp_path / "table.md"
    words = ("--kernel", "my_silu", "--problems", folder.parent, "--markdown", page)
    ending = kopt("bench", "--all", *words)
    assert ending.code == ExitCode.INTERRUPTED
    assert "interrupted after 2 of 3 rows" in ending.stderr
    for document in (ending.stdout, page.read_text("utf-8")):
        assert "silu_b128xh14336" in document
        assert "INCOMPLETE: 1 of 3 rows were not reached." in document


def test_a_file_that_can_no_longer_be_written_costs_no_row(
    kopt: Kopt, script: Script, tmp_path: Path
) -> None:
    page = tmp_path / "table.md"

    def bench(request: BenchRequest) -> BenchResult:
        if request.case.workload.name == "b128xh14336":
            page.unlink()
            page.mkdir()
        return _slower(request)

    script(bench)
    ending = kopt("bench", "--all", "--kernel", "silu_and_mul", "--markdown", page)
    assert ending.code == ExitCode.MACHINE
    assert f"cannot write {page}" in ending.stderr
    assert "silu_and_mul_b128xh14336" in ending.stdout


def test_the_simulator_gives_no_table(kopt: Kopt) -> None:
    ending = kopt("bench", "--all", "--device", "sim")
    assert ending.code == ExitCode.MACHINE
    assert "needs a GPU: sim measures no time" in ending.stderr


def test_without_a_gpu_no_empty_table_is_left(kopt: Kopt, tmp_path: Path) -> None:
    page = tmp_path / "table.md"
    ending = kopt("bench", "--all", "--device", "sim", "--markdown", page)
    assert (ending.code, page.exists()) == (ExitCode.MACHINE, False)


def test_a_table_that_cannot_be_written_is_refused_before_anything_is_timed(
    kopt: Kopt, script: Script
) -> None:
    requests = script(_slower)
    ending = kopt("bench", "--all", "--kernel", "silu_and_mul", "--markdown", "/no/such/x.md")
    assert ending.code == ExitCode.MACHINE
    assert "cannot write /no/such/x.md" in ending.stderr.splitlines()[0]
    assert requests == []  # before hours of timing, not after
