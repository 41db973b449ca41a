"""The table of the shipped winners: what it says, and that the documents say the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from headroom_table import CopyTime, Headroom, HeadroomRow, PathTimes
from markdown_tables import insert_between
from result_rows import read_results
from results_table import (
    MARKS,
    SHORT_KERNELS,
    VERIFIED,
    printed_cells,
    results_markdown,
    shipped_results,
    short_markdown,
    verified_kernels,
    with_tables,
)

from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from support.bench_results import H100, latency
from support.receipts import evidence, sealed_receipt, sealed_receipts, write_receipt, write_winner
from support.tiny_problem import write_tiny_problem

ROOT = Path(__file__).parents[2]
BEGIN, END = MARKS
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "results.md"]


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return load_problem(write_tiny_problem(tmp_path))


def ship(problem: Problem, **fields: Any) -> None:
    """Write the receipts of both workloads of scale_rows: 1.25x at 8 rows, 2x at 32."""
    speedups = {"b8xh64": 1.25, "b32xh256": 2.0}
    workloads = tuple(evidence(f"scale_rows_{name}", name, x) for name, x in speedups.items())
    receipts = sealed_receipts("scale_rows", workloads=workloads, **fields)
    write_winner(problem.folder / "winners", *receipts)


def table(problem: Problem, headroom: Headroom | None = None) -> str:
    return results_markdown(read_results([problem], headroom))


def test_a_row_says_what_the_receipt_does(problem: Problem) -> None:
    ship(problem)
    lines = table(problem).splitlines()
    assert lines[0] == "NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-01-01."
    row = next(line for line in lines if "b8xh64" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:6] == ["`scale_rows_b8xh64`", "B=8 H=64", "reference", "5.000", "4.000", "1.250x"]
    assert cells[7] == "0%*"  # 4 KB: next to nothing beside an empty kernel


def test_the_interval_spans_those_of_all_measurements(problem: Problem) -> None:
    ship(problem)
    measured = evidence("k", "b8xh64").measurements
    low = min(one.interval[0] for one in measured)
    high = max(one.interval[1] for one in measured)
    assert f"| {low:.3f} to {high:.3f} |" in table(problem)


def test_means_are_geometric_and_by_class(problem: Problem) -> None:
    ship(problem)
    text = table(problem)
    assert "- geometric mean, up to 128 rows (2): 1.58x" in text
    assert "above 128 rows" not in text
    assert "- geometric mean, all (2): 1.58x" in text


def test_measured_copies_make_a_column(problem: Problem) -> None:
    ship(problem)
    assert "of a copy" not in table(problem)
    with_copies = table(problem, headroom(copy_us=2.0))
    assert "| of a copy |" in with_copies
    assert "| 50% |" in with_copies


def test_copies_of_another_gpu_of_the_model_are_said_to_be(problem: Problem) -> None:
    ship(problem)
    found = headroom(copy_us=2.0)
    other = found.model_copy(update={"gpu": H100.model_copy(update={"uuid": "GPU-2"})})
    assert "on two GPUs" not in table(problem, found)
    assert "measured but not together, on different GPUs of the model" in table(problem, other)


def test_copies_of_another_model_of_gpu_do_not_count(problem: Problem) -> None:
    ship(problem)
    found = headroom(copy_us=2.0)
    other = found.model_copy(update={"gpu": H100.model_copy(update={"name": "NVIDIA B200"})})
    assert "of a copy" not in table(problem, other)


def test_devices_have_tables_of_their_own(problem: Problem) -> None:
    ship(problem)
    b200 = H100.model_copy(
        update={"name": "NVIDIA B200", "compute_capability": (10, 0), "sm_count": 148}
    )
    ship(problem, device=b200, arch="sm_100a")
    text = table(problem)
    assert text.count("| kernel | shape |") == 2
    assert "NVIDIA B200, driver" in text


def test_what_a_receipt_flags_is_flagged_in_the_table(problem: Problem) -> None:
    ship(problem, flagged=("kernel k keeps lines in L2",))
    text = table(problem)
    assert "`scale_rows_b8xh64` (flagged)" in text
    assert "raises scrutiny" in text


def test_a_receipt_beside_another_workload_is_refused(problem: Problem) -> None:
    ship(problem)
    path = problem.folder / "winners" / "b32xh256.sm_90a.receipt.json"
    write_receipt(path, sealed_receipt("scale_rows"))
    with pytest.raises(SystemExit, match="says nothing of b32xh256"):
        table(problem)


def test_a_table_takes_the_place_of_the_one_before() -> None:
    document = f"# Title\n\n{BEGIN}\nold\n{END}\n\nafter\n"
    assert insert_between(document, MARKS, "new\n") == f"# Title\n\n{BEGIN}\nnew\n{END}\n\nafter\n"


@pytest.mark.parametrize("text", ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{END}\n" * 2])
def test_a_document_without_a_place_for_it_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="put these two lines"):
        insert_between(text, MARKS, "new\n")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_documents_show_the_shipped_winners(path: Path) -> None:
    shown = path.read_text("utf-8")
    assert with_tables(shown, shipped_results()) == shown


def test_no_mean_joins_two_devices(problem: Problem) -> None:
    ship(problem)
    few, many = read_results([problem])
    h200 = H100.model_copy(update={"name": "NVIDIA H200", "uuid": "GPU-2"})
    text = short_markdown([few, replace(many, device=h200)])
    assert "NVIDIA H100 80GB HBM3, measured:\n\n- geometric mean, up to 128 rows (1): 1.25x" in text
    assert "NVIDIA H200, measured:\n\n- geometric mean, up to 128 rows (1): 2.00x" in text
    assert "(2)" not in text


def test_the_first_page_names_the_gpu_of_each_row() -> None:
    rows = {row.kernel: row for row in shipped_results()}
    shown = (ROOT / "README.md").read_text("utf-8")
    for kernel in SHORT_KERNELS:
        assert f"| `{kernel}` | {rows[kernel].device.name} |" in shown


def test_the_first_page_has_five_rows_of_the_table() -> None:
    shown = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in SHORT_KERNELS if f"| `{name}` |" not in shown] == []


def headroom(copy_us: float) -> Headroom:
    """Return a survey of the kernel of 8 rows."""
    row = HeadroomRow(
        kernel="scale_rows_b8xh64",
        rows=8,
        total_bytes=4096,
        measured_at="2026-01-01T00:00:00+00:00",
        times=PathTimes(
            paths=(), rejected=(), reference=latency(5.0), empty_us=1.1, empty_pdl_us=0.9
        ),
        copy_time=CopyTime(
            total_bytes=4096, latency=latency(copy_us), block=256, vectors=1, pdl=True
        ),
        ceiling_gb_s=3000.0,
    )
    return Headroom(gpu=H100, planned=1, rows=(row,))


def test_verify_reproduced_every_receipt_that_it_printed() -> None:
    """benchmarks/verified.txt has every kernel; the table says which receipts are new since."""
    _, *rows = printed_cells(VERIFIED.read_text("utf-8"))
    assert {row[0]: row[-1] for row in rows} == dict.fromkeys(
        (row.kernel for row in shipped_results()), "reproduced"
    )


def printed(*rows: tuple[str, str, str]) -> str:
    """Return what `kopt verify` prints of kernels, each with its receipt and outcome."""
    between = "1.2 to 1.3  1.25x  1.24 to 1.26  faster  flashinfer (PDL on)"
    return "\n".join(f"{kernel}  {was}  {between}  {outcome}" for kernel, was, outcome in rows)


def test_a_winner_that_nobody_verified_is_named_beside_the_table(problem: Problem) -> None:
    ship(problem)
    of_another = "scale_rows_b32xh256", "1.900x", "reproduced"
    text = printed(("scale_rows_b8xh64", "1.250x", "reproduced"), of_another)
    lines = results_markdown(read_results([problem]), text).splitlines()
    told = "1 of 2 reproduced by it on another GPU than the receipt's (benchmarks/verified.txt)"
    assert lines[-1] == f"{told}; not verified yet: `scale_rows_b32xh256`."


def test_a_receipt_that_did_not_reproduce_is_not_called_verified(problem: Problem) -> None:
    ship(problem)
    text = printed(("scale_rows_b8xh64", "1.250x", "not reproduced"))
    assert verified_kernels(read_results([problem]), text) == []
