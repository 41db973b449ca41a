"""Many tune choices in few sessions: how jobs are read, and which choices they ask for."""

from pathlib import Path

import pytest
from bench_choices import ChoiceJob, read_jobs


def test_a_job_names_a_kernel_a_source_and_the_values_to_combine() -> None:
    text = "# a remark\n\ngemm_bf16_m1xn4096xk4096 mine.cu RANKS=1,2 RING_KB=64\nother its.cu\n"
    found = read_jobs(text)
    assert found == [
        ChoiceJob("gemm_bf16_m1xn4096xk4096", Path("mine.cu"), {"RANKS": (1, 2), "RING_KB": (64,)}),
        ChoiceJob("other", Path("its.cu"), {}),
    ]
    assert list(found[0].choices()) == [{"RANKS": 1, "RING_KB": 64}, {"RANKS": 2, "RING_KB": 64}]
    assert list(found[1].choices()) == [{}]


@pytest.mark.parametrize("line", ["gemm", "gemm mine.cu RANKS", "gemm mine.cu RANKS=two"])
def test_a_line_that_is_no_job_is_told_with_its_number(line: str) -> None:
    with pytest.raises(SystemExit, match="line 2 is not KERNEL_ID FILE"):
        read_jobs(f"a b.cu\n{line}\n")


def test_a_source_offers_the_values_of_its_job(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("/* kopt: 1\ntune: {RANKS: [1], RING_KB: [48, 96]}\n*/\n", "utf-8")
    source = ChoiceJob("k", path, {"RING_KB": (64, 208)}).candidate().source
    assert "tune: {RANKS: [1], RING_KB: [64, 208]}" in source
    with pytest.raises(SystemExit, match="no ROWS in the header's tune"):
        ChoiceJob("k", path, {"ROWS": (8,)}).candidate()
