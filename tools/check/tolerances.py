"""Every number that decides whether an output is right, in one place.

They bound what honest rounding orders do, not what any library does. docs/correctness.md has the
table that `benchmarks/calibrate_gates.py` prints, from which each number here follows.
"""

BF16_STEP = 2.0**-8
"""Largest relative error of one rounding to bfloat16: half of 2^-7, at the bottom of a binade."""

HONEST_ROUNDINGS = 3
"""bf16 roundings that an honest kernel may make before the one that ends in its bf16 output.

Source: h = x + r, h * rstd, and, in rows with one dominating value, that value's rounding once
more through rstd, which moves the whole row (benchmarks/calibrate_gates.py, `outliers`).
"""

CODE_WINDOW = (HONEST_ROUNDINGS + 1) * BF16_STEP
"""How far from a decision boundary, relative to it, the neighbouring code is still accepted.

Source: `HONEST_ROUNDINGS`, and one of the result itself before it is quantised.
"""

SCALE_STEPS = 1
"""Steps of e4m3 between a block's scale and the correctly rounded one.

Source: `CODE_WINDOW` is less than half of e4m3's least relative step (2^-4), so that roundings on
the way carry a scale over one decision boundary at most.
"""

FLOAT_SCALE_WINDOW = (HONEST_ROUNDINGS + 2) * BF16_STEP
"""Relative error of a float32 block scale.

It follows the block's largest value, which may have been rounded to bf16 as often as the codes'
values, and once more in the oracle, whose scale is that of values rounded to bf16.
"""

HALF_TOTAL_RATIO = 1.9
"""Root mean square error of a whole output of 16 bits (bfloat16, float16), in units of
that of correct rounding."""

HALF_ROW_RATIO = 2.1
"""Root mean square error of each row of such an output, in the same units."""

HALF_MAX_ULP = 2
"""Steps between an element of 16 bits and the correctly rounded one that are always allowed."""

HALF_WINDOW_ROUNDINGS = HONEST_ROUNDINGS
"""Beyond `HALF_MAX_ULP` steps: relative error, in roundings to the format, that an element may
still have, and half an ulp.

Source: the calibration has honest elements 3 steps off: three roundings up, one after another, of a
value just below a power of two, where the error of one rounding is a whole ulp.
"""

HALF_ELEMENT_ULP = HONEST_ROUNDINGS + 0.5
"""The largest error against the exact value that the element bound leaves, in ulp."""

FLOAT32_WINDOW = 2.0**-16
"""Relative error of a float32 output that is not a scale: 256 float32 ulp, room for fast-math
approximations (2 ulp each) and sums in any order; `Expected.slack` covers cancellation."""

FLOAT32_LEAST_STEP = 2.0**-149
"""Absolute error that any float32 result may have: the distance of the numbers next to 0.

Below the normal numbers a relative window is narrower than that distance, and refused a value
beside a midpoint for its last rounding.
"""

FLOAT64_WINDOW = 2.0**-40
"""Relative error of a float64 output: 2^13 of its ulp, room for sums in any order, exponentials of
large arguments, and the oracle, which is no more exact. What is computed in float32 is refused: its
error is 2^-24."""

BUDGET_RATIO = 2.5
"""Root mean square error of a whole output whose slack is a statistic (`slack_deviations`), in
units of what honest roundings leave: some samples know that to 18 %, orders differ by twice. One
element may use its slack besides."""

BUDGET_WINDOW = 2.0**-20
"""Relative error of an element that is not counted there: 16 float32 ulp, for approximations of
exponentials and reciprocals."""

BIAS_FALSE_ALARM = 1e-6
"""Share of honest outputs whose errors may point one way further than chance lets them, for the
whole of one output in one run; for all of its rows together once more.

Source: Hoeffding's inequality for errors of either sign (bias_gate.py).
"""

BIAS_SHARE = 0.25
"""Share of all errors, in rounding steps, that may point one way besides.

Source: the calibration has up to 0.10 in bf16 outputs (`bias share`).
"""

BF16_ROUNDING = 2.0**-7 / 24**0.5
"""Root mean square of the relative error of one rounding to bfloat16: a step of 2^-7 / m for a
significand m from 1 to 2, spread evenly, over the square root of 12."""

BF16_MIDDLE = 2.0**-8 / 1.5
"""Half a step of bfloat16, relative to a value in the middle of a binade."""

BIAS_LONG_ROW = 512
"""Elements from which on a row is judged by itself: a head of attention or a group is none."""

BIAS_MANY_ROWS = 128
"""Rows from which on their errors must agree as well, as independent as rows are: z = 5.4 needs 30
rows that are all alike, and three times as many where each misses one element of its sum."""

BIAS_VALUES = 128
"""Distinct magnitudes of an input below which rounding errors repeat too often to judge them."""

FIXED_MAX_ABS = 1e-2
FIXED_MAX_REL = 1e-3
"""Fixed limits that are often asked for: reported and never decisive."""
