"""Candidates to a share of the best, in the order of a run and in that of a run without memory."""

from pathlib import Path

import pytest
from first_reach import reach, table
from stop_rule import StoredRun, read_run

from support.bench_results import H100
from support.populations import member, timed
from support.scripted_runs import new_store

EVERY = "generated-cluster_sums-dependent_launch.cu"
MANY = "generated-dependent_launch.cu"


def _run(home: Path, *written: tuple[str, float]) -> StoredRun:
    """Return a run whose first round wrote these kernels, with their speedups."""
    with new_store(home, device="cuda:0", gpu=H100) as store:
        folder = store.folder
    run = read_run(folder, {})
    start = member(0, timed(4.0, 0.5), source_name="reference.cu")
    members = (
        member(seq, timed(1.0 / speed, speed), round=1, source_name=name)
        for seq, (name, speed) in enumerate(written, 1)
    )
    return StoredRun(run.state, run.rounds, (start, *members))


def test_both_orders_are_told_from_the_same_measurements(tmp_path: Path) -> None:
    run = _run(tmp_path, ("generated.cu", 1.0), (MANY, 1.2), (EVERY, 2.0), ("generated-x.cu", 1.0))
    assert reach(run, 0.95) == (3, 2, frozenset({"dependent_launch"}))
    assert reach(run, 0.6) == (2, 2, frozenset({"dependent_launch"}))
    assert "means of 1 runs: 3.00 with memory, 2.00 without" in table([run], 0.95)


def test_a_best_kernel_of_a_later_round_is_reached_in_the_run_alone(tmp_path: Path) -> None:
    run = _run(tmp_path, ("generated.cu", 1.0), (EVERY, 1.2))
    later = member(3, timed(0.5, 2.0), round=2, source_name=MANY)
    run = StoredRun(run.state, run.rounds, (*run.members, later))
    assert reach(run, 0.95) == (3, None, frozenset({"cluster_sums", "dependent_launch"}))
    assert "means" not in table([run], 0.95)


@pytest.mark.parametrize("written", [(), (("mine.cu", 2.0),)])
def test_a_run_without_written_kernels_is_left_out(
    written: tuple[tuple[str, float], ...], tmp_path: Path
) -> None:
    run = _run(tmp_path, *written)
    assert reach(run, 0.95) is None
    assert "means" not in table([run], 0.95)
