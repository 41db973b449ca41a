"""Where loads stand to the wait and the trigger of a dependent launch, from real machine code."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.compile_result import DependencyOrder
from kopt.tools.cuda.cubin import read_cubin
from kopt.tools.cuda.sass import dependency_order
from kopt.tools.cuda.sass_reader import read_instructions
from support.cuda_sources import cubin_of
from support.quick_cases import first_quick

ROW = """
extern "C" __global__ void row(const float4* x, const float4* w, float4* y) {{
  {entry}
  const float4 g = w[threadIdx.x];
  {wait}
  const float4 a = x[threadIdx.x], b = x[threadIdx.x + 128];
  {loaded}
  y[threadIdx.x] = make_float4(a.x * g.x + b.x, a.y * g.y + b.y, a.z * g.z + b.z, a.w * g.w + b.w);
}}
"""
WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'
TRIGGER = 'asm volatile("griddepcontrol.launch_dependents;" ::: "memory");'


def _order(settings: Settings, **places: str) -> DependencyOrder | None:
    source = ROW.format(**({"entry": "", "wait": "", "loaded": ""} | places))
    functions = read_instructions(read_cubin(cubin_of(source, settings, "sm_90a")), "sm_90a")
    assert functions is not None
    return functions[0].dependency_order


@pytest.mark.parametrize(
    ("places", "before_wait", "after_trigger"),
    first_quick(
        [
            ({}, None, None),
            ({"wait": WAIT}, 1, None),
            ({"entry": TRIGGER, "wait": WAIT}, 1, 3),
            ({"wait": WAIT, "loaded": TRIGGER}, 1, 0),
            ({"entry": WAIT + TRIGGER}, 0, 3),
        ],
        3,
    ),
    ids=["neither", "wait", "at_entry", "after_loads", "wait_first"],
)
def test_loads_are_counted_before_the_wait_and_after_the_trigger(
    settings: Settings, places: dict[str, str], before_wait: int | None, after_trigger: int | None
) -> None:
    expected = DependencyOrder(
        loads=3, loads_before_wait=before_wait, loads_after_trigger=after_trigger
    )
    assert _order(settings, **places) == expected


def test_the_first_of_several_triggers_counts() -> None:
    found = dependency_order(("LDG.E", "PREEXIT", "LDG.E.128", "PREEXIT", "EXIT"))
    assert found is not None and found.loads_after_trigger == 1


@pytest.mark.parametrize("opcode", ["CALL.REL.NOINC", "UBLKCP.S.G"])
def test_order_that_does_not_tell_is_none(opcode: str) -> None:
    assert dependency_order(("LDG.E", "ACQBULK", opcode, "EXIT")) is None
