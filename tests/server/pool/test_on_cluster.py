"""Commands and runs on a Ray cluster of two nodes on this machine, whose processes are killed."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.pool_cluster import GPUS, TwoNodes, two_nodes
from support.pool_faults import Fault, numbers_of, run_with_faults, start_run, undisturbed
from support.pool_run import ODD
from support.shared_caches import share_caches
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # Ray takes eight seconds to start, and some to miss what is killed

MOST = 600
FEW: Mapping[int, Fault] = {
    8: "worker",
    14: "actor",
    22: "driver",
    32: "coordinator",
    42: "node",
    52: "new node",
}
MANY: Mapping[int, Fault] = {
    30: "worker",
    60: "actor",
    90: "worker",
    120: "actor",
    150: "driver",
    180: "actor",
    200: "coordinator",
    230: "worker",
    250: "node",
    300: "actor",
    330: "new node",
    360: "worker",
    400: "driver",
    430: "actor",
    450: "node",
    480: "coordinator",
    510: "actor",
    520: "new node",
    550: "worker",
    580: "actor",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Generator[TwoNodes]:
    """Return the cluster that the tests of this file share; each leaves two nodes."""
    home = tmp_path_factory.mktemp("cluster") / "home"
    with two_nodes(share_caches(home, shared_caches)) as made:
        yield made


@pytest.fixture
def joined(cluster: TwoNodes, kopt: Kopt, monkeypatch: pytest.MonkeyPatch) -> TwoNodes:
    """Return the cluster, with what commands of this process join it with."""
    del kopt  # sets KOPT_HOME, which stays
    for name, value in cluster.environment.items():
        if name.startswith("RAY_"):
            monkeypatch.setenv(name, value)
    return cluster


def test_a_candidate_is_checked_on_simulators_there(
    kopt: Kopt, joined: TwoNodes, tmp_path: Path
) -> None:
    source = write_tiny_problem(tmp_path) / "reference.cu"
    wrong = source.with_name("wrong.cu")
    wrong.write_text(source.read_text().replace("h < H;", "h < H + 1;"))
    ending = kopt("check", wrong, "--device", f"ray://{joined.address}/sim", "--json")
    assert (ending.code, ending.document["device"]) == (ExitCode.FELL_SHORT, "sim")
    assert ending.document["status"] == Status.OUT_OF_BOUNDS
    status = kopt("pool", "status", "--device", f"ray://{joined.address}")
    assert status.code == ExitCode.PASSED
    assert f"{2 * GPUS} evaluators, 0 at work" in status.stdout
    assert status.stdout.count("simulator") == 2 * GPUS


@pytest.mark.nightly
def test_two_runs_share_the_gpus_and_status_tells_of_both(
    kopt: Kopt, joined: TwoNodes, tmp_path: Path
) -> None:
    words = ("pool", "status", "--device", f"ray://{joined.address}")
    with ExitStack() as stack:
        runs = [
            stack.enter_context(start_run(tmp_path / name, joined, MOST)) for name in ("one", "two")
        ]
        for run in runs:
            assert next(numbers_of(run)) == 1
        ending = kopt(*words, "--json")
        for run in runs:
            run.kill()
    (pool,) = (one for one in ending.document["pools"] if one["callers"])
    assert len(pool["evaluators"]) == 2 * GPUS
    assert [one["evaluations"] > 0 for one in pool["callers"]] == [True, True]
    assert pool["evaluations_a_minute"] > 0


@pytest.mark.parametrize(
    ("count", "faults"),
    [(60, FEW), pytest.param(MOST, MANY, marks=pytest.mark.nightly)],
)
def test_no_result_is_lost_or_twice_whatever_dies(
    cluster: TwoNodes, tmp_path: Path, count: int, faults: Mapping[int, Fault]
) -> None:
    wanted = undisturbed(tmp_path / "calm", count)
    run = run_with_faults(cluster, tmp_path / "wild", count, faults)
    assert run.killed.total() == len(faults)
    assert run.final == wanted
    assert len(run.results) == count + 1  # the winner's full check
    assert set(run.results.values()) == {1}
    # Each fault repeats what was under way, on two evaluators a node at most and once more.
    assert count < run.executions <= count + 1 + len(ODD) + 4 * GPUS * len(faults)
