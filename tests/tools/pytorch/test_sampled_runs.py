"""Runs with sampled roundings, several at once: the same bits, in order, and no more than fit."""

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.tools.pytorch import sampled_runs
from kopt.tools.pytorch.graph import Ref
from support.imported_graphs import Imported, node

BOUND_S = 60.0
MUCH = 1 << 21
"""Values of a graph that is worth threads."""


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Have as many processors, and threads of this test's own."""
    monkeypatch.setattr(sampled_runs, "processors", lambda: 4)
    pool = sampled_runs.shared_pool
    pool.cache_clear()
    yield
    pool().shutdown()
    pool.cache_clear()


def test_results_come_in_the_order_of_seeds_whichever_ends_first() -> None:
    ended = [threading.Event() for _ in range(4)]

    def run(seed: int) -> int:
        if seed < 3:
            assert ended[seed + 1].wait(BOUND_S)  # four are under way
        if seed < 4:
            ended[seed].set()
        return seed

    assert list(sampled_runs.sampled_runs(run, 10, MUCH)) == list(range(10))


def test_what_is_small_or_fills_the_memory_runs_alone() -> None:
    here = threading.get_ident()
    for values in (100, sampled_runs.HELD_ELEMENTS):
        threads = set(sampled_runs.sampled_runs(lambda _: threading.get_ident(), 5, values))
        assert threads == {here}


def test_no_more_run_at_once_than_fit() -> None:
    lock, under_way, most = threading.Lock(), [0], [0]
    both = threading.Barrier(2, timeout=BOUND_S)

    def run(seed: int) -> int:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        both.wait()
        with lock:
            under_way[0] -= 1
        both.wait()
        return seed

    values = sampled_runs.HELD_ELEMENTS // 2
    assert list(sampled_runs.sampled_runs(run, 6, values)) == list(range(6))
    assert most == [2]


def test_the_error_of_a_run_is_raised() -> None:
    def run(seed: int) -> int:
        if seed == 1:
            raise ToolError("it fails")
        return seed

    with pytest.raises(ToolError, match="it fails"):
        list(sampled_runs.sampled_runs(run, 16, MUCH))


def test_a_budget_has_the_same_bits_however_many_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((24, 640)).astype(np.float32) for name in ("x", "y")}
    products = Imported.of(
        tmp_path,
        inputs,
        node("e", "aten.exp.default", (Ref(node="x"),), (24, 640)),
        node("m", "aten.mul.Tensor", (Ref(node="e"), Ref(node="y")), (24, 640)),
        node("s", "aten.sum.dim_IntList", (Ref(node="m"), (1,)), (24,)),
    )
    alone = products.expected(inputs)
    used: list[int] = []
    real = sampled_runs.shared_pool

    def counted() -> ThreadPoolExecutor:
        used.append(1)
        return real()

    monkeypatch.setattr(sampled_runs, "LITTLE_ELEMENTS", 0)
    monkeypatch.setattr(sampled_runs, "shared_pool", counted)
    together = products.expected(inputs)
    assert len(used) == 16
    assert alone.slack is not None
    assert together.slack is not None
    np.testing.assert_array_equal(together.slack, alone.slack)
    np.testing.assert_array_equal(together.exact, alone.exact)
