"""PTX instructions that compute give on the simulator what the PTX ISA says of them."""

import pytest

from support.ptx_rows import COUNT, ROWS, judge, ptx_case
from support.sim_run import Array, Sim


@pytest.fixture(scope="module")
def results(sim: Sim) -> Array:
    """Return the results of every row, of one kernel that has them all."""
    return sim.outputs(ptx_case(ROWS))["out"].reshape(len(ROWS), COUNT)


@pytest.mark.parametrize("number", range(len(ROWS)), ids=[row.text for row in ROWS])
def test_instruction_gives_what_the_isa_says(number: int, results: Array) -> None:
    judge(ROWS[number], results[number], error=2e-6)
