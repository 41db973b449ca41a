"""Every number that decides whether an output is right, in one place.

They bound what honest rounding orders do, not what any library does. docs/correctness.md has the
table that `benchmarks/calibrate_gates.py` prints, from which each number here follows.
"""

BF16_STEP = 2.0**-8
"""Largest relative error of one rounding to bfloat16: half of 2^-7, at the bottom of a binade."""

CODE_WINDOW = 2.0**-6
"""How far from a decision boundary, relative to it, the neighbouring code is still accepted.

Source: intermediates rounded to bf16 three times (h, the normalised value, times the weight) err by
at most 3 * BF16_STEP = 0.0117 together with the block's scale given; measured at most 0.0097.
"""

SCALE_STEPS = 1
"""Steps of e4m3 between a block's scale and the correctly rounded one. Source: CONTRACTS gates."""

FLOAT_SCALE_WINDOW = 2.0**-6
"""Relative error of a float32 block scale: it follows the block's largest value, which may have
been rounded to bf16 as often as the codes' values may."""

BF16_TOTAL_RATIO = 1.9
"""Root mean square error of a whole bf16 output, in units of that of correct rounding."""

BF16_ROW_RATIO = 2.1
"""The same for each row."""

BF16_MAX_ULP = 2
"""Steps of bf16 between an element and the correctly rounded one."""

BF16_ELEMENT_ULP = BF16_MAX_ULP + 0.5
"""Error against the exact value that `BF16_MAX_ULP` leaves to one element, in ulp."""

FLOAT32_WINDOW = 2.0**-16
"""Relative error of a float32 output that is not a scale: 256 float32 ulp, room for fast-math
approximations (2 ulp each) and sums in any order; `Expected.slack` covers cancellation."""

MISSION_MAX_ABS = 1e-2
MISSION_MAX_REL = 1e-3
"""The mission's literal numbers, reported and never decisive."""
