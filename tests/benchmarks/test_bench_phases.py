"""What `benchmarks/phases` puts clocks around is there."""

import pkgutil

import pytest
from bench_phases import TARGETS as OF_KOPT
from phase_clock import PhaseClock, table
from timed_engine import TARGETS as OF_THE_WORKER


@pytest.mark.parametrize("target", [*OF_KOPT, *OF_THE_WORKER])
def test_a_phase_names_a_function_of_kopt(target: str) -> None:
    assert callable(pkgutil.resolve_name(target))


def test_a_phase_lies_within_that_which_called_it() -> None:
    clock = PhaseClock()
    with clock.phase("outer"):
        for _ in range(3):
            with clock.phase("inner"):
                pass
    spent = clock.spent()
    assert {path: one.calls for path, one in spent.items()} == {
        ("outer",): 1,
        ("outer", "inner"): 3,
    }
    assert spent["outer",].seconds >= spent["outer", "inner"].seconds
    assert [line.split()[-1] for line in table(spent, 1.0, 0.0)] == ["outer", "inner"]
