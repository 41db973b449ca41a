"""Oracle of scan_rows: integers, which are right or wrong."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload

DERIVED_REGIMES = ()


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return small integers of either sign, larger ones in the regime `huge`."""
    most = 1 << 16 if regime == "huge" else 100
    shape = (workload.axes["R"], workload.axes["C"])
    return {"x": rng.integers(-most, most + 1, shape, dtype=np.int32)}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the sums."""
    del scalars
    sums = np.cumsum(inputs["x"], axis=1, dtype=np.int64)
    every = np.ones(sums.shape, dtype=np.bool_)
    return {"out": Expected(sums.astype(np.float64), sums.astype(np.int32), every)}
