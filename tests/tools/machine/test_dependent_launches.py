"""In a row of launches the place of a wait and of a trigger has its effect on the estimate."""

import pytest

from kopt.config.settings import Settings
from support.machine_cases import HEAD, followed_kernel

pytestmark = pytest.mark.slow  # every kernel is compiled and its machine code followed
DEPENDENT = (
    f"{HEAD.replace('block: 256,', 'block: 256, pdl: true,')}#include <kopt/griddepcontrol.cuh>\n"
)
WAIT = "  kopt::griddepcontrol_wait();\n"
TRIGGER = "  kopt::griddepcontrol_launch_dependents();\n"
PROLOGUE = """
  float z = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 200; ++i) z = fmaf(z, 0.999f, 1.0f);
"""
COPY = """
  const uint4* from = reinterpret_cast<const uint4*>(input);
  uint4* to = reinterpret_cast<uint4*>(out);
  for (int i = threadIdx.x; i < H / 8; i += 256) to[blockIdx.x * (H / 8) + i] = from[i];
  if (z == 0.5f) out[threadIdx.x] = __float2bfloat16(z);
"""


def _us(body: str, settings: Settings) -> float:
    return followed_kernel(body, settings, head=DEPENDENT).way.time_us()


def test_what_is_done_before_the_wait_is_hidden(settings: Settings) -> None:
    at_the_top = _us(TRIGGER + WAIT + PROLOGUE + COPY, settings)
    behind_the_prologue = _us(TRIGGER + PROLOGUE + WAIT + COPY, settings)
    assert behind_the_prologue < 0.9 * at_the_top


def test_a_launch_that_never_triggers_hides_nothing_of_the_next(settings: Settings) -> None:
    silent = _us(PROLOGUE + WAIT + COPY, settings)
    triggering = _us(TRIGGER + PROLOGUE + WAIT + COPY, settings)
    assert triggering < 0.9 * silent
